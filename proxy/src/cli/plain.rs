//! Texts of others, such as keys and reasons, for a terminal. Clients choose them, so that they may hold
//! what a terminal obeys.

use std::fmt::Write;

use serde_json::Value;
use unicode_width::UnicodeWidthChar;

/// The most characters of a text that are shown.
const MOST: usize = 1000;

/// Whether a terminal shows this character in cells of its own, and does nothing else with it.
fn is_plain(c: char) -> bool {
    !matches!(c, '\u{ad}' | '\u{2028}' | '\u{2029}') && c.width().is_some_and(|width| width > 0)
}

/// The text, with the bytes of all that is not plain as `\xNN`.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(MOST));
    for (at, c) in text.chars().enumerate() {
        if at == MOST {
            out.push('…');
            break;
        }
        if is_plain(c) {
            out.push(c);
            continue;
        }
        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// The value as a line of JSON, with escapes in place of all that is not plain.
pub(super) fn json_line(value: &Value) -> String {
    let text = value.to_string();
    let mut out = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        if is_plain(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_or_hides_is_shown_as_bytes() {
        let cases = [
            ("user:1 ä 鍵 😀", "user:1 ä 鍵 😀"),
            ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
            ("a\r\nb\tc\0\x7f", "a\\x0d\\x0ab\\x09c\\x00\\x7f"),
            ("\u{9b}31m", "\\xc2\\x9b31m"),
            ("\u{202e}evil\u{2066}", "\\xe2\\x80\\xaeevil\\xe2\\x81\\xa6"),
            ("e\u{301}\u{200b}", "e\\xcc\\x81\\xe2\\x80\\x8b"),
            ("\u{2028}\u{ad}", "\\xe2\\x80\\xa8\\xc2\\xad"),
        ];
        let shown: Vec<_> = cases.iter().map(|(text, _)| plain(text)).collect();
        assert_eq!(shown, cases.map(|(_, shown)| shown));
    }

    #[test]
    fn a_long_text_is_cut() {
        let shown = plain(&"x".repeat(1 << 20));
        assert_eq!((shown.chars().count(), shown.ends_with("x…")), (MOST + 1, true));
    }

    #[test]
    fn json_has_escapes_and_the_same_value() {
        let value = serde_json::json!({"key": "\u{1b}[2J\u{9b}m\u{202e}\u{e0001}鍵\u{7f}"});
        let line = json_line(&value);
        assert!(line.trim_end().chars().all(is_plain), "{line}");
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
    }
}
