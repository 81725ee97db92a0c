//! # proxima-wire: bytes ⇄ messages
//!
//! No I/O, no clock, no allocation on the hot path.
//!
//! * [`message`]: the parts that the requests and replies of all protocols share: command, class, keys,
//!   length
//! * [`memcache`]: the memcached text and meta protocol
//! * [`resp`]: the protocol of Redis and Valkey, and their commands
//! * [`mysql`]: the protocol of MySQL and MariaDB, and the effects of statements
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
