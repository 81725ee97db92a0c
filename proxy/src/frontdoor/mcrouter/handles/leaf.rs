//! Handles at the ends of the tree: pools, errors and null.

use proxima_wire::message::Outcome;

use super::{Args, results};
use crate::{
    config::{
        Diagnostic,
        document::{Node, Value},
        reading::Reading,
        schema::{ErrorReply, Leaf, Route},
    },
    frontdoor::mcrouter::{
        builder::{Builder, BuiltHandles},
        object::{Object, text},
    },
};

pub(super) fn null(_: &mut Builder, args: &Args<'_>, cx: &mut Reading) -> Result<BuiltHandles, Diagnostic> {
    args.finish(&[], &[], cx)?;
    Ok(BuiltHandles::One(Route::Leaf(Leaf::Null)))
}

pub(super) fn dev_null(
    _: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    args.finish(&[], &[], cx)?;
    Ok(BuiltHandles::One(Route::Leaf(Leaf::Discard)))
}

pub(super) fn error(_: &mut Builder, args: &Args<'_>, cx: &mut Reading) -> Result<BuiltHandles, Diagnostic> {
    let said = args.main("response").map(|node| text(node, cx)).transpose()?;
    let result = args.take("result", cx, results::error)?;
    let (outcome, own) = result.unwrap_or((Outcome::LocalError, "local error"));
    args.finish(&[], &["enable_logging"], cx)?;
    let text = said
        .filter(|said| !said.is_empty())
        .unwrap_or_else(|| own.to_owned());
    match text.len() > 1024 || text.chars().any(char::is_control) {
        true => Err(cx.refuse(args.at, "the text is not one line of at most 1024 bytes")),
        false => Ok(BuiltHandles::One(Route::Leaf(Leaf::Error(ErrorReply {
            outcome,
            text,
        })))),
    }
}

/// `Pool|A`: the list of A's servers. `{"type": "Pool", "name": "A", "servers": […]}` is that of a pool which
/// is written where it is used.
pub(super) fn members(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let name = match &args.object {
        // The object is the pool.
        Some(object) if object.get("pool").is_none() => inline(builder, &object.node(), cx)?,
        _ => pool_name(builder, args, cx)?,
    };
    args.finish(&[], &[], cx)?;
    let built = builder.children_of(&name, cx)?;
    Ok(built.unwrap_or_else(|| BuiltHandles::List(Vec::new())))
}

/// The name of the pool: a name, or the pool itself with its name in it.
pub(super) fn pool_name(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<String, Diagnostic> {
    let Some(node) = args.main("pool") else {
        return Err(cx.refuse(args.at, format!("`pool` is missing, line: {}", args.at.line)));
    };
    cx.within("pool", |cx| named(builder, node, cx))
}

fn named(builder: &mut Builder, node: &Node, cx: &mut Reading) -> Result<String, Diagnostic> {
    if let Value::Map(_) = &node.value {
        return inline(builder, node, cx);
    }
    let name = text(node, cx)?;
    builder.pools.check(&name, node, cx)?;
    Ok(name)
}

/// A pool that is written where it is used.
fn inline(builder: &mut Builder, node: &Node, cx: &mut Reading) -> Result<String, Diagnostic> {
    let name = text(Object::of(node, cx)?.require("name", cx)?, cx)?;
    builder.pools.add(&name, node, cx)?;
    Ok(name)
}
