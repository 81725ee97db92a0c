//! The syntax of strings: `%name%` for a value, `@name(…, …)` for a call, and `\` before a letter that stands
//! for itself.

use crate::config::document::shortened;

/// A text cut into what stands for itself and what stands for values.
#[derive(Debug, PartialEq)]
pub(super) enum Piece {
    Text(String),
    /// The name between two `%`.
    Parameter(String),
}

/// The errors in a string.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum BadText {
    #[error("Odd number of percent signs in string around '{0}'")]
    Percent(String),
    #[error("No closing bracket for call '{0}'")]
    Bracket(String),
    #[error("Brackets do not match: {0}")]
    Brackets(String),
}

/// Whether a text stands for itself as it is.
pub(super) fn is_plain(text: &str) -> bool {
    !text.starts_with('@') && !text.bytes().any(|byte| matches!(byte, b'%' | b'\\'))
}

/// Cuts a text that is no call.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece>, BadText> {
    let mut pieces = Vec::new();
    let mut rest = text;
    loop {
        let (plain, behind) = unescaped_until(rest, '%');
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        let Some(behind) = behind else { return Ok(pieces) };
        let (name, behind) = unescaped_until(behind, '%');
        pieces.push(Piece::Parameter(name));
        rest = behind.ok_or_else(|| BadText::Percent(shortened(rest)))?;
    }
}

/// The text before an unescaped `end`, without its escapes, and what stands behind that `end`.
fn unescaped_until(text: &str, end: char) -> (String, Option<&str>) {
    let mut out = String::new();
    let mut letters = text.char_indices();
    while let Some((at, c)) = letters.next() {
        match c {
            '\\' => out.extend(letters.next().map(|(_, c)| c)),
            c if c == end => return (out, text.get(at + c.len_utf8()..)),
            c => out.push(c),
        }
    }
    (out, None)
}

/// A call as it is written in a string.
#[derive(Debug, PartialEq)]
pub(super) struct TextCall<'a> {
    /// The name. It may hold parameters and escapes.
    pub(super) name: &'a str,
    pub(super) arguments: Vec<&'a str>,
}

/// Reads what stands behind the `@` of a call.
pub(super) fn call(text: &str) -> Result<TextCall<'_>, BadText> {
    let Some(open) = marks(text).find(|(_, c)| *c == '(').map(|(at, _)| at) else {
        return Ok(TextCall {
            name: text,
            arguments: Vec::new(),
        });
    };
    let (name, behind) = text.split_at(open);
    let inside = behind.get(1..).and_then(|inside| inside.strip_suffix(')'));
    let shown = || shortened(text);
    let inside = inside.ok_or_else(|| BadText::Bracket(shown()))?;
    let mut arguments = Vec::new();
    let (mut from, mut depth, mut swallowed) = (0, 0_usize, false);
    for (at, c) in marks(inside) {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                arguments.push(trimmed(&inside[from..at]));
                (from, swallowed) = (at + 1, false);
            }
            ',' => swallowed = true,
            _ => {}
        }
    }
    if depth > 0 && swallowed {
        return Err(BadText::Brackets(shown()));
    }
    arguments.push(trimmed(&inside[from..]));
    Ok(TextCall { name, arguments })
}

/// The letters that are not escaped, with their places.
fn marks(text: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    let mut escaped = false;
    text.char_indices().filter(move |(_, c)| {
        let is_mark = !escaped && *c != '\\';
        escaped = *c == '\\' && !escaped;
        is_mark
    })
}

/// An argument without the blanks around it. A blank that is escaped belongs to it.
fn trimmed(text: &str) -> &str {
    let text = text.trim_ascii_start();
    let end = text.trim_ascii_end();
    let escapes = end.bytes().rev().take_while(|byte| *byte == b'\\').count();
    match escapes % 2 == 1 {
        true => text.get(..end.len() + 1).unwrap_or(text),
        false => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_split_at_commas_outside_of_brackets() {
        let table: [(&str, &str, &[&str]); 14] = [
            ("a", "a", &[]),
            ("a()", "a", &[""]),
            ("a( )", "a", &[""]),
            ("a(b,c)", "a", &["b", "c"]),
            ("a( b , c )", "a", &["b", "c"]),
            ("a(,)", "a", &["", ""]),
            ("a(@b(x,y), @c(z))", "a", &["@b(x,y)", "@c(z)"]),
            ("a(@b(@c(x,y),z))", "a", &["@b(@c(x,y),z)"]),
            ("a(b\\,c)", "a", &["b\\,c"]),
            ("a(\\))", "a", &["\\)"]),
            ("a(b\\ )", "a", &["b\\ "]),
            ("a(b\\\\ )", "a", &["b\\\\"]),
            ("a(b),c)", "a", &["b)", "c"]),
            ("%x%(\n y )", "%x%", &["y"]),
        ];
        for (text, name, arguments) in table {
            let arguments = arguments.to_vec();
            assert_eq!(call(text), Ok(TextCall { name, arguments }), "{text}");
        }
        assert_eq!(call("a(b"), Err(BadText::Bracket("a(b".into())));
        assert_eq!(call("a()b"), Err(BadText::Bracket("a()b".into())));
        assert_eq!(call("a((b,c)"), Err(BadText::Brackets("a((b,c)".into())));
    }

    #[test]
    fn texts_are_cut_at_percent_signs_that_are_not_escaped() {
        let text = |text: &str| Piece::Text(text.into());
        let parameter = |name: &str| Piece::Parameter(name.into());
        let table = [
            ("", vec![]),
            ("a", vec![text("a")]),
            ("%a%", vec![parameter("a")]),
            ("a%b%c", vec![text("a"), parameter("b"), text("c")]),
            ("%a%%b%", vec![parameter("a"), parameter("b")]),
            ("%%", vec![parameter("")]),
            ("100\\%", vec![text("100%")]),
            ("%a\\%b%", vec![parameter("a%b")]),
            ("\\a\\\\", vec![text("a\\")]),
            ("a\\", vec![text("a")]),
            ("ü%ö%", vec![text("ü"), parameter("ö")]),
        ];
        for (text, expected) in table {
            assert_eq!(pieces(text), Ok(expected), "{text}");
        }
        assert_eq!(pieces("a%b"), Err(BadText::Percent("a%b".into())));
    }
}
