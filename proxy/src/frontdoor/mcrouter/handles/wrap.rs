//! Handles that change or delay requests.

use std::time::Duration;

use super::Args;
use crate::{
    config::{
        Diagnostic,
        reading::Reading,
        schema::{Fault, Route, TtlAction},
    },
    frontdoor::mcrouter::{
        builder::{Builder, Built},
        object::{flag, text, whole},
    },
};

pub(super) fn log(builder: &mut Builder, args: &Args<'_>, cx: &mut Reading) -> Result<Built, Diagnostic> {
    let child = args.target(builder, "target", cx)?;
    args.finish(&[], &[], cx)?;
    Ok(Built::One(Route::Log(Box::new(child))))
}

pub(super) fn modify_key(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<Built, Diagnostic> {
    let child = Box::new(args.target(builder, "target", cx)?);
    if let Some(node) = args
        .object
        .as_ref()
        .and_then(|object| object.get("set_routing_prefix"))
    {
        let problem = format!("`set_routing_prefix` is not served yet, line: {}", node.at.line);
        return Err(cx.refuse(node.at, problem));
    }
    let ensure_prefix = args.take("ensure_key_prefix", cx, text)?.unwrap_or_default();
    let replace_prefix = args.take("replace_key_prefix", cx, text)?;
    let in_place = args.take("modify_inplace", cx, flag)?.unwrap_or(false);
    let suffix = args.take("set_key_suffix", cx, text)?.unwrap_or_default();
    args.finish(&[], &[], cx)?;
    Ok(Built::One(Route::ModifyKey {
        child,
        ensure_prefix,
        replace_prefix,
        in_place,
        suffix,
    }))
}

pub(super) fn modify_exptime(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<Built, Diagnostic> {
    let child = Box::new(args.target(builder, "target", cx)?);
    let Some(ttl) = args.take("exptime", cx, whole(i32::MIN))? else {
        return Err(cx.refuse(args.at, format!("`exptime` is missing, line: {}", args.at.line)));
    };
    let action = args.take("action", cx, |node, cx| match node.scalar() {
        Some("set") => Ok(TtlAction::Set),
        Some("min") => Ok(TtlAction::Min),
        _ => Err(cx.expected(node, "\"set\" or \"min\"")),
    });
    let action = action?.unwrap_or(TtlAction::Set);
    args.finish(&[], &[], cx)?;
    Ok(Built::One(Route::ModifyTtl {
        child,
        ttl: ttl.into(),
        action,
    }))
}

pub(super) fn latency(builder: &mut Builder, args: &Args<'_>, cx: &mut Reading) -> Result<Built, Diagnostic> {
    const UNSERVED: [&str; 5] = [
        "after_latency_ms",
        "total_latency_ms",
        "total_latency_percentile_ms",
        "request_payload_latency",
        "max_request_latency_us",
    ];
    let child = Box::new(args.target(builder, "child", cx)?);
    let delay = args
        .take("before_latency_ms", cx, whole(0))?
        .unwrap_or(0)
        .unsigned_abs();
    args.finish(&UNSERVED, &[], cx)?;
    let fault = Fault {
        delay: Duration::from_millis(delay.into()),
        error_rate: 0.0,
    };
    Ok(Built::One(Route::Fault { child, fault }))
}
