//! The copy of the data that needs no hop at all: inside this process.
//!
//! * [`store`]: keys and values in memory, shared by all workers
//! * [`embedded`]: memcached's text and meta protocol on top of it

pub mod embedded;
pub mod store;
