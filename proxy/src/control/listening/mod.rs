//! Clients: where they are accepted, what they are told, and how they are led away.

pub(in crate::control) mod announce;
pub(in crate::control) mod consult;
pub(in crate::control) mod descriptors;
pub(in crate::control) mod drain;
pub(in crate::control) mod logins;
pub(in crate::control) mod readiness;
