//! The names of protocols.

/// A protocol by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol(pub &'static str);

impl Protocol {
    /// memcached's text and meta commands; the default.
    pub const MEMCACHED: Self = Self("memcached");
    /// Redis' protocol, which Valkey speaks too.
    pub const REDIS: Self = Self("redis");
    /// The protocol of MySQL and MariaDB.
    pub const MYSQL: Self = Self("mysql");
}
