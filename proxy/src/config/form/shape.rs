//! What a form looks like, for the JSON Schema and the reference.

/// A form described.
#[derive(Clone, Debug)]
pub(in crate::config) enum Shape {
    /// `true` or `false`.
    Flag,
    /// A whole number within bounds.
    Count { min: i64, max: i64 },
    /// A number within bounds.
    Number { min: f64, max: f64 },
    /// A text of some kind, with the regular expression that it matches if there is one.
    Text {
        what: &'static str,
        pattern: Option<&'static str>,
    },
    /// The same, or a whole number alone.
    TextOrCount {
        what: &'static str,
        pattern: &'static str,
    },
    /// One of these words, each with what it means.
    Words(Vec<(&'static str, &'static str)>),
    /// Several.
    List(Box<Shape>),
    /// Values by names of the user's choice; `what` is named.
    ByName { what: &'static str, of: Box<Shape> },
    /// Values by these names.
    ByWord {
        words: Vec<(&'static str, &'static str)>,
        of: Box<Shape>,
    },
    /// One of these.
    AnyOf(Vec<Shape>),
    /// Keys that are known beforehand.
    Section(Section),
    /// A route.
    Route,
    /// Where a route may go on.
    Children,
}

/// A section described.
#[derive(Clone, Debug)]
pub(in crate::config) struct Section {
    /// What it is about.
    pub(in crate::config) about: &'static str,
    /// The key that may stand alone: `hash: ketama` for `hash: {algorithm: ketama}`.
    pub(in crate::config) short: Option<&'static str>,
    /// Its keys, in the order of the reference.
    pub(in crate::config) keys: Vec<Key>,
}

/// A key described.
#[derive(Clone, Debug)]
pub(in crate::config) struct Key {
    pub(in crate::config) name: &'static str,
    pub(in crate::config) about: &'static str,
    pub(in crate::config) shape: Shape,
    /// Something must stand there.
    pub(in crate::config) required: bool,
    /// What holds without it, as one would write it.
    pub(in crate::config) default: Option<String>,
}
