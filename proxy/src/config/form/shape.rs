//! Shapes of values, for the JSON Schema and the reference.

/// The shape of a value.
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
    /// A text of this kind, or a whole number.
    TextOrCount {
        what: &'static str,
        pattern: &'static str,
    },
    /// One of these words, each with its meaning.
    Words(Vec<(&'static str, &'static str)>),
    /// A list.
    List(Box<Shape>),
    /// Values by names of the user's choice. `what` says what has the names.
    ByName { what: &'static str, of: Box<Shape> },
    /// Values by these names.
    ByWord {
        words: Vec<(&'static str, &'static str)>,
        of: Box<Shape>,
    },
    /// One of these shapes.
    AnyOf(Vec<Shape>),
    /// A map with known keys.
    Section(Section),
    /// A route.
    Route,
    /// A pool's name, or a list of routes.
    Children,
}

/// A map with known keys.
#[derive(Clone, Debug)]
pub(in crate::config) struct Section {
    /// Its description.
    pub(in crate::config) about: &'static str,
    /// The key whose value may stand for the whole map: `hash: ketama` for `hash: {algorithm: ketama}`.
    pub(in crate::config) short: Option<&'static str>,
    /// Its keys, in the order of the reference.
    pub(in crate::config) keys: Vec<Key>,
}

/// A key of a section.
#[derive(Clone, Debug)]
pub(in crate::config) struct Key {
    pub(in crate::config) name: &'static str,
    pub(in crate::config) about: &'static str,
    pub(in crate::config) shape: Shape,
    /// Whether the key must be there.
    pub(in crate::config) required: bool,
    /// The default value, as one would write it.
    pub(in crate::config) default: Option<String>,
}
