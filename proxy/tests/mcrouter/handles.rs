//! The routes that mcrouter's handles become.

use std::{collections::BTreeMap, time::Duration};

use proxima::config::schema::*;
use proxima_wire::message::Outcome;

use crate::{around, failover, parse, pool, rows::each_row};

/// The route that `route` becomes, with names resolved.
pub(crate) fn route(route: &str) -> Route {
    let text = around(route);
    let mcrouter = parse(&text).unwrap_or_else(|exit| panic!("{exit}\n{text}"));
    let Route::Named(root) = &mcrouter.loaded.config.listeners[0].route else {
        panic!("the root has no name")
    };
    let Route::ByRoutingPrefix { routes, default, .. } = &mcrouter.loaded.config.routes[root] else {
        panic!("no prefixes")
    };
    match &routes[default] {
        Route::Named(name) => mcrouter.loaded.config.routes[name].clone(),
        route => route.clone(),
    }
}

#[test]
fn mcrouter_handles_become_routes_with_the_same_effect() {
    let member = |name: &str| Route::Member(name.to_owned());
    let named = |name: &str| Route::Named(name.to_owned());
    let hashed = |name: &str, hash| Route::Hash {
        children: pool(name),
        hash: Some(hash),
    };
    let of = Hash::of;
    let table = [
        (r#""NullRoute""#, Route::Null),
        (r#""DevNullRoute""#, Route::Discard),
        (r#""ErrorRoute|gone | away""#, Route::Error("gone | away".into())),
        (
            r#"{"type": "ErrorRoute", "response": "x", "result": "mc_res_local_error"}"#,
            Route::Error("x".into()),
        ),
        (r#""PoolRoute|A""#, Route::Pool("A".into())),
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
            Route::Pool("N".into()),
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
            Route::Error("HashRoute with empty children, name: E".into()),
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
            Route::Error("HashRoute with empty children, name: h".into()),
        ),
        (r#""AllSyncRoute|Pool|A""#, Route::AllSync(pool("A"))),
        (r#""AllSyncRoute|Pool|E""#, Route::Null),
        (
            r#"{"type": "AllSyncRoute", "children": ["PoolRoute|A"]}"#,
            Route::Pool("A".into()),
        ),
        (
            r#"{"type": "AllSyncRoute", "children": ["PoolRoute|B", "Pool|A", ["NullRoute"], ""]}"#,
            Route::AllSync(Children::List(vec![
                Route::Pool("B".into()),
                member("A/a:1"),
                member("A/a:2"),
                Route::Null,
            ])),
        ),
        (
            r#"{"type": "AllSyncRoute", "children": "list"}"#,
            Route::AllSync(pool("A")),
        ),
        (r#""AllFastestRoute|PoolRoute|A""#, Route::Pool("A".into())),
        (r#""AllFastestRoute|Pool|A""#, Route::AllFastest(pool("A"))),
        (r#""AllInitialRoute|Pool|A""#, Route::AllInitial(pool("A"))),
        (r#""AllMajorityRoute|Pool|A""#, Route::AllMajority(pool("A"))),
        (
            r#""AllAsyncRoute|PoolRoute|A""#,
            Route::AllAsync(Children::List(vec![Route::Pool("A".into())])),
        ),
        (r#""RandomRoute|Pool|A""#, Route::Random(pool("A"))),
        (
            r#"{"type": "HostIdRoute", "children": "Pool|A", "salt": "s"}"#,
            Route::HostId {
                children: pool("A"),
                salt: "s".into(),
            },
        ),
        (
            r#"{"type": "FailoverRoute", "children": ["near", "all"], "failover_errors": ["tko", "timeout"],
                "failover_limit": {"rate": 0.1}, "failover_tag": true}"#,
            Route::Failover {
                children: Children::List(vec![named("near"), named("all")]),
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
        ),
        (
            r#"{"type": "FailoverWithExptimeRoute", "normal": "near", "failover": "Pool|A", "failover_exptime": 5}"#,
            Route::FailoverWithTtl {
                normal: Box::new(named("near")),
                failover: pool("A"),
                ttl: 5,
                rules: Box::default(),
            },
        ),
        (
            r#"{"type": "MissFailoverRoute", "children": "Pool|A", "return_best_on_error": true}"#,
            Route::MissFailover {
                children: pool("A"),
                best_on_error: true,
            },
        ),
        (
            r#"{"type": "PrefixSelectorRoute", "policies": {"a": "near", "ab": "NullRoute"}, "wildcard": "all"}"#,
            Route::ByPrefix {
                prefixes: BTreeMap::from([("a".to_owned(), named("near")), ("ab".to_owned(), Route::Null)]),
                default: Some(Box::new(named("all"))),
            },
        ),
        (
            r#""LoggingRoute|PoolRoute|A""#,
            Route::Log(Box::new(Route::Pool("A".into()))),
        ),
        (r#""LoggingRoute|Pool|B""#, Route::Log(Box::new(member("B/b:1")))),
        (
            r#"{"type": "ModifyKeyRoute", "target": "near", "ensure_key_prefix": "p", "set_key_suffix": "s"}"#,
            Route::ModifyKey {
                child: Box::new(named("near")),
                routing_prefix: None,
                ensure_prefix: "p".into(),
                replace_prefix: None,
                in_place: false,
                suffix: "s".into(),
            },
        ),
        (
            r#"{"type": "ModifyExptimeRoute", "target": "near", "exptime": 60, "action": "min"}"#,
            Route::ModifyTtl {
                child: Box::new(named("near")),
                ttl: 60,
                action: TtlAction::Min,
            },
        ),
        (
            r#"{"type": "LatencyInjectionRoute", "child": "near", "before_latency_ms": 20}"#,
            Route::Fault {
                child: Box::new(named("near")),
                fault: Fault {
                    delay: Duration::from_millis(20),
                    ..Fault::default()
                },
            },
        ),
        (
            r#"{"type": "OperationSelectorRoute", "default_policy": "near", "operation_policies":
                {"touch": "all", "lease-get": "NullRoute", "flushall": "all"}}"#,
            Route::ByOperation {
                operations: [
                    ("touch", named("all")),
                    ("lease-get", Route::Null),
                    ("gat", named("near")),
                    ("gats", named("near")),
                ]
                .map(|(word, route)| (word.to_owned(), route))
                .into(),
                default: Some(Box::new(named("near"))),
            },
        ),
        (
            r#"{"type": "RoutingGroupRoute", "routing_group_policies": {"get_like": "near", "arithmetic_like": "all"}}"#,
            Route::ByOperation {
                operations: [
                    ("read", named("near")),
                    ("gat", named("near")),
                    ("gats", named("near")),
                    ("arithmetic", named("all")),
                    ("touch", named("all")),
                ]
                .map(|(word, route)| (word.to_owned(), route))
                .into(),
                default: None,
            },
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
    assert_eq!(config.routes["x:y"], Route::AllSync(pool("A")));
    let twice = failover(Children::List(vec![Route::Named("x:y".into()); 3]));
    let Route::Named(root) = &config.listeners[0].route else {
        panic!()
    };
    let Route::ByRoutingPrefix { routes, .. } = &config.routes[root] else {
        panic!()
    };
    assert_eq!(routes["/././"], twice);
}
