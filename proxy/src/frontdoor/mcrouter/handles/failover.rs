//! Handles that go on to the next child on errors.

use super::{Args, over, policy, pool, rules};
use crate::{
    config::{
        Diagnostic,
        reading::Reading,
        routes,
        schema::{Children, FailoverRules, Route},
    },
    frontdoor::mcrouter::{
        builder::{Builder, BuiltHandles},
        object::{flag, whole},
    },
};

fn rules_over(
    builder: &Builder,
    args: &Args<'_>,
    children: &[Route],
    cx: &mut Reading,
) -> Result<Box<FailoverRules>, Diagnostic> {
    let domains = children.iter().map(|child| builder.domain(child)).collect();
    let rules = args
        .object
        .as_ref()
        .map(|object| rules::read(object, domains, cx));
    Ok(Box::new(rules.transpose()?.unwrap_or_default()))
}

/// The children one by one.
fn listed(builder: &Builder, children: Option<&Children>) -> Vec<Route> {
    match children {
        Some(Children::Pool(pool)) => builder.list_of(BuiltHandles::Members(pool.clone())),
        Some(Children::List(routes)) => routes.clone(),
        None => Vec::new(),
    }
}

pub(super) fn failover(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let children = args.children(builder, cx)?;
    if let Some(balanced) = args
        .object
        .as_ref()
        .map_or(Ok(None), |object| policy::balanced(object, cx))?
    {
        args.finish(
            &[
                "failover_errors",
                "failover_limit",
                "failover_tag",
                "enable_lease_pairing",
            ],
            &[],
            cx,
        )?;
        return Ok(over(children, |children| balanced.over(children)));
    }
    let rules = rules_over(builder, args, &listed(builder, children.as_ref()), cx)?;
    args.finish(&[], &[], cx)?;
    Ok(over(children, |children| {
        Route::of(routes::Failover { rules }, children)
    }))
}

/// SaltedFailoverRoute: a pool, and then each of its servers.
pub(super) fn salted(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let (first, name) = pool::whole(builder, args, cx)?;
    let mut children = vec![first];
    if let Some(built) = builder.children_of(&name, cx)? {
        children.extend(builder.list_of(built));
    }
    let rules = rules_over(builder, args, &children, cx)?;
    args.finish(&[], &["shadow_policy"], cx)?;
    Ok(over(Some(Children::List(children)), |children| {
        Route::of(routes::Failover { rules }, children)
    }))
}

pub(super) fn with_exptime(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let normal = args.target(builder, "normal", cx)?;
    let failover = args
        .take("failover", cx, |node, cx| builder.children(Some(node), cx))?
        .flatten();
    let ttl = args
        .take("failover_exptime", cx, whole(1))?
        .unwrap_or(60)
        .unsigned_abs();
    let mut all = vec![normal.clone()];
    all.extend(listed(builder, failover.as_ref()));
    let rules = rules_over(builder, args, &all, cx)?;
    args.finish(&[], &[], cx)?;
    Ok(BuiltHandles::One(match failover {
        Some(failover) => {
            Route::FailoverWithTtl(routes::FailoverWithTtl { ttl, rules }, Box::new(normal), failover)
        }
        None => normal,
    }))
}

pub(super) fn on_miss(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let children = args.children(builder, cx)?;
    let best_on_error = args.take("return_best_on_error", cx, flag)?.unwrap_or(false);
    args.finish(&[], &[], cx)?;
    Ok(over(children, |children| {
        Route::of(routes::MissFailover { best_on_error }, children)
    }))
}
