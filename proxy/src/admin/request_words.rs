//! The words for what is told of a request.

use proxima_wire::message::{Class, Outcome};

/// What it does to the data.
pub(super) const fn class(class: Class) -> &'static str {
    match class {
        Class::Read => "read",
        Class::Write => "write",
        Class::Delete => "delete",
        _ => "other",
    }
}

/// How it has ended.
pub(super) fn outcome(outcome: Outcome) -> String {
    format!("{outcome:?}").to_lowercase()
}
