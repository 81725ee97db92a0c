//! A file of twemproxy's as it may be shown: its values in one layout, without comments, which may hold an
//! earlier password, and with a mask in the place of each password.

use std::fmt::Write;

use super::settings::PASSWORD;
use crate::config::document::{Name, Node, Value};

/// What stands in the place of a password.
const MASK: &str = "\"***\"";

/// The text of this file.
pub(super) fn shown(root: &Node) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    for (name, pool) in entries(root) {
        let _ = writeln!(out, "{}:", key(&name.text));
        for (name, node) in entries(pool) {
            let _ = write!(out, "  {}:", key(&name.text));
            match &node.value {
                _ if name.text == PASSWORD => {
                    let _ = writeln!(out, " {MASK}");
                }
                Value::List(nodes) if !nodes.is_empty() => {
                    out.push('\n');
                    for node in nodes {
                        let _ = writeln!(out, "    -{}", value(node));
                    }
                }
                _ => {
                    let _ = writeln!(out, "{}", value(node));
                }
            }
        }
    }
    out
}

fn entries(node: &Node) -> &[(Name, Node)] {
    match &node.value {
        Value::Map(entries) => entries,
        Value::Scalar { .. } | Value::List(_) => &[],
    }
}

/// A key, in quotes unless it is a plain word.
fn key(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    match text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(is_word) {
        true => text.to_owned(),
        false => quoted(text),
    }
}

/// A value behind a colon or a dash. What was written without quotes needs none, as long as it is one line.
fn value(node: &Node) -> String {
    match &node.value {
        Value::Scalar { text, quoted: false } if text.is_empty() => String::new(),
        Value::Scalar { text, quoted: false } if !text.contains(char::is_control) => format!(" {text}"),
        Value::Scalar { text, .. } => format!(" {}", quoted(text)),
        // No file with further lists or maps is accepted.
        Value::List(_) => " []".to_owned(),
        Value::Map(_) => " {}".to_owned(),
    }
}

/// A text in double quotes, as JSON has it and YAML reads it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse_yaml;

    #[test]
    fn shown_file_has_the_values_of_the_file_and_no_password() {
        let rows = [
            ("a:\n  redis_auth: hush\n", "a:\n  redis_auth: \"***\"\n"),
            (
                "# hush\na: {redis_auth: 'hu''sh', hash: \"x\\ty\", redis: true} # hush\n",
                "a:\n  redis_auth: \"***\"\n  hash: \"x\\ty\"\n  redis: true\n",
            ),
            (
                "a:\n  redis_auth: |\n    hush\n  servers: [\"h:1:1 a\", h:2:1]\n",
                "a:\n  redis_auth: \"***\"\n  servers:\n    - \"h:1:1 a\"\n    - h:2:1\n",
            ),
            (
                "a:\n  hash_tag: &x hush\n  redis_auth: *x\nb: {redis_auth: *x}\n",
                "a:\n  hash_tag: hush\n  redis_auth: \"***\"\nb:\n  redis_auth: \"***\"\n",
            ),
            (
                "\"a b\":\r\n  timeout:\r\n  hash: one\r\n    two # hush\r\n",
                "\"a b\":\n  timeout:\n  hash: one two\n",
            ),
            ("? ''\n: {servers: []}\n", "\"\":\n  servers: []\n"),
        ];
        let wrong = rows.into_iter().filter_map(|(text, expected)| {
            let first = shown(&parse_yaml(text).unwrap());
            let again = shown(&parse_yaml(&first).unwrap());
            (first != expected || again != expected).then(|| format!("{text:?}: {first:?} {again:?}"))
        });
        assert_eq!(wrong.collect::<Vec<_>>(), Vec::<String>::new());
    }
}
