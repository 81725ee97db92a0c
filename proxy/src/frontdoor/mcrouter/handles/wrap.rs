//! Handles that change or delay requests.

use std::time::Duration;

use super::Args;
use crate::{
    config::{
        Diagnostic,
        document::{Node, Value},
        reading::Reading,
        routes,
        schema::{Route, TtlAction},
    },
    frontdoor::mcrouter::{
        builder::{Builder, BuiltHandles},
        object::{flag, list, number, text, whole},
        prefix::routing_prefix,
    },
};

pub(super) fn log(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let child = args.target(builder, "target", cx)?;
    args.finish(&[], &[], cx)?;
    Ok(BuiltHandles::One(Route::one(routes::Log, child)))
}

pub(super) fn modify_key(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let child = Box::new(args.target(builder, "target", cx)?);
    let routing_prefix = args.take("set_routing_prefix", cx, new_prefix)?;
    let ensure_prefix = args.take("ensure_key_prefix", cx, text)?.unwrap_or_default();
    let replace_prefix = args.take("replace_key_prefix", cx, text)?;
    let in_place = args.take("modify_inplace", cx, flag)?;
    if replace_prefix.is_some() && in_place.is_some() {
        let problem = format!(
            "replace_key_prefix and modify_inplace cannot be used together, line: {}",
            args.at.line
        );
        return Err(cx.refuse(args.at, problem));
    }
    let suffix = args.take("set_key_suffix", cx, text)?.unwrap_or_default();
    args.finish(&[], &[], cx)?;
    Ok(BuiltHandles::One(Route::one(
        routes::ModifyKey {
            routing_prefix,
            ensure_prefix,
            replace_prefix,
            in_place: in_place.unwrap_or(false),
            suffix,
        },
        child,
    )))
}

/// Reads `/region/cluster/`, or an empty text.
fn new_prefix(node: &Node, cx: &mut Reading) -> Result<String, Diagnostic> {
    match text(node, cx)? {
        none if none.is_empty() => Ok(none),
        prefix => routing_prefix(&prefix).ok_or_else(|| cx.expected(node, "`/region/cluster/`")),
    }
}

pub(super) fn modify_exptime(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
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
    Ok(BuiltHandles::One(Route::one(
        routes::ModifyTtl {
            ttl: ttl.into(),
            action,
        },
        child,
    )))
}

/// LatencyInjectionRoute. A request cannot carry a latency in memcached's protocol.
pub(super) fn latency(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let child = Box::new(args.target(builder, "child", cx)?);
    let delay = args.take("before_latency_ms", cx, millis)?;
    let after = args.take("after_latency_ms", cx, millis)?;
    let total = args.take("total_latency_ms", cx, millis)?;
    let percentiles = args.take("total_latency_percentile_ms", cx, percentiles)?;
    let by_request = args.take("request_payload_latency", cx, flag)?;
    if by_request == Some(true) {
        cx.warn(
            args.at,
            "`request_payload_latency` has no effect: requests tell no latency".to_owned(),
        );
    }
    args.finish(&[], &["max_request_latency_us"], cx)?;
    if delay.is_none() && after.is_none() && total.is_none() && percentiles.is_none() && by_request.is_none()
    {
        let problem = format!(
            "LatencyInjectionRoute: one of `before_latency_ms`, `after_latency_ms`, `total_latency_ms` and \
             `request_payload_latency` must be there, line: {}",
            args.at.line
        );
        return Err(cx.refuse(args.at, problem));
    }
    let total = total
        .filter(|total| !total.is_zero())
        .map(|total| vec![(1.0, total)]);
    let fault = routes::Fault {
        delay: delay.unwrap_or_default(),
        delay_after: after.unwrap_or_default(),
        total: percentiles.or(total).unwrap_or_default(),
        error_rate: 0.0,
    };
    Ok(BuiltHandles::One(match fault == routes::Fault::default() {
        true => *child,
        false => Route::one(fault, child),
    }))
}

fn millis(node: &Node, cx: &mut Reading) -> Result<Duration, Diagnostic> {
    let millis = whole(0)(node, cx)?.unsigned_abs();
    Ok(Duration::from_millis(millis.into()))
}

/// Reads pairs of a percentile and the milliseconds that requests up to it take in all.
fn percentiles(node: &Node, cx: &mut Reading) -> Result<Vec<(f64, Duration)>, Diagnostic> {
    let pair = |node: &Node, cx: &mut Reading| match &node.value {
        Value::List(pair) if pair.len() == 2 => {
            let percentile = number(&pair[0], cx)?;
            match (0.0..=100.0).contains(&percentile) {
                true => Ok((percentile / 100.0, millis(&pair[1], cx)?)),
                false => Err(cx.expected(&pair[0], "a percentile from 0 to 100")),
            }
        }
        _ => Err(cx.expected(node, "a percentile and its milliseconds")),
    };
    let mut pairs = list(pair)(node, cx)?;
    pairs.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    Ok(pairs)
}
