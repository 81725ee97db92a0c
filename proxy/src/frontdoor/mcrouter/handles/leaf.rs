//! Handles at the ends of the tree: pools, errors and null.

use proxima_wire::message::Outcome;

use super::{
    Args,
    hash::{self, Choice},
    results,
};
use crate::{
    config::{
        Diagnostic,
        document::{Node, Value},
        reading::Reading,
        schema::{Algorithm, Children, ErrorReply, Hash, Route},
    },
    frontdoor::mcrouter::{
        builder::{Builder, Built},
        object::{Object, list, number, text},
    },
};

/// Keys of PoolRoute that would change where requests go, or whether they do.
const UNSERVED: [&str; 6] = [
    "max_outstanding",
    "slow_warmup",
    "shadows",
    "rates",
    "shard_splits",
    "bucketize",
];
/// Keys of features that do not exist here.
const IDLE: [&str; 2] = ["shadow_policy", "split_shard_fanout"];

pub(super) fn null(_: &mut Builder, args: &Args<'_>, cx: &mut Reading) -> Result<Built, Diagnostic> {
    args.finish(&[], &[], cx)?;
    Ok(Built::One(Route::Null))
}

pub(super) fn error(_: &mut Builder, args: &Args<'_>, cx: &mut Reading) -> Result<Built, Diagnostic> {
    let said = args.main("response").map(|node| text(node, cx)).transpose()?;
    let result = args.take("result", cx, results::error)?;
    let (outcome, own) = result.unwrap_or((Outcome::LocalError, "local error"));
    args.finish(&[], &["enable_logging"], cx)?;
    let text = said
        .filter(|said| !said.is_empty())
        .unwrap_or_else(|| own.to_owned());
    match text.len() > 1024 || text.chars().any(char::is_control) {
        true => Err(cx.refuse(args.at, "the text is not one line of at most 1024 bytes")),
        false => Ok(Built::One(Route::Error(ErrorReply { outcome, text }))),
    }
}

/// `Pool|A`: the list of A's servers.
pub(super) fn members(builder: &mut Builder, args: &Args<'_>, cx: &mut Reading) -> Result<Built, Diagnostic> {
    let name = pool_name(builder, args, cx)?;
    args.finish(&[], &[], cx)?;
    let built = builder.children_of(&name, cx)?;
    Ok(built.unwrap_or_else(|| Built::List(Vec::new())))
}

/// The pool, and its name.
pub(super) fn pool(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<(Built, String), Diagnostic> {
    let name = pool_name(builder, args, cx)?;
    Ok((of_name(builder, &name, args, cx)?, name))
}

fn of_name(
    builder: &mut Builder,
    name: &str,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<Built, Diagnostic> {
    let mut own = args.take("hash", cx, hash::read)?;
    // Weights beside the hash belong to the hash.
    if let Some(weights) = args.take("weights", cx, list(number))? {
        let choice = own.unwrap_or(Choice::Hash(Hash::of(Algorithm::WeightedCh3)));
        own = Some(choice.or_weights(weights));
    }
    args.finish(&UNSERVED, &IDLE, cx)?;
    let Some(pool) = builder.pools.listed.get(name).cloned() else {
        return Err(cx.refuse(args.at, "there is no such pool"));
    };
    let children = match builder.children_of(name, cx)? {
        Some(Built::Members(name)) if own.is_none() => return Ok(Built::One(Route::Pool(name))),
        Some(Built::Members(name)) => Children::Pool(name),
        Some(Built::One(only)) => return Ok(Built::One(only)),
        Some(Built::List(routes)) => Children::List(routes),
        None => {
            return Ok(Built::One(match pool.error_on_empty {
                true => Route::Error(format!("HashRoute with empty children, name: {name}").into()),
                false => Route::Null,
            }));
        }
    };
    let choice = own.unwrap_or(Choice::Hash(pool.pool.hash.clone()));
    let choice = match pool.weights {
        Some(weights) => choice.or_weights(weights),
        None => choice,
    };
    let choice = match pool.tags {
        Some(tags) => choice.or_tags(tags),
        None => choice,
    };
    let count = builder.count(&children);
    let route = hash::over(choice, children, count, args.at, cx)?;
    Ok(Built::One(route))
}

/// The name of the pool: a name, or the pool itself with its name in it.
fn pool_name(builder: &mut Builder, args: &Args<'_>, cx: &mut Reading) -> Result<String, Diagnostic> {
    let Some(node) = args.main("pool") else {
        return Err(cx.refuse(args.at, format!("`pool` is missing, line: {}", args.at.line)));
    };
    cx.within("pool", |cx| named(builder, node, cx))
}

fn named(builder: &mut Builder, node: &Node, cx: &mut Reading) -> Result<String, Diagnostic> {
    if let Value::Map(_) = &node.value {
        let name = text(Object::of(node, cx)?.require("name", cx)?, cx)?;
        builder.pools.add(&name, node, cx)?;
        return Ok(name);
    }
    let name = text(node, cx)?;
    builder.pools.get(&name, node, cx)?;
    Ok(name)
}
