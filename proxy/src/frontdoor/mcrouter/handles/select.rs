//! Handles that choose one of their children.

use std::collections::BTreeMap;

use super::{
    Args,
    balanced::Balanced,
    hash::{self, Choice},
    over,
};
use crate::{
    config::{
        Diagnostic,
        document::shortened,
        operations,
        reading::Reading,
        routes,
        schema::{Algorithm, Children, Hash, Leaf, Route},
    },
    frontdoor::mcrouter::{
        builder::{Builder, BuiltHandles},
        object::{Object, flag, text, whole},
    },
};

pub(super) fn hash(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let children = args.children(builder, cx)?;
    let choice = match &args.object {
        Some(object) => hash::of_object(object, cx)?,
        None => Choice::Hash(Hash::of(Algorithm::Ch3)),
    };
    let name = args.take("name", cx, text)?.unwrap_or_default();
    let error_on_empty = args.take("error_on_empty", cx, flag)?.unwrap_or(true);
    args.finish(&[], &[], cx)?;
    Ok(match children {
        None if error_on_empty => BuiltHandles::One(Route::Leaf(Leaf::Error(
            format!("HashRoute with empty children, name: {name}").into(),
        ))),
        Some(children @ (Children::Pool(_) | Children::List(_))) if builder.count(&children) > 1 => {
            let count = builder.count(&children);
            BuiltHandles::One(hash::over(choice, children, count, args.at, cx)?)
        }
        few => over(few, |children| {
            Route::of(
                routes::ByHash {
                    hash: Some(Hash::of(Algorithm::Ch3)),
                },
                children,
            )
        }),
    })
}

pub(super) fn random(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let children = args.children(builder, cx)?;
    args.finish(&[], &[], cx)?;
    Ok(over(children, |children| Route::of(routes::Random, children)))
}

pub(super) fn host_id(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let children = args.children(builder, cx)?;
    let salt = args.take("salt", cx, text)?.unwrap_or_default();
    args.finish(&[], &[], cx)?;
    Ok(over(children, |children| {
        Route::of(routes::HostId { salt }, children)
    }))
}

/// OriginalClientHashRoute. Clients' addresses are known without `--retain-source-ip`, too.
pub(super) fn by_client(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let Some(children) = args.children(builder, cx)? else {
        let problem = format!("`children` is missing, line: {}", args.at.line);
        return Err(cx.refuse(args.at, problem));
    };
    let most = builder.count(&children);
    let offset = args.take("offset", cx, |node, cx| {
        let offset = whole(0)(node, cx)?.unsigned_abs();
        match (offset as usize) < most {
            true => Ok(offset),
            false => Err(cx.expected(node, &format!("a number below {most}, of the children"))),
        }
    })?;
    args.finish(&[], &[], cx)?;
    Ok(over(Some(children), |children| {
        Route::of(
            routes::ByClient {
                offset: offset.unwrap_or(0).into(),
            },
            children,
        )
    }))
}

pub(super) fn load_balancer(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    args.need(&["children"], "LoadBalancerRoute", cx)?;
    let children = args.children(builder, cx)?;
    let balanced = match &args.object {
        Some(object) => Balanced::read(object, cx)?,
        None => Balanced::default(),
    };
    args.finish(&[], &[], cx)?;
    Ok(over(children, |children| balanced.over(children)))
}

