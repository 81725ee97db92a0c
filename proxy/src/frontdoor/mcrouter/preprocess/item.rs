//! Values while a configuration is expanded. Lists and objects are shared: to repeat one costs nothing.

use std::{
    cell::OnceCell,
    cmp::Ordering,
    collections::HashMap,
    fmt::{self, Write as _},
    rc::Rc,
};

use crate::config::{
    Diagnostic, Place,
    document::{DEPTH_LIMIT, Name, Node, Value},
};

/// The values that one value may hold when it is written out.
pub(super) const SIZE_LIMIT: usize = 5_000_000;

/// Bytes of a text that count as one value.
const PART: usize = 64;

/// Entries of an object from which on it has an index.
const INDEXED: usize = 16;

/// A value, and the place from which it comes.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) at: Place,
    pub(super) value: Json,
}

/// A JSON value.
#[derive(Clone, Debug)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(Rc<str>),
    List(Rc<List>),
    Map(Rc<Map>),
}

/// A constant that is there from the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Constant {
    Int(i64),
    Text(String),
}

/// As JSON.
impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => write!(f, "{number}"),
            Self::Text(text) => quoted(text, f),
        }
    }
}

/// The elements of a list.
#[derive(Debug)]
pub(super) struct List {
    pub(super) items: Vec<Item>,
    extent: Extent,
}

/// The entries of an object, in order. No key stands twice.
#[derive(Debug)]
pub(super) struct Map {
    pub(super) entries: Vec<(Key, Item)>,
    extent: Extent,
    index: OnceCell<HashMap<Rc<str>, usize>>,
}

/// The key of an entry.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) at: Place,
    pub(super) text: Rc<str>,
}

/// How large and how deep a value is when it is written out.
#[derive(Clone, Copy, Debug)]
struct Extent {
    size: usize,
    depth: usize,
}

impl Extent {
    const ONE: Self = Self { size: 1, depth: 1 };

    fn of_text(text: &str) -> Self {
        Self {
            size: 1 + text.len() / PART,
            depth: 1,
        }
    }

    /// Takes in a value that stands within this one.
    fn hold(&mut self, part: Self) -> Result<(), Diagnostic> {
        self.size = self.size.saturating_add(part.size);
        self.depth = self.depth.max(part.depth + 1);
        if self.size > SIZE_LIMIT {
            let problem = format!("the value becomes larger than {SIZE_LIMIT} values");
            return Err(Diagnostic::whole(problem));
        }
        if self.depth > DEPTH_LIMIT {
            let problem = format!("the value becomes nested more than {DEPTH_LIMIT} deep");
            return Err(Diagnostic::whole(problem));
        }
        Ok(())
    }
}

/// Makes a list.
#[derive(Debug)]
pub(super) struct ListBuilder {
    items: Vec<Item>,
    extent: Extent,
}

impl ListBuilder {
    pub(super) fn new() -> Self {
        Self {
            items: Vec::new(),
            extent: Extent::ONE,
        }
    }

    pub(super) fn push(&mut self, item: Item) -> Result<(), Diagnostic> {
        self.extent.hold(item.value.extent())?;
        self.items.push(item);
        Ok(())
    }

    pub(super) fn done(self) -> Json {
        Json::List(Rc::new(List {
            items: self.items,
            extent: self.extent,
        }))
    }
}

/// Makes an object. The last entry of a key counts.
#[derive(Debug)]
pub(super) struct MapBuilder {
    entries: Vec<(Key, Item)>,
    extent: Extent,
    index: HashMap<Rc<str>, usize>,
}

impl MapBuilder {
    pub(super) fn new() -> Self {
        Self {
            entries: Vec::new(),
            extent: Extent::ONE,
            index: HashMap::new(),
        }
    }

    pub(super) fn set(&mut self, key: Key, item: Item) -> Result<(), Diagnostic> {
        // What an overwritten value held stays counted: the limit is no exact one.
        self.extent.hold(Extent::of_text(&key.text))?;
        self.extent.hold(item.value.extent())?;
        let earlier = match self.entries.len() < INDEXED {
            true => self.entries.iter().position(|(known, _)| known.text == key.text),
            false => {
                if self.index.is_empty() {
                    self.index = index(&self.entries);
                }
                self.index.get(&key.text).copied()
            }
        };
        if let Some(entry) = earlier.and_then(|i| self.entries.get_mut(i)) {
            *entry = (key, item);
        } else {
            if !self.index.is_empty() {
                self.index.insert(Rc::clone(&key.text), self.entries.len());
            }
            self.entries.push((key, item));
        }
        Ok(())
    }

    pub(super) fn done(self) -> Json {
        Json::Map(Rc::new(Map {
            entries: self.entries,
            extent: self.extent,
            index: OnceCell::new(),
        }))
    }
}

fn index(entries: &[(Key, Item)]) -> HashMap<Rc<str>, usize> {
    let keys = entries.iter().map(|(key, _)| Rc::clone(&key.text));
    keys.zip(0..).collect()
}

impl Map {
    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Item> {
        let entry = if self.entries.len() < INDEXED {
            self.entries.iter().find(|(known, _)| &*known.text == key)
        } else {
            let index = self.index.get_or_init(|| index(&self.entries));
            index.get(key).and_then(|i| self.entries.get(*i))
        };
        entry.map(|(_, item)| item)
    }
}

