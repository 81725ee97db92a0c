//! A text as it may be shown: without the secrets in it.

use std::{collections::BTreeSet, ops::Range};

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::events::place;
use crate::config::Place;

/// What stands in the place of a secret.
const MASK: &str = "\"***\"";

/// A text that was parsed, with a mask in the place of each scalar that begins at one of these places.
/// Comments are left out, as they may hold an earlier secret.
pub(crate) fn masked(text: &str, secrets: &BTreeSet<Place>) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (event, span) in Parser::new_from_str(text).map_while(Result::ok) {
        if let Event::Scalar(_, style, ..) = event {
            let range = span.start.index().max(at)..span.end.index().min(chars.len());
            if range.is_empty() {
                continue;
            }
            let end = end_of_scalar(&chars, range.clone(), style);
            structure(&chars[at..range.start], &mut out);
            match secrets.contains(&place(span.start)) {
                true => out.push_str(MASK),
                false => out.extend(&chars[range.start..end]),
            }
            at = end;
        }
    }
    structure(&chars[at..], &mut out);
    out
}

/// Appends what stands between two scalars, without its comments.
fn structure(chars: &[char], out: &mut String) {
    for line in chars.split_inclusive(|c| *c == '\n') {
        let comment = line.iter().position(|c| *c == '#').unwrap_or(line.len());
        let ends = line[comment..].iter().filter(|c| matches!(c, '\r' | '\n'));
        out.extend(line[..comment].iter().chain(ends));
    }
}

/// The end of a scalar that is found in this range. Behind a quoted one the parser counts what follows up to
/// the next token, and a block ends with the line end behind it.
fn end_of_scalar(chars: &[char], range: Range<usize>, style: ScalarStyle) -> usize {
    let quote = match style {
        ScalarStyle::SingleQuoted => '\'',
        ScalarStyle::DoubleQuoted => '"',
        ScalarStyle::Literal | ScalarStyle::Folded => {
            let lines = chars[range.clone()].iter().rev();
            return range.end - lines.take_while(|c| matches!(c, '\r' | '\n')).count();
        }
        ScalarStyle::Plain => return range.end,
    };
    // The name of an anchor may have quotes in it.
    let anchor = match chars[range.start] {
        '&' => chars[range.clone()]
            .iter()
            .take_while(|c| !c.is_whitespace())
            .count(),
        _ => 0,
    };
    let mut at = range.start + anchor;
    at += chars[at..range.end].iter().take_while(|c| **c != quote).count() + 1;
    while at < range.end {
        match chars[at] {
            '\\' if quote == '"' => at += 2,
            '\'' if quote == '\'' && chars.get(at + 1) == Some(&quote) => at += 2,
            c if c == quote => return at + 1,
            _ => at += 1,
        }
    }
    range.end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{
        document::{Node, Value},
        parse_yaml,
    };

    fn secrets(node: &Node, found: &mut BTreeSet<Place>) {
        if let Value::Map(entries) = &node.value {
            for (name, value) in entries {
                if name.text == "pw" {
                    found.insert(value.at);
                }
                secrets(value, found);
            }
        }
    }

    #[test]
    fn secrets_are_masked_however_they_are_written_and_the_rest_stays() {
        let rows = [
            ("pw: hush\n", "pw: \"***\"\n"),
            (
                "a: b\r\npw: hush\r\nc: é#\r\n",
                "a: b\r\npw: \"***\"\r\nc: é#\r\n",
            ),
            (
                "é: ü\npw: 'it''s hush' \nc: 'd''e'",
                "é: ü\npw: \"***\" \nc: 'd''e'",
            ),
            ("pw: \"h\\\"ush\"\nc: \"'\\\"'\"", "pw: \"***\"\nc: \"'\\\"'\""),
            ("a: {pw: hush, b: c}\n", "a: {pw: \"***\", b: c}\n"),
            ("a: &x hush\npw: *x\nc: d\n", "a: \"***\"\npw: *x\nc: d\n"),
            ("pw: hu\n  sh\nc: d\n", "pw: \"***\"\nc: d\n"),
            ("pw: 'hu\n  sh'\nc: d\n", "pw: \"***\"\nc: d\n"),
            ("pw: |\n  hush\nc: d\n", "pw: |\n  \"***\"\nc: d\n"),
            (
                "pw: >-\n  hu\n  sh\n\n# hush\nc: d",
                "pw: >-\n  \"***\"\n\n\nc: d",
            ),
            (
                "pw: &x'\"y 'hush' # hush\nc:\nd: *x'\"y\n",
                "pw: \"***\" \nc:\nd: *x'\"y\n",
            ),
            ("? pw\n: hush\n", "? pw\n: \"***\"\n"),
            (
                "# pw: hush\na: 'b # c' # hush\r\npw: x # hush\n#",
                "\na: 'b # c' \r\npw: \"***\" \n",
            ),
            ("\u{feff}pw: hush\n", "\u{feff}pw: \"***\"\n"),
        ];
        let wrong = rows.into_iter().filter_map(|(text, expected)| {
            let mut places = BTreeSet::new();
            secrets(&parse_yaml(text).unwrap(), &mut places);
            let shown = masked(text, &places);
            (shown != expected).then(|| format!("{text:?}: {shown:?}"))
        });
        assert_eq!(wrong.collect::<Vec<_>>(), Vec::<String>::new());
    }
}
