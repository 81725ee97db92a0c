//! The protocols that Proxima speaks.

mod errors;
mod memcache;
mod redis;

pub use self::{
    memcache::{MCROUTER_ADMIN, Memcache},
    redis::Redis,
};
use crate::protocol::{Protocol, Protocols};

static ALL: [&dyn Protocol; 2] = [&Memcache::PLAIN, &Redis::PLAIN];

impl Protocols {
    /// memcached and Redis as Proxima speaks them.
    pub const PLAIN: Self = Self::new(&ALL);
    /// memcached alone.
    pub const MEMCACHED: Self = Self::new(&[&Memcache::PLAIN]);
}
