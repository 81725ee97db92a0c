//! The embedded server beside a real memcached 1.6.18: the same commands to both, the same bytes from both.

mod both;
mod random;
mod table;
mod time;
