//! Handles that check the form of the key first.

use super::Args;
use crate::{
    config::{Diagnostic, reading::Reading, routes, schema::Route},
    frontdoor::mcrouter::{
        builder::{Builder, BuiltHandles},
        object::{list, text, whole},
    },
};

pub(super) fn key_parse(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let child = Box::new(args.target(builder, "target", cx)?);
    let missing = |key: &str, cx: &Reading| {
        let problem = format!("KeyParseRoute: `{key}` is missing, line: {}", args.at.line);
        cx.refuse(args.at, problem)
    };
    let parts = args.take("num_routing_parts", cx, whole(1))?;
    let parts = parts.ok_or_else(|| missing("num_routing_parts", cx))?;
    let delimiter = args.take("delimiter", cx, |node, cx| match text(node, cx)?.as_bytes() {
        [delimiter] => Ok(*delimiter),
        _ => Err(cx.expected(node, "one character")),
    })?;
    let delimiter = delimiter.ok_or_else(|| missing("delimiter", cx))?;
    args.finish(&[], &[], cx)?;
    Ok(BuiltHandles::One(Route::one(
        routes::KeyPart {
            parts: parts.unsigned_abs() as usize,
            delimiter,
        },
        child,
    )))
}

pub(super) fn hash_stop(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let child = Box::new(args.target(builder, "target", cx)?);
    let prefixes = args.take("prefixes", cx, list(text))?.unwrap_or_default();
    args.finish(&[], &[], cx)?;
    Ok(BuiltHandles::One(Route::one(
        routes::HashStop { prefixes },
        child,
    )))
}
