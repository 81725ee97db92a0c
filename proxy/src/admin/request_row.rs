//! What is told of a request that was answered, whoever asks for it.

use proxima_wire::message::{Class, Outcome};
use serde::Serialize;

/// A request, and how it has ended.
#[derive(Serialize)]
pub(super) struct RequestRow {
    /// Milliseconds since 1970.
    pub(super) at_ms: u64,
    pub(super) listener: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client: Option<String>,
    pub(super) command: &'static str,
    pub(super) class: &'static str,
    /// As people are told it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    pub(super) outcome: String,
    pub(super) us: u64,
}

/// The word for what a request does to the data.
pub(super) const fn class(class: Class) -> &'static str {
    match class {
        Class::Read => "read",
        Class::Write => "write",
        Class::Delete => "delete",
        _ => "other",
    }
}

/// The word for how a request has ended.
pub(super) fn outcome(outcome: Outcome) -> String {
    format!("{outcome:?}").to_lowercase()
}
