//! Texts.

use std::path::PathBuf;

use super::{Form, Shape};
use crate::config::{Diagnostic, document::Node, reading::Reading};

/// Any text, numbers included.
#[derive(Debug)]
pub(in crate::config) struct Text;

impl Form for Text {
    type Value = String;

    fn shape() -> Shape {
        Shape::Text {
            what: "text",
            pattern: None,
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<String, Diagnostic> {
        match node.scalar() {
            Some(text) => Ok(text.to_owned()),
            None => Err(cx.expected(node, "a text")),
        }
    }

    fn show(value: &String) -> Option<String> {
        Some(format!("\"{value}\""))
    }
}

/// The path of a file.
#[derive(Debug)]
pub(in crate::config) struct PathText;

impl Form for PathText {
    type Value = PathBuf;

    fn shape() -> Shape {
        Shape::Text {
            what: "path",
            pattern: None,
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<PathBuf, Diagnostic> {
        match node.scalar() {
            Some(text) if !node.is_null() && !text.contains('\0') => Ok(PathBuf::from(text)),
            _ => Err(cx.expected(node, "the path of a file")),
        }
    }
}

/// One printable ASCII character.
#[derive(Debug)]
pub(in crate::config) struct Character;

impl Form for Character {
    type Value = u8;

    fn shape() -> Shape {
        Shape::Text {
            what: "one character",
            pattern: Some("^[!-~]$"),
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<u8, Diagnostic> {
        match node.scalar().map(str::as_bytes) {
            Some([byte]) if byte.is_ascii_graphic() => Ok(*byte),
            _ => Err(cx.expected(node, "one printable character")),
        }
    }

    fn show(value: &u8) -> Option<String> {
        Some(format!("\"{}\"", char::from(*value)))
    }
}

/// The two characters of a hash tag.
#[derive(Debug)]
pub(in crate::config) struct Tag;

impl Form for Tag {
    type Value = [u8; 2];

    fn shape() -> Shape {
        Shape::Text {
            what: "two characters",
            pattern: Some("^[!-~]{2}$"),
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<[u8; 2], Diagnostic> {
        let text = node.scalar().unwrap_or_default();
        <[u8; 2]>::try_from(text.as_bytes())
            .ok()
            .filter(|tag| tag.iter().all(u8::is_ascii_graphic))
            .ok_or_else(|| {
                cx.expected(
                    node,
                    "two characters, the one before the tag and the one after it",
                )
                .with_remedy("write for example `\"{}\"`")
            })
    }
}
