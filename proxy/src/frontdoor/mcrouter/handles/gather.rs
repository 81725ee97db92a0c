//! Handles that send to all their children.

use super::{Args, over};
use crate::{
    config::{
        Diagnostic,
        reading::Reading,
        schema::{Children, Route},
    },
    frontdoor::mcrouter::builder::{Builder, BuiltHandles},
};

fn gather(
    builder: &mut Builder,
    args: &Args<'_>,
    make: fn(Children) -> Route,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let children = args.children(builder, cx)?;
    args.finish(&[], &[], cx)?;
    Ok(over(children, make))
}

pub(super) fn sync(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    gather(builder, args, Route::AllSync, cx)
}

pub(super) fn fastest(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    gather(builder, args, Route::AllFastest, cx)
}

pub(super) fn initial(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    gather(builder, args, Route::AllInitial, cx)
}

pub(super) fn majority(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    gather(builder, args, Route::AllMajority, cx)
}

/// `AllAsyncRoute`. A single child does not stand for the whole here: no request waits for it.
pub(super) fn asynchronous(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let children = args.children(builder, cx)?;
    args.finish(&[], &[], cx)?;
    Ok(BuiltHandles::One(children.map_or(Route::Null, Route::AllAsync)))
}
