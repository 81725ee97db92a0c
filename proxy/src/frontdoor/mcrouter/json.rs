//! Parses mcrouter's JSON to a tree. Comments and trailing commas are allowed, and the last of repeated keys
//! counts. Strings stay as they are written: the preprocessor interprets them.

use std::collections::HashMap;

use jsonc_parser::{CollectOptions, ParseOptions, ast, common::Ranged, parse_to_ast};

use crate::config::{
    Diagnostic, Place,
    document::{DEPTH_LIMIT, Name, Node, Value, shortened},
    reading::Reading,
};

const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Reads the only value of `text`.
pub(super) fn parse(text: &str, cx: &mut Reading) -> Result<Node, Diagnostic> {
    let lines = Lines::of(text);
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS).map_err(|error| {
        Diagnostic::at(
            lines.place(error.range().start),
            format!("not JSON: {}", error.kind()),
        )
    })?;
    match parsed.value {
        Some(value) => Reader { lines, cx }.node(value, 0),
        None => Err(Diagnostic::at(
            Place { line: 1, column: 1 },
            "there is no JSON value",
        )),
    }
}

struct Reader<'a, 'cx> {
    lines: Lines<'a>,
    cx: &'cx mut Reading,
}

impl Reader<'_, '_> {
    fn node(&mut self, value: ast::Value<'_>, depth: usize) -> Result<Node, Diagnostic> {
        let at = self.lines.place(value.start());
        if depth >= DEPTH_LIMIT {
            return Err(Diagnostic::at(at, format!("nested more than {DEPTH_LIMIT} deep")));
        }
        let unquoted = |text: &str| Value::Scalar {
            text: text.to_owned(),
            quoted: false,
        };
        let value = match value {
            ast::Value::StringLit(text) => Value::Scalar {
                text: text.value.into_owned(),
                quoted: true,
            },
            ast::Value::NumberLit(number) => unquoted(number.value),
            ast::Value::BooleanLit(flag) => unquoted(if flag.value { "true" } else { "false" }),
            ast::Value::NullKeyword(_) => unquoted("null"),
            ast::Value::Array(array) => {
                let elements = array
                    .elements
                    .into_iter()
                    .map(|element| self.node(element, depth + 1));
                Value::List(elements.collect::<Result<_, _>>()?)
            }
            ast::Value::Object(object) => self.map(object, depth)?,
        };
        Ok(Node { at, value })
    }

    fn map(&mut self, object: ast::Object<'_>, depth: usize) -> Result<Value, Diagnostic> {
        let mut entries: Vec<(Name, Node)> = Vec::with_capacity(object.properties.len());
        let mut positions: HashMap<String, usize> = HashMap::new();
        for property in object.properties {
            let at = self.lines.place(property.name.start());
            let text = property.name.as_str().to_owned();
            let value = self.node(property.value, depth + 1)?;
            if let Some(earlier) = positions.get(&text).and_then(|i| entries.get_mut(*i)) {
                let (name, line) = (shortened(&text), earlier.0.at.line);
                self.cx.warn(
                    at,
                    format!("`{name}` stood in line {line} already; this one holds"),
                );
                *earlier = (Name { at, text }, value);
            } else {
                positions.insert(text.clone(), entries.len());
                entries.push((Name { at, text }, value));
            }
        }
        Ok(Value::Map(entries))
    }
}

/// A tree as JSON with a key on each line, in the order of the keys.
pub(super) fn pretty(node: &Node) -> String {
    // A tree has no key that is no text, which is all that could fail.
    serde_json::to_string_pretty(&value(node)).unwrap_or_default()
}

fn value(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::Scalar { text, quoted: true } => text.as_str().into(),
        // What is no word of JSON (a number beyond its range) is shown as it is.
        Value::Scalar { text, .. } => serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into()),
        Value::List(nodes) => nodes.iter().map(value).collect(),
        Value::Map(entries) => entries
            .iter()
            .map(|(name, node)| (name.text.clone(), value(node)))
            .collect(),
    }
}

/// The beginnings of the lines of a text.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let after_breaks = text
            .bytes()
            .enumerate()
            .filter(|(_, byte)| *byte == b'\n')
            .map(|(i, _)| i + 1);
        Self {
            text,
            starts: [0].into_iter().chain(after_breaks).collect(),
        }
    }

    fn place(&self, offset: usize) -> Place {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or(0);
        let before = self.text.get(start..offset).unwrap_or_default();
        Place {
            line: line as u32,
            column: before.chars().count() as u32 + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_alone(text: &str) -> Result<Node, String> {
        parse(text, &mut Reading::default()).map_err(|diagnostic| diagnostic.to_string())
    }

    #[test]
    fn comments_and_trailing_commas_are_allowed_and_places_are_right() {
        let node = parse_alone("// ü\n{ /* ü */ \"a\": [1, true, \"x//y\",],\n  \"b\": null, }").unwrap();
        let Value::Map(entries) = &node.value else {
            panic!()
        };
        let places: Vec<String> = entries
            .iter()
            .map(|(name, node)| format!("{} {}", name.at, node.at))
            .collect();
        assert_eq!(places, ["2:11 2:16", "3:3 3:8"]);
        let Value::List(list) = &entries[0].1.value else {
            panic!()
        };
        assert_eq!(
            list.iter().map(|node| node.scalar().unwrap()).collect::<Vec<_>>(),
            ["1", "true", "x//y"]
        );
    }

    #[test]
    fn what_is_not_mcrouters_json_is_refused_with_its_place() {
        let deep = "[".repeat(300) + &"]".repeat(300);
        let bad = [
            ("{\n\"a\": 'b'}", "2:6: not JSON"),
            ("{\"a\" 1}", "1:6: not JSON"),
            ("[1 2]", "1:3: not JSON"),
            ("", "1:1: there is no JSON value"),
            ("{a: 1}", "1:2: not JSON"),
            ("[1][2]", "1:4: not JSON"),
            (&deep, "1:251: nested more than 250 deep"),
        ];
        for (text, message) in bad {
            let found = parse_alone(text).unwrap_err();
            assert!(found.starts_with(message), "{text:?}: {found}");
        }
    }
}
