//! The clients of a server for which no lane was idle.

use std::sync::Arc;

use crate::members::Member;

/// The clients for which no lane was idle since the last look.
#[derive(Debug, Default)]
pub(super) struct Missed {
    /// The server; `None` if there was none.
    pub(super) member: Option<Arc<Member>>,
    /// The login of the last of them.
    pub(super) login: u16,
    /// The number of those with this login, one behind the other.
    pub(super) count: u32,
}
