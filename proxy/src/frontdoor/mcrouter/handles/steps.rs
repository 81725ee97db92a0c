//! Handles that serve a request in several steps.

use super::Args;
use crate::{
    config::{Diagnostic, document::Node, reading::Reading, routes, schema::Route},
    frontdoor::mcrouter::{
        builder::{Builder, BuiltHandles},
        object::{Object, flag, number, whole},
    },
};

fn missing(handle: &str, key: &str, args: &Args<'_>, cx: &Reading) -> Diagnostic {
    let problem = format!("{handle}: `{key}` is missing, line: {}", args.at.line);
    cx.refuse(args.at, problem)
}

pub(super) fn warm_up(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let cold = Box::new(args.target(builder, "cold", cx)?);
    let warm = Box::new(args.target(builder, "warm", cx)?);
    let ttl = args.take("exptime", cx, whole(0))?;
    let as_warm = args.take("enable_metaget", cx, flag)?.unwrap_or(false);
    args.finish(&[], &[], cx)?;
    Ok(BuiltHandles::One(Route::pair(
        routes::WarmUp {
            ttl: ttl.map(i64::from).or((!as_warm).then_some(0)),
        },
        cold,
        warm,
    )))
}

pub(super) fn staging(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let warm = Box::new(args.target(builder, "warm", cx)?);
    let staging = Box::new(args.target(builder, "staging", cx)?);
    args.finish(&[], &[], cx)?;
    Ok(BuiltHandles::One(Route::pair(routes::Staging, warm, staging)))
}

pub(super) fn l1_l2_cache(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let l1 = Box::new(args.target(builder, "l1", cx)?);
    let l2 = Box::new(args.target(builder, "l2", cx)?);
    let ttl = args.take("upgradingL1Exptime", cx, whole(0))?;
    let ttl = ttl.ok_or_else(|| missing("L1L2CacheRoute", "upgradingL1Exptime", args, cx))?;
    let miss_ttl = args.take("ncacheExptime", cx, whole(0))?.unwrap_or(0);
    let period = args.take("ncacheUpdatePeriod", cx, whole(0))?.unwrap_or(0);
    args.finish(&[], &[], cx)?;
    Ok(BuiltHandles::One(Route::pair(
        routes::L1L2Cache {
            ttl: ttl.into(),
            misses: (period > 0).then_some((miss_ttl.into(), period.unsigned_abs())),
        },
        l1,
        l2,
    )))
}

pub(super) fn size_split(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let l1 = Box::new(args.target(builder, "l1", cx)?);
    let l2 = Box::new(args.target(builder, "l2", cx)?);
    let threshold = args.take("threshold", cx, whole(0))?;
    let threshold = threshold.ok_or_else(|| missing("L1L2SizeSplitRoute", "threshold", args, cx))?;
    let ttl_threshold = args.take("ttl_threshold", cx, whole(0))?.unwrap_or(0);
    let failure_ttl = args.take("failure_ttl", cx, whole(1))?.unwrap_or(60);
    let both = args.take("both_full_set", cx, flag)?.unwrap_or(false);
    let retries = args.take("retries", cx, |node, cx| match whole(0)(node, cx)? {
        retries @ 1..=10 => Ok(retries.unsigned_abs()),
        _ => Err(cx.expected(node, "a number from 1 to 10")),
    })?;
    args.finish(&[], &[], cx)?;
    Ok(BuiltHandles::One(Route::pair(
        routes::SizeSplit {
            threshold: threshold.unsigned_abs() as usize,
            ttl_threshold: ttl_threshold.into(),
            failure_ttl: failure_ttl.into(),
            both,
            retries: retries.unwrap_or(1),
            hides_server: true,
        },
        l1,
        l2,
    )))
}

pub(super) fn big_value(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let child = Box::new(args.target(builder, "target", cx)?);
    let threshold = args.take("split_threshold", cx, whole(1))?;
    let threshold = threshold.ok_or_else(|| missing("BigValueRoute", "split_threshold", args, cx))?;
    let batch = args.take("batch_size", cx, whole(0))?.unwrap_or(10);
    let hides_flag = args.take("hide_reply_flag", cx, flag)?.unwrap_or(false);
    args.finish(&[], &[], cx)?;
    Ok(BuiltHandles::One(Route::one(
        routes::BigValue {
            threshold: threshold.unsigned_abs() as usize,
            batch: batch.unsigned_abs(),
            hides_flag,
        },
        child,
    )))
}

/// `slow_warmup` of PoolRoute: where the reads of a fresh server go, and when it is one.
#[derive(Clone, Debug)]
pub(super) struct SlowWarmUp {
    failover: Route,
    settings: routes::SlowWarmUp,
}

impl SlowWarmUp {
    /// Reads `slow_warmup`.
    pub(super) fn read(builder: &mut Builder, node: &Node, cx: &mut Reading) -> Result<Self, Diagnostic> {
        let object = Object::of(node, cx)?;
        let target = object.require("failoverTarget", cx)?;
        let failover = cx.within("failoverTarget", |cx| builder.one(target, cx))?;
        let failover = builder.share(failover, "slow_warmup", node.at);
        let settings = object.take("settings", cx, settings)?.unwrap_or_default();
        object.finish(&[], &[], cx)?;
        Ok(Self { failover, settings })
    }

    /// This server, which may be fresh.
    pub(super) fn around(&self, server: Route) -> Route {
        Route::pair(self.settings, server, self.failover.clone())
    }
}

pub(super) fn slow_warm_up(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let child = args.target(builder, "target", cx)?;
    let failover = args.target(builder, "failoverTarget", cx)?;
    let settings = args.take("settings", cx, settings)?.unwrap_or_default();
    args.finish(&[], &[], cx)?;
    Ok(BuiltHandles::One(SlowWarmUp { failover, settings }.around(child)))
}

fn settings(node: &Node, cx: &mut Reading) -> Result<routes::SlowWarmUp, Diagnostic> {
    let object = Object::of(node, cx)?;
    let share = |node: &Node, cx: &mut Reading| match number(node, cx)? {
        share @ 0.0..=1.0 => Ok(share),
        _ => Err(cx.expected(node, "a number from 0 to 1")),
    };
    let own = routes::SlowWarmUp::default();
    let settings = routes::SlowWarmUp {
        enable_threshold: object
            .take("enable_threshold", cx, share)?
            .unwrap_or(own.enable_threshold),
        disable_threshold: object
            .take("disable_threshold", cx, share)?
            .unwrap_or(own.disable_threshold),
        start: object.take("start", cx, share)?.unwrap_or(own.start),
        step: object.take("step", cx, number)?.unwrap_or(own.step),
        min_requests: object
            .take("min_requests", cx, whole(0))?
            .map_or(own.min_requests, |requests| u64::from(requests.unsigned_abs())),
    };
    object.finish(&[], &[], cx)?;
    if settings.enable_threshold > settings.disable_threshold {
        return Err(cx.refuse(node.at, "`enable_threshold` is above `disable_threshold`"));
    }
    Ok(settings)
}
