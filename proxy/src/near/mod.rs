//! Data inside this process, which needs no network hop.
//!
//! * [`store`]: keys and values in memory, shared by all workers
//! * [`embedded`]: servers of memcached's and Redis' protocols on top of it

pub mod embedded;
pub mod store;