impl Item {
    /// Takes a tree over. `at`: the place of every part of it. `None`: the places that the parts have.
    pub(super) fn of(node: Node, at: Option<Place>) -> Result<Self, Diagnostic> {
        let here = at.unwrap_or(node.at);
        let value = match node.value {
            Value::Scalar { text, quoted: true } => Json::Text(text.into()),
            Value::Scalar { text, .. } => Json::of_word(&text),
            Value::List(nodes) => {
                let mut list = ListBuilder::new();
                for node in nodes {
                    list.push(Self::of(node, at)?)?;
                }
                list.done()
            }
            Value::Map(entries) => {
                let mut map = MapBuilder::new();
                for (name, node) in entries {
                    let key = Key {
                        at: at.unwrap_or(name.at),
                        text: name.text.into(),
                    };
                    map.set(key, Self::of(node, at)?)?;
                }
                map.done()
            }
        };
        Ok(Self { at: here, value })
    }

    /// The tree that is read further. The limits of lists and objects bound it.
    pub(super) fn into_node(self) -> Node {
        let unquoted = |text: String| Value::Scalar { text, quoted: false };
        let value = match self.value {
            Json::Null => unquoted("null".to_owned()),
            Json::Bool(flag) => unquoted(flag.to_string()),
            Json::Int(number) => unquoted(number.to_string()),
            Json::Double(number) => unquoted(format!("{number:?}")),
            Json::Text(text) => Value::Scalar {
                text: String::from(&*text),
                quoted: true,
            },
            Json::List(list) => Value::List(list.items.iter().cloned().map(Self::into_node).collect()),
            Json::Map(map) => {
                let entry = |(key, item): &(Key, Self)| {
                    let name = Name {
                        at: key.at,
                        text: String::from(&*key.text),
                    };
                    (name, item.clone().into_node())
                };
                Value::Map(map.entries.iter().map(entry).collect())
            }
        };
        Node { at: self.at, value }
    }
}

impl Json {
    pub(super) fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(text.into())
    }

    /// A word without quotes: the JSON reader lets only numbers and three names pass.
    fn of_word(word: &str) -> Self {
        match word {
            "null" => Self::Null,
            "true" => Self::Bool(true),
            "false" => Self::Bool(false),
            _ => word
                .parse()
                .map(Self::Int)
                .unwrap_or_else(|_| Self::Double(word.parse().unwrap_or(f64::NAN))),
        }
    }

    /// The name of its type, as mcrouter's messages have it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Int(_) => "int64",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::List(_) => "array",
            Self::Map(_) => "object",
        }
    }

    /// The values that are touched when this one is read to its end.
    pub(super) fn size(&self) -> usize {
        self.extent().size
    }

    fn extent(&self) -> Extent {
        match self {
            Self::Text(text) => Extent::of_text(text),
            Self::List(list) => list.extent,
            Self::Map(map) => map.extent,
            _ => Extent::ONE,
        }
    }

    fn as_double(&self) -> Option<f64> {
        match self {
            Self::Int(number) => Some(*number as f64),
            Self::Double(number) => Some(*number),
            _ => None,
        }
    }

    /// The place of its type in the order of values of different types.
    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::List(_) => 1,
            Self::Bool(_) => 2,
            Self::Double(_) => 3,
            Self::Int(_) => 4,
            Self::Map(_) => 5,
            Self::Text(_) => 6,
        }
    }

    /// The order of two values. `None` if one of them is an object: objects have no order.
    pub(super) fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Map(_), _) | (_, Self::Map(_)) => None,
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            (Self::List(a), Self::List(b)) => {
                for (a, b) in a.items.iter().zip(&b.items) {
                    match a.value.order(&b.value)? {
                        Ordering::Equal => {}
                        order => return Some(order),
                    }
                }
                Some(a.items.len().cmp(&b.items.len()))
            }
            _ => match (self.as_double(), other.as_double()) {
                (Some(a), Some(b)) => Some(a.total_cmp(&b)),
                _ => Some(self.rank().cmp(&other.rank())),
            },
        }
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Map(a), Self::Map(b)) => {
                let same = |(key, item): &(Key, Item)| {
                    b.get(&key.text).is_some_and(|other| item.value == other.value)
                };
                Rc::ptr_eq(a, b) || (a.entries.len() == b.entries.len() && a.entries.iter().all(same))
            }
            (Self::List(a), Self::List(b)) => {
                let same = |(a, b): (&Item, &Item)| a.value == b.value;
                Rc::ptr_eq(a, b) || (a.items.len() == b.items.len() && a.items.iter().zip(&b.items).all(same))
            }
            _ => self.order(other) == Some(Ordering::Equal),
        }
    }
}

/// As JSON.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(flag) => write!(f, "{flag}"),
            Self::Int(number) => write!(f, "{number}"),
            Self::Double(number) => write!(f, "{number:?}"),
            Self::Text(text) => quoted(text, f),
            Self::List(list) => {
                f.write_char('[')?;
                for (i, item) in list.items.iter().enumerate() {
                    write!(f, "{}{}", if i == 0 { "" } else { "," }, item.value)?;
                }
                f.write_char(']')
            }
            Self::Map(map) => {
                f.write_char('{')?;
                for (i, (key, item)) in map.entries.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { "," })?;
                    quoted(&key.text, f)?;
                    write!(f, ":{}", item.value)?;
                }
                f.write_char('}')
            }
        }
    }
}

fn quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            c if c.is_control() => write!(f, "\\u{:04x}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}
