//! `failover_policy`: the order in which a failover asks its children.

use super::{balanced::Balanced, results};
use crate::{
    config::{
        Diagnostic,
        document::{Node, Value, shortened},
        reading::Reading,
        schema::{FailoverPolicy, HashOrder},
    },
    frontdoor::mcrouter::object::{Object, flag, list, number, text, whole},
};

/// The policy by the load of the children, which is another route here.
const BALANCED: &str = "FailoverLoadBalancerPolicy";

/// Reads a policy. `beside` is the hash that stands beside it, and `domains` has the failure domain of each
/// child. A policy of another name asks the children in order.
pub(super) fn read(
    node: &Node,
    beside: Option<&Node>,
    domains: Vec<Option<u32>>,
    cx: &mut Reading,
) -> Result<FailoverPolicy, Diagnostic> {
    let object = Object::of(node, cx)?;
    let kind = text(object.require("type", cx)?, cx)?;
    let children = domains.len();
    let policy = match kind.as_str() {
        "LeastFailuresPolicy" => FailoverPolicy::LeastFailures {
            tries: tries(&object, "max_tries", children, cx)?,
        },
        "DeterministicOrderPolicy" => {
            FailoverPolicy::HashOrder(Box::new(hash_order(&object, beside, domains, cx)?))
        }
        "RendezvousPolicy" => {
            let tags = object.take("tags", cx, list(text))?.unwrap_or_default();
            if children > 1 && tags.len() != children - 1 {
                let problem = format!(
                    "{} tags for the {} children behind the first",
                    tags.len(),
                    children - 1
                );
                return Err(cx.refuse(node.at, problem));
            }
            FailoverPolicy::Rendezvous { tags }
        }
        _ => {
            let shown = shortened(&kind);
            cx.fault(
                node.at,
                format!("`{shown}` is no policy: the children are asked in order"),
            );
            return Ok(FailoverPolicy::InOrder);
        }
    };
    object.finish(&[], &[], cx)?;
    Ok(policy)
}

/// The policy by the load, if it is that.
pub(super) fn balanced(object: &Object<'_>, cx: &mut Reading) -> Result<Option<Balanced>, Diagnostic> {
    let Some(node) = object.get("failover_policy") else {
        return Ok(None);
    };
    let policy = Object::of(node, cx)?;
    let kind = policy.get("type").and_then(Node::scalar);
    match kind {
        Some(BALANCED) => cx
            .within("failover_policy", |cx| Balanced::read(&policy, cx))
            .map(Some),
        _ => Ok(None),
    }
}

/// Reads a number of tries. A number that is too large counts as that of the children.
fn tries(object: &Object<'_>, key: &str, children: usize, cx: &mut Reading) -> Result<u32, Diagnostic> {
    let Some(tries) = object.take(key, cx, whole(1))? else {
        let problem = format!("`{key}` is missing, line: {}", object.at.line);
        return Err(cx.refuse(object.at, problem));
    };
    let tries = tries.unsigned_abs();
    if tries as usize > children {
        cx.fault(object.at, format!("`{key}` is {tries}, of {children} children"));
    }
    Ok(tries.min(children as u32))
}

fn hash_order(
    object: &Object<'_>,
    beside: Option<&Node>,
    domains: Vec<Option<u32>>,
    cx: &mut Reading,
) -> Result<HashOrder, Diagnostic> {
    let children = domains.len();
    let own = object.take("hash", cx, weights)?;
    let weights = match (own, beside) {
        (Some(weights), _) => weights,
        (None, Some(node)) => cx.within("hash", |cx| weights(node, cx))?,
        (None, None) => None,
    };
    let with_domains = object.take("enable_failure_domains", cx, flag)?.unwrap_or(false);
    let ignores_first = object.take("ignore_normal_reply_index", cx, flag)?;
    Ok(HashOrder {
        tries: tries(object, "max_tries", children, cx)?,
        error_tries: tries(object, "max_error_tries", children, cx)?,
        exclude: object
            .take("exclude_errors", cx, list(results::outcome))?
            .unwrap_or_default(),
        weights: weights.map(|mut weights| {
            weights.resize(children, 0.5);
            weights.iter().map(|weight| weight.clamp(0.0, 1.0)).collect()
        }),
        domains: if with_domains { domains } else { Vec::new() },
        knows_first: !ignores_first.unwrap_or(false),
    })
}

/// Reads the hash of an order: Ch3 has no weights.
fn weights(node: &Node, cx: &mut Reading) -> Result<Option<Vec<f64>>, Diagnostic> {
    let (kind, object) = match &node.value {
        Value::Map(_) => {
            let object = Object::of(node, cx)?;
            (object.get("hash_func").unwrap_or(node), Some(object))
        }
        _ => (node, None),
    };
    match kind.scalar() {
        Some("WeightedCh3") => {
            let weights = match object {
                Some(object) => object.take("weights", cx, list(number))?,
                None => None,
            };
            Ok(Some(weights.unwrap_or_default()))
        }
        Some("Ch3") | None => Ok(None),
        Some(_) => Err(cx.expected(kind, "`Ch3` or `WeightedCh3`")),
    }
}
