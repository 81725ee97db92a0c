//! Handles that limit requests, or keep some of them from their target.

use super::Args;
use crate::{
    config::{
        Diagnostic,
        document::{Node, Value, shortened},
        reading::Reading,
        routes,
        schema::{Leaf, Rate, Route},
    },
    frontdoor::mcrouter::{
        builder::{Builder, BuiltHandles},
        object::{Object, list, number, whole},
    },
};

pub(super) fn rate_limit(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let child = Box::new(args.target(builder, "target", cx)?);
    let Some(rates) = args.take("rates", cx, rates)? else {
        let problem = format!("RateLimitRoute: `rates` is missing, line: {}", args.at.line);
        return Err(cx.refuse(args.at, problem));
    };
    let fallback = args.take("fallback", cx, |node, cx| builder.one(node, cx))?;
    args.finish(&[], &[], cx)?;
    Ok(BuiltHandles::One(Route::pair(
        rates,
        child,
        fallback.unwrap_or(Route::Leaf(Leaf::OverLimit)),
    )))
}

pub(super) fn outstanding_limit(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let child = args.target(builder, "target", cx)?;
    let most = args.take("max_outstanding", cx, whole(0))?.unwrap_or(0);
    args.finish(&[], &[], cx)?;
    Ok(BuiltHandles::One(match most {
        0 => child,
        most => Route::one(
            routes::OutstandingLimit {
                most: most.unsigned_abs() as usize,
                queue: None,
            },
            child,
        ),
    }))
}

/// Reads `rates`. A burst that is not given is as large as the rate.
pub(super) fn rates(node: &Node, cx: &mut Reading) -> Result<routes::RateLimit, Diagnostic> {
    let object = Object::of(node, cx)?;
    let amount = |node: &Node, cx: &mut Reading| match number(node, cx)? {
        amount if amount >= 0.0 => Ok(amount),
        _ => Err(cx.expected(node, "a number of at least 0")),
    };
    let rate = |[rate, burst]: [&str; 2], cx: &mut Reading| {
        let per_second = object.take(rate, cx, amount)?;
        let burst = object.take(burst, cx, amount)?;
        Ok(per_second.map(|per_second| Rate {
            per_second,
            burst: burst.unwrap_or(per_second),
        }))
    };
    let rates = routes::RateLimit {
        gets: rate(["gets_rate", "gets_burst"], cx)?,
        sets: rate(["sets_rate", "sets_burst"], cx)?,
        deletes: rate(["deletes_rate", "deletes_burst"], cx)?,
    };
    object.finish(&[], &[], cx)?;
    Ok(rates)
}

/// BlackholeRoute. Its policies may look at the key alone here.
pub(super) fn blackhole(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let default = Box::new(args.target(builder, "default", cx)?);
    let blackhole = args.take("blackhole_child", cx, |node, cx| builder.one(node, cx))?;
    let blackhole = Box::new(blackhole.unwrap_or(Route::Leaf(Leaf::Null)));
    let Some(keys) = args.take("policies", cx, policies)? else {
        let problem = format!("BlackholeRoute: `policies` is missing, line: {}", args.at.line);
        return Err(cx.refuse(args.at, problem));
    };
    args.finish(&[], &[], cx)?;
    Ok(BuiltHandles::One(match keys {
        Keys::All => *blackhole,
        Keys::Only(keys) => Route::pair(routes::ByKey { keys }, blackhole, default),
        Keys::AllBut(key) => Route::pair(routes::ByKey { keys: vec![key] }, default, blackhole),
    }))
}

/// The keys whose requests go to the blackhole.
#[derive(Debug, PartialEq)]
enum Keys {
    All,
    Only(Vec<String>),
    AllBut(String),
}

fn policies(node: &Node, cx: &mut Reading) -> Result<Keys, Diagnostic> {
    let object = Object::of(node, cx)?;
    let tests = object.take("key", cx, list(policy))?;
    let mut fields = object.entries().iter();
    if let Some((name, _)) = fields.find(|(name, _)| name.text != "key") {
        let (shown, line) = (shortened(&name.text), name.at.line);
        let problem = format!("BlackholeRoute looks at `key` alone, not at `{shown}`, line: {line}");
        return Err(cx.refuse(name.at, problem));
    }
    Ok(keys(tests))
}

/// One of several tests of a field has to hold. Without tests all requests go to the blackhole.
fn keys(tests: Option<Vec<(bool, String)>>) -> Keys {
    let Some(tests) = tests else { return Keys::All };
    let (equal, others): (Vec<_>, Vec<_>) = tests.into_iter().partition(|(equals, _)| *equals);
    let mut others: Vec<String> = others.into_iter().map(|(_, key)| key).collect();
    others.dedup();
    let equal: Vec<String> = equal.into_iter().map(|(_, key)| key).collect();
    match (others.pop(), others.is_empty()) {
        (None, _) => Keys::Only(equal),
        (Some(only), true) if !equal.contains(&only) => Keys::AllBut(only),
        (Some(_), _) => Keys::All,
    }
}

/// Reads a test: does it ask for equality, and with which key?
fn policy(node: &Node, cx: &mut Reading) -> Result<(bool, String), Diagnostic> {
    let object = Object::of(node, cx)?;
    let op = object.require("op", cx)?;
    let equals = match op.scalar() {
        Some("equals") => true,
        Some("not_equals") => false,
        _ => return Err(cx.expected(op, "\"equals\" or \"not_equals\"")),
    };
    match &object.require("value", cx)?.value {
        Value::Scalar { text, .. } => Ok((equals, text.clone())),
        _ => Err(cx.expected(node, "a value that is a string")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_the_tests_has_to_hold() {
        let only = |keys: &[&str]| Keys::Only(keys.iter().map(|&key| key.to_owned()).collect());
        let test = |(equals, key): (bool, &str)| (equals, key.to_owned());
        for (tests, expected) in [
            (&[(true, "a"), (true, "b")][..], only(&["a", "b"])),
            (&[(false, "a")], Keys::AllBut("a".into())),
            (&[(false, "a"), (true, "b")], Keys::AllBut("a".into())),
            (&[(false, "a"), (true, "a")], Keys::All),
            (&[(false, "a"), (false, "b")], Keys::All),
            (&[], only(&[])),
        ] {
            assert_eq!(
                keys(Some(tests.iter().copied().map(test).collect())),
                expected,
                "{tests:?}"
            );
        }
        assert_eq!(keys(None), Keys::All);
    }
}
