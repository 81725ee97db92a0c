//! Key → number → member.
//!
//! * [`routing_key()`], [`hash_tag`], [`shard`], [`salted()`]: the bytes of a key that are hashed
//! * [`KeyHash`]: libmemcached's and twemproxy's hashes for them; [`furc()`], [`murmur64a`], [`spooky32`],
//!   [`spooky64`]: mcrouter's
//! * [`Distribution`]: key → member, by the algorithms of libmemcached, twemproxy and mcrouter
//! * [`pick_random`], [`pick_random_live`]: members by chance
//! * [`ketama_name`], [`twemproxy_order`]: what servers are called and how they are numbered
//!
//! All answers are those of the programs named, because clients and other proxies that share the servers must
//! agree with ours. Known answers of these programs are beside the tests.

mod const_shard;
mod continuum;
mod crc;
mod distribution;
mod error;
mod fnv;
mod furc;
mod hsieh;
mod jenkins;
mod jump;
mod key_hash;
mod modula;
mod murmur;
mod one_at_a_time;
mod random;
mod rendezvous;
mod routing_key;
mod salted;
mod server_name;
mod spooky;
#[cfg(test)]
mod tests;
mod weighted_ch3;

pub use const_shard::shard;
pub use distribution::{Distribution, MAX_MEMBERS, Node};
pub use error::DistributionError;
pub use furc::furc;
pub use key_hash::KeyHash;
pub use murmur::murmur64a;
pub use random::{pick_random, pick_random_live};
pub use routing_key::{hash_tag, routing_key};
pub use salted::salted;
pub use server_name::{ketama_name, twemproxy_order};
pub use spooky::{spooky32, spooky64};

/// A byte as C code sees it that reads keys as signed `char`.
fn sign_extended(byte: u8) -> u32 {
    i32::from(byte.cast_signed()).cast_unsigned()
}
