//! The embedded server beside a real memcached 1.6.18: both get the same commands and must send the same
//! bytes. `alone` has the intended differences, and what memcached cannot show.
#![allow(clippy::disallowed_methods)]

mod alone;
mod both;
mod differ;
mod random;
#[path = "../../../wire/tests/memcache/rows.rs"]
mod rows;
mod server;
mod stats;
mod table;
mod time;
