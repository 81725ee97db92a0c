//! How JSON is written for operators.

use serde_json::{Value, to_string_pretty};

/// With a key on each line.
pub(super) fn pretty(value: &Value) -> String {
    // A tree has no key that is no text, which is all that could fail.
    to_string_pretty(value).unwrap_or_default()
}
