//! Handles at the ends of the tree: pools, errors and null.

use super::Args;
use crate::{
    config::{
        Diagnostic,
        document::{Node, Value},
        reading::Reading,
        schema::{Algorithm, Children, Hash, Route},
    },
    frontdoor::mcrouter::{
        builder::{Builder, Built},
        hash,
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
const IDLE: [&str; 4] = ["asynclog", "asynclog_name", "shadow_policy", "split_shard_fanout"];

pub(super) fn null(_: &mut Builder, args: &Args<'_>, cx: &mut Reading) -> Result<Built, Diagnostic> {
    args.finish(&[], &[], cx)?;
    Ok(Built::One(Route::Null))
}

pub(super) fn error(_: &mut Builder, args: &Args<'_>, cx: &mut Reading) -> Result<Built, Diagnostic> {
    let said = args.main("response").map(|node| text(node, cx)).transpose()?;
    if let Some(node) = args.object.as_ref().and_then(|object| object.get("result"))
        && !matches!(node.scalar(), Some("mc_res_local_error" | "local_error"))
    {
        let problem = format!(
            "the result {} is not served yet, line: {}",
            node.describe(),
            node.at.line
        );
        return Err(cx.refuse(node.at, problem));
    }
    args.finish(&[], &["enable_logging"], cx)?;
    let said = said
        .filter(|said| !said.is_empty())
        .unwrap_or_else(|| "local error".to_owned());
    match said.len() > 1024 || said.chars().any(char::is_control) {
        true => Err(cx.refuse(args.at, "the text is not one line of at most 1024 bytes")),
        false => Ok(Built::One(Route::Error(said))),
    }
}

/// `Pool|A`: the list of A's servers.
pub(super) fn members(builder: &mut Builder, args: &Args<'_>, cx: &mut Reading) -> Result<Built, Diagnostic> {
    let name = pool_name(builder, args, cx)?;
    args.finish(&[], &[], cx)?;
    let is_empty = builder
        .pools
        .listed
        .get(&name)
        .is_none_or(|pool| pool.servers.is_empty());
    Ok(if is_empty {
        Built::List(Vec::new())
    } else {
        Built::Members(name)
    })
}

pub(super) fn pool(builder: &mut Builder, args: &Args<'_>, cx: &mut Reading) -> Result<Built, Diagnostic> {
    let name = pool_name(builder, args, cx)?;
    let own = args.take("hash", cx, hash::read)?;
    let own = match &args.object {
        // Weights beside the hash belong to the hash.
        Some(object) => match object.take("weights", cx, list(number))? {
            Some(weights) => {
                let hash = own.unwrap_or(Hash::of(Algorithm::WeightedCh3));
                Some(Hash {
                    weights: hash.weights.or(Some(weights)),
                    ..hash
                })
            }
            None => own,
        },
        None => None,
    };
    args.finish(&UNSERVED, &IDLE, cx)?;
    let Some(pool) = builder.pools.listed.get(&name) else {
        return Err(cx.refuse(args.at, "there is no such pool"));
    };
    if pool.servers.is_empty() {
        return Ok(Built::One(match pool.error_on_empty {
            true => Route::Error(format!("HashRoute with empty children, name: {name}")),
            false => Route::Null,
        }));
    }
    let Some(mut own) = own else {
        return Ok(Built::One(Route::Pool(name)));
    };
    if pool.pool.hash.algorithm == Algorithm::WeightedCh3 {
        own.weights = own
            .weights
            .or_else(|| Some(pool.servers.iter().map(|server| server.weight).collect()));
    }
    own.tags = own.tags.or_else(|| pool.tags.clone());
    let hash = hash::fit(own, pool.servers.len(), args.at, cx)?;
    Ok(Built::One(Route::Hash {
        children: Children::Pool(name),
        hash: Some(hash),
    }))
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
