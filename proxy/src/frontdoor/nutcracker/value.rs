//! Values of the file as twemproxy reads them: texts without a type, whatever type YAML gives them.

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

/// A number as twemproxy reads it: digits alone, and one that is too large wraps. `None` if the text is no
/// number, or the number wraps to less than 0.
pub(super) fn decimal(text: &str) -> Option<i32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let wrapped = text.bytes().fold(0_i32, |number, digit| {
        number
            .wrapping_mul(10)
            .wrapping_add(i32::from(digit.wrapping_sub(b'0')))
    });
    (digits && wrapped >= 0).then_some(wrapped)
}

#[cfg(test)]
mod tests {
    use super::decimal;

    #[test]
    fn numbers_are_digits_alone_and_wrap_as_in_twemproxy() {
        for (text, read) in [
            ("0", Some(0)),
            ("007", Some(7)),
            ("4294967297", Some(1)),
            ("99999999999999999999", Some(1_661_992_959)),
            ("2147483648", None),
            ("", None),
            ("-1", None),
            ("+1", None),
            ("1x", None),
        ] {
            assert_eq!(decimal(text), read, "{text}");
        }
    }
}
