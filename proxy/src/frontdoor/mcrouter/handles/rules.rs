//! The keys of every failover: after which errors it goes on, how often, and in which order.

use super::{policy, results};
use crate::{
    config::{
        Diagnostic,
        document::{Node, Value},
        reading::Reading,
        schema::{FailoverErrors, FailoverLimit, FailoverRules},
    },
    frontdoor::mcrouter::object::{Object, flag, list, number, text},
};

/// Reads the keys that every failover has. `domains`: the failure domain of each child.
pub(super) fn read(
    object: &Object<'_>,
    domains: Vec<Option<u32>>,
    cx: &mut Reading,
) -> Result<FailoverRules, Diagnostic> {
    let beside = object.take("hash", cx, |node, _| Ok(node))?;
    let policy = object.take("failover_policy", cx, |node, cx| {
        policy::read(node, beside, domains, cx)
    })?;
    Ok(FailoverRules {
        errors: object.take("failover_errors", cx, errors)?.unwrap_or_default(),
        limit: object.take("failover_limit", cx, limit)?,
        tag: object.take("failover_tag", cx, flag)?.unwrap_or(false),
        policy: policy.unwrap_or_default(),
        pairs_leases: pairs_leases(object, cx)?,
    })
}

/// The name under which leases are paired, if they are.
fn pairs_leases(object: &Object<'_>, cx: &mut Reading) -> Result<Option<String>, Diagnostic> {
    let name = object.take("name", cx, text)?;
    object
        .take("enable_lease_pairing", cx, |node, cx| {
            match (flag(node, cx)?, name) {
                (true, None) => {
                    Err(cx.refuse(node.at, "`enable_lease_pairing` needs a `name` for the route"))
                }
                (pairs, name) => Ok(name.filter(|_| pairs)),
            }
        })
        .map(Option::flatten)
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
