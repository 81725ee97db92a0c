//! # proxima-wire: bytes ⇄ messages
//!
//! No I/O, no clock, no allocation on the hot path.
//!
//! * [`message`]: what every protocol's request and reply have in common: command, class, keys, length
//! * [`memcache`]: the memcached text and meta protocol
//! * [`resp`]: the protocol of Redis and Valkey; what is known of their commands
//! * [`mysql`]: the protocol of MySQL and MariaDB; what a statement does
//! * [`hash`]: key → number → member
//! * [`fleet`]: the frames between the proxies of a fleet
#![forbid(unsafe_code)]

mod eight;
pub mod fleet;
pub mod hash;
pub mod memcache;
pub mod message;
pub mod mysql;
pub mod resp;
