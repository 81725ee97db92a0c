//! The role of a member, as pages of the admin port show it.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::protocol::RoleStatus;

/// The role of a member in a pool that finds its writer by itself.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct RoleRow {
    /// `writer`, `reader` or `out`.
    pub role: String,
    /// For how many seconds it has the role; missing if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_since: Option<f64>,
    /// Why it does not serve; missing if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_why: Option<String>,
}

impl RoleRow {
    pub(super) fn of(status: &RoleStatus, now: Instant) -> Self {
        Self {
            role: status.role.name().to_owned(),
            role_since: status.since.map(|since| now.duration_since(since).as_secs_f64()),
            role_why: status.why(),
        }
    }
}
