//! Values of the file as twemproxy reads them: texts without a type, whatever YAML makes of them.

use crate::config::{Diagnostic, document::Node, reading::Reading};

/// The text of a value that is not empty.
pub(super) fn text<'a>(node: &'a Node, cx: &Reading) -> Result<&'a str, Diagnostic> {
    match node.scalar() {
        Some(text) if !text.is_empty() => Ok(text),
        _ => Err(cx.expected(node, "a text")),
    }
}

/// `true` or `false`.
pub(super) fn flag(node: &Node, cx: &Reading) -> Result<bool, Diagnostic> {
    match node.scalar() {
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        _ => Err(cx
            .expected(node, "`true` or `false`")
            .with_remedy("yes, no, on, off, 1 and 0 mean nothing here")),
    }
}

/// A decimal number of at least `least`.
pub(super) fn number(node: &Node, least: i32, cx: &Reading) -> Result<i32, Diagnostic> {
    let read = node.scalar().and_then(decimal);
    read.filter(|number| *number >= least).ok_or_else(|| {
        let what = format!("a number from {least} to {}", i32::MAX);
        cx.expected(node, &what).with_remedy("write digits alone")
    })
}

/// A number of digits alone.
pub(super) fn decimal(text: &str) -> Option<i32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}
