//! The embedded server beside a real memcached 1.6.18: the same commands to both, the same bytes from both. What differs
//! on purpose, and what memcached cannot show, is in `alone`.
#![allow(clippy::disallowed_methods)]

mod alone;
mod both;
mod differ;
mod random;
mod server;
mod stats;
mod table;
mod time;
