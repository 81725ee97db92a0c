//! The tree that a text describes, in any format. Every part knows its place.

use std::fmt;

/// A place in a text. Line and column count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line.
    pub line: u32,
    /// Character in the line.
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// The deepest nesting in any format. Readers recurse, so this bounds their stack.
pub(crate) const DEPTH_LIMIT: usize = 250;

/// A value and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) at: Place,
    pub(crate) value: Value,
}

/// A value of a text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// A word, a number or a text. An unquoted one may have a meaning (`null`, `true`, `5`).
    Scalar { text: String, quoted: bool },
    /// Values in order.
    List(Vec<Node>),
    /// Values by name, in the order of the text. No name stands twice.
    Map(Vec<(Name, Node)>),
}

/// The name of a map's entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Name {
    pub(crate) at: Place,
    pub(crate) text: String,
}

impl Node {
    /// The text of a scalar.
    pub(crate) fn scalar(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Whether nothing was written: an empty value, or the null of the format.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, quoted: false } if matches!(text.as_str(), "" | "~" | "null"))
    }

    /// Describes the value, for messages.
    pub(crate) fn describe(&self) -> String {
        match &self.value {
            _ if self.is_null() => "nothing".to_owned(),
            Value::Scalar { text, .. } => format!("`{}`", shortened(text)),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a map".to_owned(),
        }
    }
}

/// Makes text of the user fit for messages: one line of bounded length.
pub(crate) fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut out: String = text
        .chars()
        .take(LONGEST)
        .map(|c| if c.is_control() { '?' } else { c })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        out.push('…');
    }
    out
}
