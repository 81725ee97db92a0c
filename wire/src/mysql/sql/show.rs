//! The SHOW statements.

use super::Class;

/// Objects that are kept with the data: every server shows the same.
const OBJECTS: [&str; 25] = [
    "authors",
    "character",
    "charset",
    "collation",
    "columns",
    "contributors",
    "create",
    "databases",
    "engines",
    "events",
    "fields",
    "function",
    "grants",
    "index",
    "indexes",
    "keys",
    "package",
    "plugins",
    "privileges",
    "procedure",
    "schemas",
    "storage",
    "table",
    "tables",
    "triggers",
];

/// State that is kept for the connection.
const STATE: [&str; 7] = [
    "count",
    "errors",
    "profile",
    "profiles",
    "status",
    "variables",
    "warnings",
];

/// The class of SHOW with this word behind it, in any case.
pub(super) fn class(word: &[u8]) -> Class {
    let is_in = |words: &[&str]| {
        words
            .iter()
            .any(|other| other.as_bytes().eq_ignore_ascii_case(word))
    };
    if is_in(&OBJECTS) {
        Class::Read
    } else if is_in(&STATE) {
        Class::Session
    } else {
        Class::Admin
    }
}
