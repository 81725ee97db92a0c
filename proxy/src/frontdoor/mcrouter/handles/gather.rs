//! Handles that send to all their children.

use super::{Args, over};
use crate::{
    config::{
        Diagnostic,
        reading::Reading,
        routes::{self, Of},
        schema::{Leaf, Route},
    },
    frontdoor::mcrouter::builder::{Builder, BuiltHandles},
};

fn gather(
    builder: &mut Builder,
    args: &Args<'_>,
    spec: impl Into<Of>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let children = args.children(builder, cx)?;
    args.finish(&[], &[], cx)?;
    Ok(over(children, |children| Route::of(spec, children)))
}

pub(super) fn sync(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    gather(builder, args, routes::AllSync, cx)
}

pub(super) fn fastest(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    gather(builder, args, routes::AllFastest, cx)
}

pub(super) fn initial(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    gather(builder, args, routes::AllInitial, cx)
}

pub(super) fn majority(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    gather(builder, args, routes::AllMajority, cx)
}

/// `AllAsyncRoute`. A single child does not stand for the whole here: no request waits for it.
pub(super) fn asynchronous(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let children = args.children(builder, cx)?;
    args.finish(&[], &[], cx)?;
    Ok(BuiltHandles::One(
        children.map_or(Route::Leaf(Leaf::Null), |children| {
            Route::of(routes::AllAsync, children)
        }),
    ))
}
