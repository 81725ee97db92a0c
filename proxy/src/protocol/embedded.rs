//! The servers in this process.

/// A server in this process, by its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Embedded {
    /// memcached.
    Memcache,
    /// Redis.
    Redis,
}