pub(super) fn by_operation(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    args.need(
        &["default_policy", "operation_policies"],
        "OperationSelectorRoute",
        cx,
    )?;
    let default = args
        .main("default_policy")
        .map(|node| cx.within("default_policy", |cx| builder.one(node, cx)));
    let default = default
        .transpose()?
        .map(|route| builder.share(route, "default_policy", args.at));
    let policies = args.take("operation_policies", cx, |node, cx| {
        let mut operations = BTreeMap::new();
        for (name, node) in Object::of(node, cx)?.entries() {
            let route = cx.within(&*name.text, |cx| builder.one(node, cx))?;
            if operations::words().any(|(word, _)| word == name.text) {
                operations.insert(name.text.clone(), route);
            } else if UNROUTED.contains(&&*name.text) {
                cx.warn(
                    name.at,
                    format!("`{}` goes to all servers, by no route", name.text),
                );
            } else {
                let problem = format!(
                    "Unknown operation: {} line: {}",
                    shortened(&name.text),
                    name.at.line
                );
                return Err(cx.refuse(name.at, problem));
            }
        }
        Ok(operations)
    });
    let operations = policies?.unwrap_or_default();
    args.finish(&[], &[], cx)?;
    Ok(selector(operations, default))
}

/// Operations that mcrouter knows, and that go to all servers here.
const UNROUTED: [&str; 2] = ["flushall", "flushre"];

/// mcrouter's groups, each with the words that mean the same here.
const GROUPS: [(&str, &[&str]); 4] = [
    ("get_like", &["read", "gat", "gats"]),
    ("update_like", &["write"]),
    ("delete_like", &["delete"]),
    ("arithmetic_like", &["arithmetic", "touch"]),
];

pub(super) fn by_group(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    args.need(
        &["default_policy", "routing_group_policies"],
        "RoutingGroupRoute",
        cx,
    )?;
    let default = args
        .main("default_policy")
        .map(|node| cx.within("default_policy", |cx| builder.one(node, cx)));
    let default = default
        .transpose()?
        .map(|route| builder.share(route, "default_policy", args.at));
    let policies = args.take("routing_group_policies", cx, |node, cx| {
        let policies = Object::of(node, cx)?;
        let is_group = |name: &str| GROUPS.iter().any(|(group, _)| *group == name);
        if let Some((name, _)) = policies.entries().iter().find(|(name, _)| !is_group(&name.text)) {
            let problem = format!(
                "{} is not a valid routing group, line: {}",
                shortened(&name.text),
                name.at.line
            );
            return Err(cx.refuse(name.at, problem));
        }
        let mut operations = BTreeMap::new();
        for (group, words) in GROUPS {
            let Some(route) = policies.take(group, cx, |node, cx| builder.one(node, cx))? else {
                continue;
            };
            let route = builder.share(route, group, policies.at);
            operations.extend(words.iter().map(|word| ((*word).to_owned(), route.clone())));
        }
        Ok(operations)
    });
    let operations = policies?.unwrap_or_default();
    args.finish(&[], &[], cx)?;
    Ok(selector(operations, default))
}

/// Completes a selector. The word `touch` stands for gat and gats as well here, but not for mcrouter: without
/// entries of their own they go to the default.
fn selector(mut operations: BTreeMap<String, Route>, default: Option<Route>) -> BuiltHandles {
    if operations.contains_key("touch") {
        for word in ["gat", "gats"] {
            operations
                .entry(word.to_owned())
                .or_insert_with(|| default.clone().unwrap_or(Route::Leaf(Leaf::Null)));
        }
    }
    BuiltHandles::One(Route::keyed(
        routes::ByOperation,
        operations,
        default.map(Box::new),
    ))
}

pub(super) fn by_prefix(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    args.need(&["policies", "wildcard"], "PrefixSelectorRoute", cx)?;
    let default = args.take("wildcard", cx, |node, cx| builder.one(node, cx))?;
    let prefixes = args.take("policies", cx, |node, cx| {
        let mut prefixes = BTreeMap::new();
        for (name, node) in Object::of(node, cx)?.entries() {
            prefixes.insert(
                name.text.clone(),
                cx.within(&*name.text, |cx| builder.one(node, cx))?,
            );
        }
        Ok(prefixes)
    });
    let prefixes = prefixes?.unwrap_or_default();
    args.finish(&[], &[], cx)?;
    Ok(BuiltHandles::One(Route::keyed(
        routes::ByPrefix,
        prefixes,
        default.map(Box::new),
    )))
}
