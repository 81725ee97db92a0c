//! A whole configuration file: pools, named handles, and the routes by prefix.

use std::collections::BTreeMap;

use super::{
    builder::Builder,
    object::{Object, list, text},
    pools::Pools,
    prefix::routing_prefix,
    preprocess::Preprocessor,
    runtime::Variables,
    settings::Settings,
};
use crate::config::{
    Diagnostic,
    document::{Node, Value, shortened},
    reading::Reading,
    routes,
    schema::{Pool, Route},
};

/// The contents of a file.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) pools: BTreeMap<String, Pool>,
    pub(super) routes: BTreeMap<String, Route>,
    pub(super) root: Route,
}

/// Reads the text of a configuration file.
pub(super) fn read(
    source: &str,
    settings: &Settings,
    preprocessor: &mut Preprocessor<'_>,
    variables: &Variables,
    cx: &mut Reading,
) -> Result<Tree, Diagnostic> {
    let mut document = preprocessor.expand(source, cx)?;
    variables.fill(&mut document, cx);
    let top = Object::of(&document, cx)?;
    let pools = cx.within("pools", |cx| {
        Pools::read(top.get("pools"), settings, preprocessor, cx)
    })?;
    let mut builder = Builder::new(pools, settings);
    top.take("named_handles", cx, |node, cx| builder.name_handles(node, cx))?;
    let by_prefix = match (top.get("route"), top.get("routes")) {
        (Some(node), None) => {
            let route = cx.within("route", |cx| builder.one(node, cx))?;
            BTreeMap::from([(settings.default_route.clone(), route)])
        }
        (None, Some(node)) => cx.within("routes", |cx| routes(&mut builder, node, cx))?,
        (Some(_), Some(_)) => {
            return Err(cx
                .refuse(top.at, "both `route` and `routes` are there")
                .with_remedy("keep one"));
        }
        (None, None) => return Err(cx.refuse(top.at, "neither `route` nor `routes` is there")),
    };
    top.finish(&[], &["routing_options"], cx)?;
    if !by_prefix.contains_key(&settings.default_route) {
        return Err(cx.refuse(
            top.at,
            format!("invalid default route: {}", shortened(&settings.default_route)),
        ));
    }
    let mut root = Route::keyed(
        routes::ByRoutingPrefix {
            default: settings.default_route.clone(),
            takes_unknown: settings.takes_unknown,
        },
        by_prefix,
        None,
    );
    if settings.only_gets {
        let operations = ["read", "gat", "gats"];
        root = builder.share(root, "root", top.at);
        let operations = operations.map(|word| (word.to_owned(), root.clone())).into();
        root = Route::keyed(routes::ByOperation, operations, None);
    }
    if let Some(big) = settings.big_values {
        root = Route::one(
            routes::BigValue {
                threshold: big.threshold,
                batch: big.batch,
                hides_flag: big.hides_flag,
            },
            builder.share(root, "root", top.at),
        );
    }
    if settings.log_requests {
        root = Route::one(routes::Log, root);
    }
    if let Some(most) = settings.most_in_all {
        root = Route::one(
            routes::OutstandingLimit {
                most,
                queue: settings.queue_in_all.clone(),
            },
            root,
        );
    }
    let root = builder.share(root, "root", top.at);
    builder.pools.warn_of_unreadable(cx);
    builder.warn_of_unbuilt(cx);
    // No route leads to an empty pool: its answer stands in the tree.
    let pools = builder
        .pools
        .listed
        .into_iter()
        .filter(|(_, pool)| !pool.servers.is_empty());
    let pools = pools.map(|(name, listed)| (name, listed.pool)).collect();
    Ok(Tree {
        pools,
        routes: builder.routes,
        root,
    })
}

/// Reads routes by prefix: `[{"aliases": […], "route": …}]` or `{"/region/cluster/": …}`.
fn routes(
    builder: &mut Builder,
    node: &Node,
    cx: &mut Reading,
) -> Result<BTreeMap<String, Route>, Diagnostic> {
    let mut out = BTreeMap::new();
    let mut add = |alias: &str, route: &Route, at: &Node, cx: &Reading| match routing_prefix(alias) {
        Some(alias) => {
            out.insert(alias, route.clone());
            Ok(())
        }
        None => Err(cx.refuse(at.at, format!("`{}` is no `/region/cluster/`", shortened(alias)))),
    };
    match &node.value {
        Value::Map(entries) => {
            for (name, node) in entries {
                let route = cx.within(&*name.text, |cx| builder.one(node, cx))?;
                add(&name.text, &route, node, cx)?;
            }
        }
        Value::List(nodes) => {
            for (i, node) in nodes.iter().enumerate() {
                cx.within(format!("[{i}]"), |cx| {
                    let object = Object::of(node, cx)?;
                    let route_node = object.require("route", cx)?;
                    let route = cx.within("route", |cx| builder.one(route_node, cx))?;
                    let route = builder.share(route, "route", object.at);
                    object.require("aliases", cx)?;
                    let aliases = object.take("aliases", cx, list(text))?.unwrap_or_default();
                    object.finish(&[], &[], cx)?;
                    aliases.iter().try_for_each(|alias| add(alias, &route, node, cx))
                })?;
            }
        }
        _ => return Err(cx.expected(node, "a list or an object")),
    }
    Ok(out)
}
