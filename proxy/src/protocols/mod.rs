//! The protocols that Proxima speaks.

mod errors;
mod memcache;
mod mysql;
mod redis;

pub use self::{
    memcache::{MCROUTER_ADMIN, Memcache},
    mysql::Mysql,
    redis::Redis,
};
use crate::protocol::{Protocol, Protocols};

static ALL: [&dyn Protocol; 3] = [&Memcache::PLAIN, &Redis::PLAIN, &Mysql::PLAIN];

impl Protocols {
    /// memcached, Redis and MySQL as Proxima speaks them.
    pub const PLAIN: Self = Self::new(&ALL);
    /// memcached alone.
    pub const MEMCACHED: Self = Self::new(&[&Memcache::PLAIN]);
}
