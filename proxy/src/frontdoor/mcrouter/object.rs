//! Reads an object of mcrouter's JSON key by key. The other keys are refused, warned of, or ignored as
//! mcrouter does.

use std::cell::RefCell;

use crate::config::{
    Diagnostic, Place,
    document::{Name, Node, Value, shortened},
    reading::Reading,
};

/// An object, and which of its keys were read.
#[derive(Debug)]
pub(super) struct Object<'a> {
    pub(super) at: Place,
    entries: &'a [(Name, Node)],
    read: RefCell<Vec<&'a str>>,
}

impl<'a> Object<'a> {
    /// The object that `node` is.
    pub(super) fn of(node: &'a Node, cx: &Reading) -> Result<Self, Diagnostic> {
        match &node.value {
            Value::Map(entries) => Ok(Self {
                at: node.at,
                entries,
                read: RefCell::default(),
            }),
            _ => Err(cx.expected(node, "an object")),
        }
    }

    /// The value of `key`, which counts as read.
    pub(super) fn get(&self, key: &str) -> Option<&'a Node> {
        let (name, node) = self.entries.iter().find(|(name, _)| name.text == key)?;
        self.read.borrow_mut().push(&name.text);
        Some(node).filter(|node| !node.is_null())
    }

    /// The value of `key`, read by `read`.
    pub(super) fn take<T>(
        &self,
        key: &str,
        cx: &mut Reading,
        read: impl FnOnce(&'a Node, &mut Reading) -> Result<T, Diagnostic>,
    ) -> Result<Option<T>, Diagnostic> {
        self.get(key)
            .map(|node| cx.within(key, |cx| read(node, cx)))
            .transpose()
    }

    /// The value of a key that must be there.
    pub(super) fn require(&self, key: &str, cx: &Reading) -> Result<&'a Node, Diagnostic> {
        self.get(key)
            .ok_or_else(|| cx.refuse(self.at, format!("`{key}` is missing")))
    }

    /// The whole object, whose entries count as read.
    pub(super) fn node(&self) -> Node {
        Node {
            at: self.at,
            value: Value::Map(self.entries().to_vec()),
        }
    }

    /// All entries, which count as read.
    pub(super) fn entries(&self) -> &'a [(Name, Node)] {
        self.read
            .borrow_mut()
            .extend(self.entries.iter().map(|(name, _)| name.text.as_str()));
        self.entries
    }

    /// Ends the reading. Keys that were not read and stand in `unserved` would change the meaning and are
    /// refused unless they ask for nothing. Those in `idle` have no meaning here. Others have no meaning to
    /// mcrouter either.
    pub(super) fn finish(
        &self,
        unserved: &[&str],
        idle: &[&str],
        cx: &mut Reading,
    ) -> Result<(), Diagnostic> {
        let read = self.read.borrow();
        for (name, node) in self
            .entries
            .iter()
            .filter(|(name, _)| !read.contains(&name.text.as_str()))
        {
            let (key, shown) = (name.text.as_str(), shortened(&name.text));
            if unserved.contains(&key) {
                if !asks_for_nothing(node) {
                    return Err(cx.refuse(
                        name.at,
                        format!("`{shown}` is not served yet, line: {}", name.at.line),
                    ));
                }
            } else if idle.contains(&key) {
                cx.warn(name.at, format!("`{shown}` has no effect here"));
            } else if !matches!(key, "type" | "name") {
                cx.warn(
                    name.at,
                    format!("`{shown}` is no key of this object and is ignored"),
                );
            }
        }
        Ok(())
    }
}

fn asks_for_nothing(node: &Node) -> bool {
    match &node.value {
        Value::Scalar { text, .. } => node.is_null() || matches!(text.as_str(), "" | "false" | "0"),
        Value::List(nodes) => nodes.is_empty(),
        Value::Map(entries) => entries.is_empty(),
    }
}

/// Reads a text.
pub(super) fn text(node: &Node, cx: &mut Reading) -> Result<String, Diagnostic> {
    match &node.value {
        Value::Scalar { text, quoted: true } => Ok(text.clone()),
        _ => Err(cx.expected(node, "a string")),
    }
}

/// Reads `true` or `false`; numbers count as they do in C.
pub(super) fn flag(node: &Node, cx: &mut Reading) -> Result<bool, Diagnostic> {
    match node.scalar() {
        Some("true" | "1") => Ok(true),
        Some("false" | "0") => Ok(false),
        _ => Err(cx.expected(node, "true or false")),
    }
}

/// Reads a finite number.
pub(super) fn number(node: &Node, cx: &mut Reading) -> Result<f64, Diagnostic> {
    match &node.value {
        Value::Scalar { text, quoted: false } => text.parse().ok().filter(|number: &f64| number.is_finite()),
        _ => None,
    }
    .ok_or_else(|| cx.expected(node, "a number"))
}

/// Reads a whole number of at least `least`. A number of more than 32 bits counts as the largest one of 32
/// bits.
pub(super) fn whole(least: i32) -> impl Fn(&Node, &mut Reading) -> Result<i32, Diagnostic> {
    move |node, cx| {
        let number = node.scalar().and_then(|text| text.parse::<i64>().ok());
        number
            .filter(|number| *number >= least.into())
            .map(|number| i32::try_from(number).unwrap_or(i32::MAX))
            .ok_or_else(|| cx.expected(node, &format!("a whole number of at least {least}")))
    }
}

/// Reads a list of values that `read` reads.
pub(super) fn list<T>(
    read: impl Fn(&Node, &mut Reading) -> Result<T, Diagnostic>,
) -> impl Fn(&Node, &mut Reading) -> Result<Vec<T>, Diagnostic> {
    move |node, cx| match &node.value {
        Value::List(nodes) => nodes
            .iter()
            .enumerate()
            .map(|(i, node)| cx.within(format!("[{i}]"), |cx| read(node, cx)))
            .collect(),
        _ => Err(cx.expected(node, "a list")),
    }
}
