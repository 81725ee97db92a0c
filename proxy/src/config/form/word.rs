//! Values that are one of several words.

use std::marker::PhantomData;

use super::{Form, Shape};
use crate::config::{Diagnostic, document::Node, reading::Reading, suggest};

/// A type whose values have names.
pub(in crate::config) trait Choice: Copy + PartialEq + 'static {
    /// The word for a value of this type, for messages.
    const WHAT: &'static str;
    /// The name, the value and the meaning of each.
    const WORDS: &'static [(&'static str, Self, &'static str)];

    /// The value with this name.
    fn by_name(name: &str) -> Option<Self> {
        Self::WORDS
            .iter()
            .find(|(word, ..)| *word == name)
            .map(|(_, value, _)| *value)
    }
}

/// The name of a value of the type.
#[derive(Debug)]
pub(in crate::config) struct Word<T>(PhantomData<T>);

impl<T: Choice> Form for Word<T> {
    type Value = T;

    fn shape() -> Shape {
        Shape::Words(T::WORDS.iter().map(|(word, _, about)| (*word, *about)).collect())
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<T, Diagnostic> {
        let word = node.scalar().unwrap_or_default();
        T::by_name(word).ok_or_else(|| Diagnostic {
            remedy: suggest::remedy(word, T::WORDS.iter().map(|(word, ..)| *word)),
            ..cx.expected(node, T::WHAT)
        })
    }

    fn show(value: &T) -> Option<String> {
        T::WORDS
            .iter()
            .find(|(_, other, _)| other == value)
            .map(|(word, ..)| (*word).to_owned())
    }
}

/// `true` or `false`.
#[derive(Debug)]
pub(in crate::config) struct Flag;

impl Form for Flag {
    type Value = bool;

    fn shape() -> Shape {
        Shape::Flag
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<bool, Diagnostic> {
        match node.scalar() {
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            _ => Err(cx.expected(node, "`true` or `false`")),
        }
    }

    fn show(value: &bool) -> Option<String> {
        Some(value.to_string())
    }
}
