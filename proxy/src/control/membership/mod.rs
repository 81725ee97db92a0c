//! The members of pools: copies, ejections, roles, and the orders of operators for them.

pub(in crate::control) mod closings;
pub(in crate::control) mod connection;
pub(in crate::control) mod copies;
pub(in crate::control) mod ejections;
pub(in crate::control) mod monitor;
pub(in crate::control) mod orders;
pub(in crate::control) mod probe;
mod roles;
