//! Data inside this process, which needs no network hop.
//!
//! * [`store`]: keys and values in memory, shared by all workers
//! * [`embedded`]: memcached's text and meta protocol on top of it

pub mod embedded;
pub mod store;
