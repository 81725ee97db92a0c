//! Maps with known keys. The reader, the JSON Schema and the reference follow from one table of keys.

use super::{
    Diagnostic,
    document::{Name, Node, Place, Value},
    form::{Form, Key},
    reading::Reading,
    suggest,
};

/// Describes the key whose form is `F`.
pub(super) fn key<F: Form>(name: &'static str, about: &'static str, absent: Option<F::Value>) -> Key {
    Key {
        name,
        about,
        shape: F::shape(),
        required: absent.is_none(),
        default: absent.as_ref().and_then(F::show),
    }
}

/// Keys that a section has besides its own, which are read together to one value. Each of them may be absent.
pub(super) trait Table {
    /// The type of the value.
    type Value;

    /// The keys, for the schema and the reference.
    fn keys() -> Vec<Key>;

    /// The names of the keys.
    fn names() -> impl Iterator<Item = &'static str>;

    /// Reads all of the keys.
    fn take(fields: &Fields<'_>, cx: &mut Reading) -> Result<Self::Value, Diagnostic>;

    /// The value where the whole section is absent. `None`: the section must be there.
    fn absent() -> Option<Self::Value> {
        None
    }
}

/// The entries of a map, all of them known.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    at: Place,
    entries: &'a [(Name, Node)],
    /// The short form: this value is that of this key.
    short: Option<(&'static str, &'a Node)>,
}

impl<'a> Fields<'a> {
    /// Opens a map, or a short form where there is one. Unknown keys are recorded as mistakes.
    pub(super) fn open(
        node: &'a Node,
        known: &[&'static str],
        short: Option<&'static str>,
        cx: &mut Reading,
    ) -> Result<Self, Diagnostic> {
        let Value::Map(entries) = &node.value else {
            return match short {
                Some(key) if !node.is_null() => Ok(Self {
                    at: node.at,
                    entries: &[],
                    short: Some((key, node)),
                }),
                _ => Err(cx.expected(node, &format!("a map with the keys {}", known.join(", ")))),
            };
        };
        let strangers = entries
            .iter()
            .filter(|(name, _)| !known.contains(&name.text.as_str()));
        for (name, _) in strangers {
            let mistake = Diagnostic {
                remedy: suggest::remedy(&name.text, known.iter().copied()),
                ..cx.refuse(
                    name.at,
                    format!("unknown key `{}`", super::document::shortened(&name.text)),
                )
            };
            cx.mistakes.push(mistake);
        }
        Ok(Self {
            at: node.at,
            entries,
            short: None,
        })
    }

    /// The place of the map.
    pub(super) fn at(&self) -> Place {
        self.at
    }

    /// The value of this key.
    pub(super) fn node(&self, key: &str) -> Option<&'a Node> {
        match self.short {
            Some((short, node)) if short == key => Some(node),
            _ => {
                let mut entries = self.entries.iter();
                entries.find_map(|(name, node)| (name.text == key).then_some(node))
            }
        }
    }

    /// Reads the value of a key. `absent` is the value where the key is missing.
    pub(super) fn take<F: Form>(
        &self,
        key: &'static str,
        absent: Option<F::Value>,
        cx: &mut Reading,
    ) -> Result<F::Value, Diagnostic> {
        if let Some((short, node)) = self.short
            && short == key
        {
            return F::read(node, cx);
        }
        match self.entries.iter().find(|(name, _)| name.text == key) {
            Some((_, node)) => cx.within(key, |cx| F::read(node, cx)),
            None => match absent {
                Some(absent) => Ok(absent),
                None => F::mistaken(cx.refuse(self.at, format!("the key `{key}` is missing")), cx),
            },
        }
    }
}

/// Declares a section: a struct with one field for each key, and its [`Form`].
///
/// `key: Form = value` gives the default; a key without one must be there unless its form says what absence
/// means. `..field: Table` stands before them for the keys of a [`Table`].
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        $(#[short($short:ident)])?
        $vis:vis struct $name:ident {
            $( ..$field:ident : $table:ty, )?
            $( $(#[doc = $doc:literal])+ $key:ident : $form:ty $(= $default:expr)?, )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug)]
        $vis struct $name {
            $( pub(super) $field: <$table as $crate::config::section::Table>::Value, )?
            $( $(#[doc = $doc])+ pub(super) $key: <$form as $crate::config::form::Form>::Value, )+
        }

        impl $crate::config::form::Form for $name {
            type Value = Self;

            fn shape() -> $crate::config::form::Shape {
                $crate::config::form::Shape::Section($crate::config::form::Section {
                    about: concat!($($about, "\n"),+),
                    short: $crate::config::section::section!(@short $($short)?),
                    keys: [
                        $( <$table as $crate::config::section::Table>::keys(), )?
                        vec![ $(
                            $crate::config::section::key::<$form>(
                                stringify!($key),
                                concat!($($doc, "\n"),+),
                                $crate::config::section::section!(@absent $form $(, $default)?),
                            ),
                        )+ ],
                    ]
                    .concat(),
                })
            }

            fn read(
                node: &$crate::config::document::Node,
                cx: &mut $crate::config::reading::Reading,
            ) -> Result<Self, $crate::config::Diagnostic> {
                let short = $crate::config::section::section!(@short $($short)?);
                let known = [
                    $( <$table as $crate::config::section::Table>::names().collect(), )?
                    vec![$(stringify!($key)),+],
                ]
                .concat();
                let fields = $crate::config::section::Fields::open(node, &known, short, cx)?;
                // All keys are read, whatever is wrong with one of them.
                $( let $field = <$table as $crate::config::section::Table>::take(&fields, cx); )?
                $(
                    let $key = fields.take::<$form>(
                        stringify!($key),
                        $crate::config::section::section!(@absent $form $(, $default)?),
                        cx,
                    );
                )+
                match ($($field,)? $($key,)+) {
                    ($(Ok($field),)? $(Ok($key),)+) => Ok(Self { $($field,)? $($key,)+ }),
                    ($($field,)? $($key,)+) => {
                        let mistakes = [$($field.err(),)? $($key.err(),)+].into_iter().flatten().map(Err::<Self, _>).collect();
                        cx.all(mistakes).and_then(|mut read| read.pop().ok_or_else(|| cx.refuse(node.at, "refused")))
                    }
                }
            }

            fn absent() -> Option<Self> {
                Some(Self {
                    $( $field: <$table as $crate::config::section::Table>::absent()?, )?
                    $( $key: $crate::config::section::section!(@absent $form $(, $default)?)?, )+
                })
            }
        }
    };
    (@short) => { None };
    (@short $short:ident) => { Some(stringify!($short)) };
    (@absent $form:ty) => { <$form as $crate::config::form::Form>::absent() };
    (@absent $form:ty, $default:expr) => { Some($default) };
}
pub(super) use section;
