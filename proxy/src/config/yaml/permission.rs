//! Permissions of a file, as `chmod` and `chown` take them.

use crate::config::{
    Diagnostic,
    document::Node,
    form::{Form, Shape},
    reading::Reading,
    schema::{Id, Ownership},
};

/// Three octal digits.
#[derive(Debug)]
pub(in crate::config) struct Mode;

impl Form for Mode {
    type Value = u32;

    fn shape() -> Shape {
        Shape::TextOrCount {
            what: "mode",
            pattern: "^0?[0-7]{3}$",
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<u32, Diagnostic> {
        let text = node.scalar().unwrap_or_default();
        let digits = text
            .strip_prefix('0')
            .filter(|rest| rest.len() == 3)
            .unwrap_or(text);
        let is_octal = digits.len() == 3 && digits.bytes().all(|b| (b'0'..=b'7').contains(&b));
        match u32::from_str_radix(digits, 8) {
            Ok(mode) if is_octal => Ok(mode),
            _ => Err(cx
                .expected(node, "a mode")
                .with_remedy("write three octal digits, as 660")),
        }
    }
}

/// `USER`, `USER:GROUP` or `:GROUP`.
#[derive(Debug)]
pub(in crate::config) struct Owner;

impl Form for Owner {
    type Value = Ownership;

    fn shape() -> Shape {
        Shape::TextOrCount {
            what: "owner",
            pattern: "^[A-Za-z0-9_.-]*(:[A-Za-z0-9_.-]+)?$",
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Ownership, Diagnostic> {
        let text = node.scalar().unwrap_or_default();
        let (user, group) = text
            .split_once(':')
            .map_or((text, None), |(user, group)| (user, Some(group)));
        let good = |name: &str| {
            let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
            !name.is_empty() && name.len() <= 32 && name.bytes().all(plain)
        };
        let user_good = good(user) || user.is_empty() && group.is_some();
        if !user_good || !group.is_none_or(good) {
            return Err(cx
                .expected(node, "an owner")
                .with_remedy("write `USER`, `USER:GROUP` or `:GROUP`, names or numbers"));
        }
        let id = |name: &str| match name.parse() {
            Ok(number) => Id::Number(number),
            Err(_) => Id::Name(name.to_owned()),
        };
        Ok(Ownership {
            user: Some(user).filter(|user| !user.is_empty()).map(id),
            group: group.map(id),
        })
    }
}
