//! The binary as its users run it, against real servers and proxies.

mod common;
mod hostile;
mod load;
mod lockstep;
mod multiplex;
mod mysql;
mod redis;
mod relay;
#[path = "../../../wire/tests/memcache/rows.rs"]
mod rows;
mod stale;
