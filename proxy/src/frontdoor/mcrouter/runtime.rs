//! Runtime variables: values in a file of their own, which take the place of values of the configuration.
//!
//! `"key_fraction_range_rv": "NAME"` stands for `"key_fraction_range": VALUE` while the file has a variable
//! of that name. Otherwise the value of the configuration itself counts.

use std::path::{Path, PathBuf};

use super::json;
use crate::config::{
    ConfigError, Diagnostic, Place,
    document::{Name, Node, Value, shortened},
    file,
    reading::Reading,
};

/// The end of keys that name a variable.
const END: &str = "_rv";

/// The keys that a variable may stand for, and what they take.
const KEYS: [(&str, Kind); 3] = [
    ("index_range", Kind::Places),
    ("key_fraction_range", Kind::Shares),
    ("weights", Kind::Weights),
];

#[derive(Clone, Copy)]
enum Kind {
    /// Two whole numbers in their order.
    Places,
    /// Two numbers from 0 to 1 in their order.
    Shares,
    /// Numbers from 0.
    Weights,
}

impl Kind {
    fn takes(self, node: &Node) -> bool {
        let Value::List(nodes) = &node.value else {
            return false;
        };
        let numbers: Option<Vec<f64>> = nodes
            .iter()
            .map(|node| node.scalar()?.parse::<f64>().ok())
            .collect();
        let is_ordered = |numbers: &[f64], most: f64| matches!(numbers, &[from, to] if 0.0 <= from && from <= to && to <= most);
        numbers.is_some_and(|numbers| match self {
            Self::Places => {
                is_ordered(&numbers, f64::from(i32::MAX)) && numbers.iter().all(|place| place.fract() == 0.0)
            }
            Self::Shares => is_ordered(&numbers, 1.0),
            Self::Weights => numbers.iter().all(|weight| *weight >= 0.0),
        })
    }

    fn words(self) -> &'static str {
        match self {
            Self::Places => "a list of two whole numbers in their order",
            Self::Shares => "a list of two numbers from 0 to 1 in their order",
            Self::Weights => "a list of numbers from 0",
        }
    }
}

/// The file of the variables. `None` without such a file.
pub(super) fn path(option: &str) -> Option<PathBuf> {
    Some(option)
        .filter(|path| !path.is_empty())
        .map(|path| PathBuf::from(path.strip_prefix("file:").unwrap_or(path)))
}

/// The variables.
#[derive(Debug, Default)]
pub(super) struct Variables {
    /// The text of their file.
    pub(super) text: String,
    values: Vec<(Name, Node)>,
}

impl Variables {
    /// Reads the file. As in mcrouter, one that cannot be used is no reason not to start; later it is refused,
    /// and what runs stays.
    pub(super) fn read(path: &Path, is_first: bool) -> Result<(Self, Option<String>), ConfigError> {
        match Self::parse(path) {
            Ok(variables) => Ok((variables, None)),
            Err(why) if is_first => {
                let warning = format!("--runtime-vars-file: {}:{why}", path.display());
                Ok((Self::default(), Some(warning)))
            }
            Err(why) => Err(ConfigError::one(path, why)),
        }
    }

    fn parse(path: &Path) -> Result<Self, Diagnostic> {
        let text = file::read(path)?;
        let mut cx = Reading::default();
        let document = json::parse(&text, &mut cx)?;
        match document.value {
            Value::Map(values) => Ok(Self { text, values }),
            _ => Err(cx.expected(&document, "an object")),
        }
    }

    fn value(&self, name: &str) -> Option<&Node> {
        let mut values = self.values.iter();
        values
            .find(|(known, _)| known.text == name)
            .map(|(_, value)| value)
    }

    /// Puts the values of variables where the configuration names them.
    pub(super) fn fill(&self, node: &mut Node, cx: &mut Reading) {
        match &mut node.value {
            Value::Scalar { .. } => {}
            Value::List(nodes) => nodes.iter_mut().for_each(|node| self.fill(node, cx)),
            Value::Map(entries) => {
                for (key, kind) in KEYS {
                    self.fill_key(entries, key, kind, cx);
                }
                entries.iter_mut().for_each(|(_, node)| self.fill(node, cx));
            }
        }
    }

    fn fill_key(&self, entries: &mut Vec<(Name, Node)>, key: &str, kind: Kind, cx: &mut Reading) {
        let names_variable = |name: &Name| name.text.strip_suffix(END) == Some(key);
        let Some(place) = entries.iter().position(|(name, _)| names_variable(name)) else {
            return;
        };
        let (written, variable) = entries.remove(place);
        let name = variable.scalar().unwrap_or_default();
        let value = match self.value(name) {
            None => {
                let problem = format!("`{END}`: there is no runtime variable `{}`", shortened(name));
                return cx.warn(written.at, problem);
            }
            Some(value) if !kind.takes(value) => {
                let problem = format!(
                    "the runtime variable `{}` is not {}, and has no effect",
                    shortened(name),
                    kind.words()
                );
                return cx.warn(written.at, problem);
            }
            Some(value) => value.clone(),
        };
        entries.retain(|(name, _)| name.text != key);
        let name = Name {
            text: key.to_owned(),
            at: written.at,
        };
        entries.push((name, at(value, variable.at)));
    }
}

/// The value as if it stood at this place of the configuration.
fn at(mut value: Node, place: Place) -> Node {
    value.at = place;
    if let Value::List(nodes) = &mut value.value {
        nodes.iter_mut().for_each(|node| node.at = place);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(variables: &str, text: &str) -> (String, usize) {
        let mut cx = Reading::default();
        let Value::Map(values) = json::parse(variables, &mut cx).expect("variables").value else {
            panic!("an object");
        };
        let variables = Variables {
            text: String::new(),
            values,
        };
        let mut node = json::parse(text, &mut cx).expect("a configuration");
        variables.fill(&mut node, &mut cx);
        let compact: String = json::pretty(&node)
            .chars()
            .filter(|c| !c.is_whitespace())
            .collect();
        (compact, cx.warnings.len())
    }

    #[test]
    fn variables_take_the_place_of_values() {
        let variables = r#"{"a": [0, 0.5], "b": [1, 3], "w": [1, 0.5, 0], "bad": [2, 1], "text": "x"}"#;
        let rows = [
            (
                r#"{"key_fraction_range_rv": "a"}"#,
                r#"{"key_fraction_range":[0,0.5]}"#,
                0,
            ),
            (
                r#"[{"index_range": [0, 9], "index_range_rv": "b"}]"#,
                r#"[{"index_range":[1,3]}]"#,
                0,
            ),
            (
                r#"{"hash": {"weights_rv": "w"}}"#,
                r#"{"hash":{"weights":[1,0.5,0]}}"#,
                0,
            ),
            // What is missing or wrong leaves what is written.
            (
                r#"{"weights": [1], "weights_rv": "none"}"#,
                r#"{"weights":[1]}"#,
                1,
            ),
            (
                r#"{"index_range": [0, 9], "index_range_rv": "bad"}"#,
                r#"{"index_range":[0,9]}"#,
                1,
            ),
            (r#"{"key_fraction_range_rv": "b"}"#, "{}", 1),
            (r#"{"index_range_rv": "a"}"#, "{}", 1),
            (r#"{"index_range_rv": "text"}"#, "{}", 1),
            (r#"{"index_range_rv": [1]}"#, "{}", 1),
            (r#"{"other_rv": "a"}"#, r#"{"other_rv":"a"}"#, 0),
        ];
        for (text, expected, warnings) in rows {
            assert_eq!(filled(variables, text), (expected.to_owned(), warnings), "{text}");
        }
    }
}
