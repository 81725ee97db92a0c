//! Handles that move keys, or keep several copies of them.

use std::{collections::BTreeMap, time::Duration};

use super::Args;
use crate::{
    config::{
        Diagnostic,
        document::{Node, Value, shortened},
        reading::Reading,
        routes,
        schema::{Route, ShardCopies},
    },
    frontdoor::mcrouter::{
        builder::{Builder, BuiltHandles},
        object::{Object, flag, whole},
    },
};

/// Reads seconds, as a time or as a span.
fn seconds(node: &Node, cx: &mut Reading) -> Result<u64, Diagnostic> {
    let seconds = node.scalar().and_then(|text| text.parse::<i64>().ok());
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    seconds.ok_or_else(|| cx.expected(node, "a whole number of at least 0"))
}

pub(super) fn migrate(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let from = Box::new(args.target(builder, "from", cx)?);
    let to = Box::new(args.target(builder, "to", cx)?);
    let Some(start) = args.take("start_time", cx, seconds)? else {
        let problem = format!("MigrateRoute: `start_time` is missing, line: {}", args.at.line);
        return Err(cx.refuse(args.at, problem));
    };
    let interval = args.take("interval", cx, seconds)?.unwrap_or(3600);
    args.finish(&[], &[], cx)?;
    Ok(BuiltHandles::One(Route::pair(
        routes::Migrate {
            start,
            interval: Duration::from_secs(interval),
        },
        from,
        to,
    )))
}

pub(super) fn key_split(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let child = Box::new(args.target(builder, "destination", cx)?);
    let copies = args.take("replicas", cx, |node, cx| match whole(0)(node, cx)? {
        copies @ 2..=1000 => Ok(copies.unsigned_abs()),
        _ => Err(cx.expected(node, "a number from 2 to 1000")),
    })?;
    let Some(copies) = copies else {
        let problem = format!("KeySplitRoute: `replicas` is missing, line: {}", args.at.line);
        return Err(cx.refuse(args.at, problem));
    };
    let all_sync = args.take("all_sync", cx, flag)?.unwrap_or(false);
    let first_hit = args.take("first_hit", cx, flag)?.unwrap_or(false);
    args.finish(&[], &[], cx)?;
    Ok(BuiltHandles::One(Route::one(
        routes::KeySplit {
            copies,
            all_sync,
            first_hit,
        },
        child,
    )))
}

pub(super) fn shard_split(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let child = Box::new(args.target(builder, "target", cx)?);
    let splits = args.take("shard_splits", cx, splits)?.unwrap_or_default();
    args.finish(&[], &["split_shard_fanout"], cx)?;
    Ok(BuiltHandles::One(Route::one(
        routes::ShardSplit { splits },
        child,
    )))
}

/// Reads `shard_splits`: for each shard a number of copies, or how it changes.
pub(super) fn splits(node: &Node, cx: &mut Reading) -> Result<BTreeMap<String, ShardCopies>, Diagnostic> {
    let mut splits = BTreeMap::new();
    for (shard, node) in Object::of(node, cx)?.entries() {
        let read = cx.within(&*shortened(&shard.text), |cx| match &node.value {
            Value::Map(_) => changing(node, cx),
            _ => Ok(ShardCopies::of(copies(node, cx)?)),
        })?;
        if (read.copies, read.before) != (1, 1) {
            splits.insert(shard.text.clone(), read);
        }
    }
    Ok(splits)
}

fn changing(node: &Node, cx: &mut Reading) -> Result<ShardCopies, Diagnostic> {
    let object = Object::of(node, cx)?;
    let read = ShardCopies {
        before: object.take("old_split_size", cx, copies)?.unwrap_or(1),
        copies: object.take("new_split_size", cx, copies)?.unwrap_or(1),
        start: object.take("split_start", cx, seconds)?.unwrap_or(0),
        period: Duration::from_secs(object.take("migration_period", cx, seconds)?.unwrap_or(0)),
        all_deletes: object.take("fanout_deletes", cx, flag)?.unwrap_or(false),
    };
    object.finish(&[], &[], cx)?;
    Ok(read)
}

/// Reads a number of copies. One that is too large counts as the largest.
fn copies(node: &Node, cx: &mut Reading) -> Result<u32, Diagnostic> {
    let copies = whole(1)(node, cx)?.unsigned_abs();
    if copies > ShardCopies::MOST {
        cx.warn(
            node.at,
            format!("{copies} copies are too many: {} it is", ShardCopies::MOST),
        );
    }
    Ok(copies.min(ShardCopies::MOST))
}
