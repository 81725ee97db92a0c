//! What `proxima-bench hostile` says to a Redis, and how it reads what comes back.

pub(crate) mod reply;
pub(crate) mod requests;
