//! The routes that mcrouter's handles become.

use std::{collections::BTreeMap, time::Duration};

use proxima::config::{
    routes::{self, Keyed},
    schema::*,
};
use proxima_wire::message::Outcome;

use crate::{around, at, failover, parse, pool, rows::each_row};

/// The route that `route` becomes, with names resolved.
pub(crate) fn route(route: &str) -> Route {
    let text = around(route);
    let mcrouter = parse(&text).unwrap_or_else(|exit| panic!("{exit}\n{text}"));
    let Route::Named(root) = &mcrouter.loaded.config.listeners[0].route else {
        panic!("the root has no name")
    };
    let Route::Keyed(Keyed::ByRoutingPrefix(prefix), routes, _) = &mcrouter.loaded.config.routes[root] else {
        panic!("no prefixes")
    };
    match at(routes, &prefix.default) {
        Route::Named(name) => mcrouter.loaded.config.routes[name].clone(),
        route => route.clone(),
    }
}

#[test]
fn mcrouter_handles_become_routes_with_the_same_effect() {
    let member = |name: &str| Route::Leaf(Leaf::Member(name.to_owned()));
    let named = |name: &str| Route::Named(name.to_owned());
    let hashed = |name: &str, hash| Route::of(routes::ByHash { hash: Some(hash) }, pool(name));
    let of = Hash::of;
    let table = [
        (r#""NullRoute""#, Route::Leaf(Leaf::Null)),
        (r#""DevNullRoute""#, Route::Leaf(Leaf::Discard)),
        (
            r#""ErrorRoute|gone | away""#,
            Route::Leaf(Leaf::Error("gone | away".into())),
        ),
        (
            r#"{"type": "ErrorRoute", "response": "x", "result": "mc_res_local_error"}"#,
            Route::Leaf(Leaf::Error("x".into())),
        ),
        (r#""PoolRoute|A""#, Route::Leaf(Leaf::Pool("A".into()))),
        (
            r#"{"type": "PoolRoute", "pool": "A", "hash": "Crc32"}"#,
            hashed("A", of(Algorithm::Crc32)),
        ),
        (
            r#"{"type": "PoolRoute", "pool": "A", "hash": {"hash_func": "Ch3", "salt": "s"}}"#,
            hashed(
                "A",
                Hash {
                    salt: "s".into(),
                    ..of(Algorithm::Ch3)
                },
            ),
        ),
        (
            r#"{"type": "PoolRoute", "pool": {"name": "N", "servers": ["n:1"]}}"#,
            Route::Leaf(Leaf::Pool("N".into())),
        ),
        (
            r#"{"type": "PoolRoute", "pool": "A", "hash": {"hash_func": "WeightedCh3", "weights": [1]}}"#,
            hashed(
                "A",
                Hash {
                    weights: Some(vec![1.0, 0.5]),
                    ..of(Algorithm::WeightedCh3)
                },
            ),
        ),
        (
            r#"{"type": "PoolRoute", "pool": "W", "hash": "WeightedCh3"}"#,
            hashed(
                "W",
                Hash {
                    weights: Some(vec![1.0, 0.25, 0.5]),
                    ..of(Algorithm::WeightedCh3)
                },
            ),
        ),
        (
            r#"{"type": "PoolRoute", "pool": "T", "hash": "Rendezvous"}"#,
            hashed(
                "T",
                Hash {
                    tags: Some(vec!["x".into(), "y".into()]),
                    ..of(Algorithm::Rendezvous)
                },
            ),
        ),
        (
            r#""PoolRoute|E""#,
            Route::Leaf(Leaf::Error("HashRoute with empty children, name: E".into())),
        ),
        (r#""HashRoute|Pool|A""#, hashed("A", of(Algorithm::Ch3))),
        (
            r#"{"type": "HashRoute", "children": "Pool|A", "hash_func": "Crc32", "salt": "s"}"#,
            hashed(
                "A",
                Hash {
                    salt: "s".into(),
                    ..of(Algorithm::Crc32)
                },
            ),
        ),
        (
            r#"{"type": "HashRoute", "children": [], "name": "h"}"#,
            Route::Leaf(Leaf::Error("HashRoute with empty children, name: h".into())),
        ),
        (r#""AllSyncRoute|Pool|A""#, Route::of(routes::AllSync, pool("A"))),
        (r#""AllSyncRoute|Pool|E""#, Route::Leaf(Leaf::Null)),
        (
            r#"{"type": "AllSyncRoute", "children": ["PoolRoute|A"]}"#,
            Route::Leaf(Leaf::Pool("A".into())),
        ),
        (
            r#"{"type": "AllSyncRoute", "children": ["PoolRoute|B", "Pool|A", ["NullRoute"], ""]}"#,
            Route::of(
                routes::AllSync,
                Children::List(vec![
                    Route::Leaf(Leaf::Pool("B".into())),
                    member("A/a:1"),
                    member("A/a:2"),
                    Route::Leaf(Leaf::Null),
                ]),
            ),
        ),
        (
            r#"{"type": "AllSyncRoute", "children": "list"}"#,
            Route::of(routes::AllSync, pool("A")),
        ),
        (
            r#""AllFastestRoute|PoolRoute|A""#,
            Route::Leaf(Leaf::Pool("A".into())),
        ),
        (
            r#""AllFastestRoute|Pool|A""#,
            Route::of(routes::AllFastest, pool("A")),
        ),
        (
            r#""AllInitialRoute|Pool|A""#,
            Route::of(routes::AllInitial, pool("A")),
        ),
        (
            r#""AllMajorityRoute|Pool|A""#,
            Route::of(routes::AllMajority, pool("A")),
        ),
        (
            r#""AllAsyncRoute|PoolRoute|A""#,
            Route::of(
                routes::AllAsync,
                Children::List(vec![Route::Leaf(Leaf::Pool("A".into()))]),
            ),
        ),
        (r#""RandomRoute|Pool|A""#, Route::of(routes::Random, pool("A"))),
        (
            r#"{"type": "HostIdRoute", "children": "Pool|A", "salt": "s"}"#,
            Route::of(routes::HostId { salt: "s".into() }, pool("A")),
        ),
        (
            r#"{"type": "FailoverRoute", "children": ["near", "all"], "failover_errors": ["tko", "timeout"],
                "failover_limit": {"rate": 0.1}, "failover_tag": true}"#,
            Route::of(
                routes::Failover {
                    rules: Box::new(FailoverRules {
                        errors: FailoverErrors {
                            gets: Some(vec![Outcome::Ejected, Outcome::Timeout]),
                            updates: Some(vec![Outcome::Ejected, Outcome::Timeout]),
                            deletes: Some(vec![Outcome::Ejected, Outcome::Timeout]),
                            others: None,
                        },
                        limit: Some(FailoverLimit {
                            rate: 0.1,
                            burst: 1000.0,
                        }),
                        tag: true,
                        ..FailoverRules::default()
                    }),
                },
                Children::List(vec![named("near"), named("all")]),
            ),
        ),
        (
            r#"{"type": "FailoverWithExptimeRoute", "normal": "near", "failover": "Pool|A", "failover_exptime": 5}"#,
            Route::FailoverWithTtl(
                routes::FailoverWithTtl {
                    ttl: 5,
                    rules: Box::default(),
                },
                Box::new(named("near")),
                pool("A"),
            ),
        ),
        (
            r#"{"type": "MissFailoverRoute", "children": "Pool|A", "return_best_on_error": true}"#,
            Route::of(routes::MissFailover { best_on_error: true }, pool("A")),
        ),
        (
            r#"{"type": "PrefixSelectorRoute", "policies": {"a": "near", "ab": "NullRoute"}, "wildcard": "all"}"#,
            Route::keyed(
                routes::ByPrefix,
                BTreeMap::from([
                    ("a".to_owned(), named("near")),
                    ("ab".to_owned(), Route::Leaf(Leaf::Null)),
                ]),
                Some(Box::new(named("all"))),
            ),
        ),
        (
            r#""LoggingRoute|PoolRoute|A""#,
            Route::one(routes::Log, Route::Leaf(Leaf::Pool("A".into()))),
        ),
        (
            r#""LoggingRoute|Pool|B""#,
            Route::one(routes::Log, member("B/b:1")),
        ),
        (
            r#"{"type": "ModifyKeyRoute", "target": "near", "ensure_key_prefix": "p", "set_key_suffix": "s"}"#,
            Route::one(
                routes::ModifyKey {
                    routing_prefix: None,
                    ensure_prefix: "p".into(),
                    replace_prefix: None,
                    in_place: false,
                    suffix: "s".into(),
                },
                named("near"),
            ),
        ),
        (
            r#"{"type": "ModifyExptimeRoute", "target": "near", "exptime": 60, "action": "min"}"#,
            Route::one(
                routes::ModifyTtl {
                    ttl: 60,
                    action: TtlAction::Min,
                },
                named("near"),
            ),
        ),
        (
            r#"{"type": "LatencyInjectionRoute", "child": "near", "before_latency_ms": 20}"#,
            Route::one(
                routes::Fault {
                    delay: Duration::from_millis(20),
                    ..routes::Fault::default()
                },
                named("near"),
            ),
        ),
        (
            r#"{"type": "OperationSelectorRoute", "default_policy": "near", "operation_policies":
                {"touch": "all", "lease-get": "NullRoute", "flushall": "all"}}"#,
            Route::keyed(
                routes::ByOperation,
                [
                    ("touch", named("all")),
                    ("lease-get", Route::Leaf(Leaf::Null)),
                    ("gat", named("near")),
                    ("gats", named("near")),
                ]
                .map(|(word, route)| (word.to_owned(), route))
                .into(),
                Some(Box::new(named("near"))),
            ),
        ),
        (
            r#"{"type": "RoutingGroupRoute", "routing_group_policies": {"get_like": "near", "arithmetic_like": "all"}}"#,
            Route::keyed(
                routes::ByOperation,
                [
                    ("read", named("near")),
                    ("gat", named("near")),
                    ("gats", named("near")),
                    ("arithmetic", named("all")),
                    ("touch", named("all")),
                ]
                .map(|(word, route)| (word.to_owned(), route))
                .into(),
                None,
            ),
        ),
    ];
    each_row(table, |(text, expected)| {
        assert_eq!(route(text), *expected, "{text}");
    });
}

#[test]
fn a_named_mcrouter_handle_is_built_once() {
    let text = r#"{"pools": {"A": {"servers": ["a:1", "a:2"]}},
        "route": {"type": "FailoverRoute", "children": [
            {"type": "AllSyncRoute", "name": "x:y", "children": "Pool|A"},
            {"type": "NullRoute", "name": "x:y"},
            "x:y"]}}"#;
    let config = parse(text).unwrap().loaded.config;
    assert_eq!(config.routes["x:y"], Route::of(routes::AllSync, pool("A")));
    let twice = failover(Children::List(vec![Route::Named("x:y".into()); 3]));
    let Route::Named(root) = &config.listeners[0].route else {
        panic!()
    };
    let Route::Keyed(_, routes, _) = &config.routes[root] else {
        panic!()
    };
    assert_eq!(*at(routes, "/././"), twice);
}
