//! Handles that go on to the next child on errors.

use super::{Args, over, results};
use crate::{
    config::{
        Diagnostic,
        document::{Node, Value, shortened},
        reading::Reading,
        schema::{FailoverErrors, FailoverLimit, FailoverRules, Route},
    },
    frontdoor::mcrouter::{
        builder::{Builder, Built},
        object::{Object, flag, list, number, text, whole},
    },
};

/// Keys without a meaning here: leases are not served, so none are paired.
const IDLE: [&str; 1] = ["enable_lease_pairing"];

/// Reads the keys that every failover has.
pub(super) fn rules(object: &Object<'_>, cx: &mut Reading) -> Result<FailoverRules, Diagnostic> {
    object.take("failover_policy", cx, policy)?;
    Ok(FailoverRules {
        errors: object.take("failover_errors", cx, errors)?.unwrap_or_default(),
        limit: object.take("failover_limit", cx, limit)?,
        tag: object.take("failover_tag", cx, flag)?.unwrap_or(false),
    })
}

pub(super) fn failover(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<Built, Diagnostic> {
    let children = args.children(builder, cx)?;
    let rules = args.object.as_ref().map(|object| rules(object, cx)).transpose()?;
    let rules = rules.unwrap_or_default();
    args.finish(&["hash"], &IDLE, cx)?;
    Ok(over(children, |children| Route::Failover { children, rules }))
}

pub(super) fn with_exptime(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<Built, Diagnostic> {
    let normal = args.target(builder, "normal", cx)?;
    let failover = args
        .take("failover", cx, |node, cx| builder.children(Some(node), cx))?
        .flatten();
    let ttl = args
        .take("failover_exptime", cx, whole(1))?
        .unwrap_or(60)
        .unsigned_abs();
    let rules = args.object.as_ref().map(|object| rules(object, cx)).transpose()?;
    let rules = rules.unwrap_or_default();
    args.finish(&["hash"], &IDLE, cx)?;
    Ok(Built::One(match failover {
        Some(failover) => Route::FailoverWithTtl {
            normal: Box::new(normal),
            failover,
            ttl,
            rules,
        },
        None => normal,
    }))
}

pub(super) fn on_miss(builder: &mut Builder, args: &Args<'_>, cx: &mut Reading) -> Result<Built, Diagnostic> {
    let children = args.children(builder, cx)?;
    let best_on_error = args.take("return_best_on_error", cx, flag)?.unwrap_or(false);
    args.finish(&[], &[], cx)?;
    Ok(over(children, |children| Route::MissFailover {
        children,
        best_on_error,
    }))
}

/// Refuses policies that would ask the children in another order than that of the list. Other policies count
/// as in order.
fn policy(node: &Node, cx: &mut Reading) -> Result<(), Diagnostic> {
    const UNSERVED: [&str; 4] = [
        "LeastFailuresPolicy",
        "DeterministicOrderPolicy",
        "RendezvousPolicy",
        "FailoverLoadBalancerPolicy",
    ];
    let kind = text(Object::of(node, cx)?.require("type", cx)?, cx)?;
    if UNSERVED.contains(&kind.as_str()) {
        return Err(cx.refuse(
            node.at,
            format!("{kind} is not served yet, line: {}", node.at.line),
        ));
    }
    cx.warn(
        node.at,
        format!(
            "`{}` is no policy: the children are asked in order",
            shortened(&kind)
        ),
    );
    Ok(())
}

fn limit(node: &Node, cx: &mut Reading) -> Result<FailoverLimit, Diagnostic> {
    let object = Object::of(node, cx)?;
    let rate_node = object.require("rate", cx)?;
    let rate = cx.within("rate", |cx| number(rate_node, cx))?;
    if !(0.0..=1.0).contains(&rate) {
        return Err(cx.refuse(rate_node.at, "`rate` is a number from 0 to 1"));
    }
    let burst = object.take("burst", cx, number)?.unwrap_or(1000.0);
    if burst < 0.0 {
        return Err(cx.refuse(node.at, "`burst` is negative"));
    }
    object.finish(&[], &[], cx)?;
    Ok(FailoverLimit { rate, burst })
}

/// Reads a list for all groups, or an object with a list for some of them. `incr`, `decr` and `touch` are in no
/// group: they have the default errors, as in mcrouter.
fn errors(node: &Node, cx: &mut Reading) -> Result<FailoverErrors, Diagnostic> {
    if let Value::List(_) = node.value {
        let all = Some(list(results::outcome)(node, cx)?);
        return Ok(FailoverErrors {
            gets: all.clone(),
            updates: all.clone(),
            deletes: all,
            others: None,
        });
    }
    let object = Object::of(node, cx)?;
    let errors = FailoverErrors {
        gets: object.take("gets", cx, list(results::outcome))?,
        updates: object.take("updates", cx, list(results::outcome))?,
        deletes: object.take("deletes", cx, list(results::outcome))?,
        others: None,
    };
    object.finish(&[], &[], cx)?;
    Ok(errors)
}
