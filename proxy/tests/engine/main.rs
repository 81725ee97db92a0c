//! The engine without sockets, clock and threads, so that a test can play every order of events.
#![allow(clippy::disallowed_methods)]

mod attempts;
mod bypass;
mod channels;
mod choices;
mod control;
mod copies;
mod decisions;
mod downloads;
mod failures;
mod flushes;
mod gathers;
mod keys;
mod leases;
mod limits;
mod links;
mod locality;
mod near_cache;
mod orders;
mod peers;
mod pipelines;
mod policies;
mod prefixes;
mod random;
#[path = "../../../wire/tests/memcache/rows.rs"]
mod rows;
mod scripts;
mod shares;
mod splits;
mod turns;
mod undo;
mod uploads;
mod versions;
mod world;
mod wraps;
