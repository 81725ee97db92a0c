//! The configuration: what is read, when, and how a change takes effect.

pub(in crate::control) mod follow;
pub(in crate::control) mod offline;
pub(in crate::control) mod own_copies;
pub(in crate::control) mod reload;
