//! mcrouter's handles that choose one of their children.

use proxima::config::{routes, schema::*};
use proxima_wire::message::Outcome;

use crate::{handles::route, pool, rows::each_row};

fn latest(children: Children) -> Route {
    Route::of(
        routes::Latest {
            count: 5,
            weights: None,
            salt: String::new(),
            per_worker: false,
            rules: Box::default(),
        },
        children,
    )
}

#[test]
fn handles_that_choose_become_routes_with_the_same_effect() {
    let near = || Box::new(Route::Named("near".into()));
    let error = |outcome, text: &str| {
        Route::Leaf(Leaf::Error(ErrorReply {
            outcome,
            text: text.into(),
        }))
    };
    let member = |name: &str| Route::Leaf(Leaf::Member(name.to_owned()));
    let mixed = || {
        let error = Route::Leaf(Leaf::Error("m".into()));
        Children::List(vec![member("M/m:1"), error, member("M/m:2")])
    };
    let hash = |children, hash| Route::of(routes::ByHash { hash: Some(hash) }, children);
    let salted = |algorithm, salt: &str| Hash {
        salt: salt.into(),
        ..Hash::of(algorithm)
    };
    let table = [
        (
            r#"{"type": "OriginalClientHashRoute", "children": "Pool|A", "offset": 1}"#,
            Route::of(routes::ByClient { offset: 1 }, pool("A")),
        ),
        (
            r#"{"type": "OriginalClientHashRoute", "children": "Pool|B"}"#,
            Route::of(routes::ByClient { offset: 0 }, pool("B")),
        ),
        (r#""LatestRoute|Pool|A""#, latest(pool("A"))),
        (
            r#"{"type": "LatestRoute", "children": "Pool|A", "failover_count": 2, "salt": "s", "weights": [1, 0.5],
                "thread_local_failover": true, "failover_errors": ["tko"]}"#,
            Route::of(
                routes::Latest {
                    count: 2,
                    weights: Some(vec![1.0, 0.5]),
                    salt: "s".into(),
                    per_worker: true,
                    rules: FailoverErrors {
                        gets: Some(vec![Outcome::Ejected]),
                        updates: Some(vec![Outcome::Ejected]),
                        deletes: Some(vec![Outcome::Ejected]),
                        others: None,
                    }
                    .into(),
                },
                pool("A"),
            ),
        ),
        (
            r#"{"type": "HashRoute", "children": "Pool|A", "hash_func": "Latest"}"#,
            latest(pool("A")),
        ),
        (
            r#"{"type": "PoolRoute", "pool": "A", "hash": {"hash_func": "Latest", "failover_count": 5}}"#,
            latest(pool("A")),
        ),
        (
            r#"{"type": "LoadBalancerRoute", "children": "Pool|A", "salt": "s"}"#,
            hash(pool("A"), salted(Algorithm::Ch3, "s")),
        ),
        (
            r#"{"type": "LoadBalancerRoute", "children": "Pool|A", "algorithm": "two-random-choices"}"#,
            hash(pool("A"), Hash::of(Algorithm::Random)),
        ),
        (
            r#"{"type": "LoadBalancerRoute", "children": "Pool|A", "failover_count": 2}"#,
            Route::of(
                routes::Failover {
                    rules: Box::default(),
                },
                Children::List(vec![
                    hash(pool("A"), salted(Algorithm::Ch3, "")),
                    hash(pool("A"), salted(Algorithm::Ch3, "1")),
                ]),
            ),
        ),
        (
            r#"{"type": "PoolRoute", "pool": "A", "hash": "LoadBalancer"}"#,
            hash(pool("A"), Hash::of(Algorithm::Ch3)),
        ),
        (
            r#"{"type": "KeyParseRoute", "target": "near", "num_routing_parts": 2, "delimiter": "/"}"#,
            Route::one(
                routes::KeyPart {
                    parts: 2,
                    delimiter: b'/',
                },
                near(),
            ),
        ),
        (
            r#"{"type": "HashStopAllowListRoute", "target": "near", "prefixes": ["a", "b"]}"#,
            Route::one(
                routes::HashStop {
                    prefixes: vec!["a".into(), "b".into()],
                },
                near(),
            ),
        ),
        (
            r#"{"type": "ErrorRoute", "result": "mc_res_busy"}"#,
            error(Outcome::Busy, "307 busy"),
        ),
        (
            r#"{"type": "ErrorRoute", "result": "bad_key", "response": "so"}"#,
            error(Outcome::ClientError, "so"),
        ),
        (
            r#"{"type": "ErrorRoute", "result": "tko", "enable_logging": true}"#,
            error(Outcome::Ejected, "unavailable"),
        ),
        // A pool with an error among its servers is the list of all of them.
        (r#""AllSyncRoute|Pool|M""#, Route::of(routes::AllSync, mixed())),
        (
            r#""PoolRoute|M""#,
            hash(
                mixed(),
                Hash {
                    weights: Some(vec![1.0, 0.5, 0.5]),
                    ..Hash::of(Algorithm::WeightedCh3)
                },
            ),
        ),
        (
            r#"{"type": "PoolRoute", "pool": "M", "hash": "Ch3"}"#,
            hash(mixed(), Hash::of(Algorithm::Ch3)),
        ),
        // The weights may stand in the pool, in the hash and beside it.
        (
            r#"{"type": "PoolRoute", "pool": "A", "weights": [1, 0.25]}"#,
            hash(
                pool("A"),
                Hash {
                    weights: Some(vec![1.0, 0.25]),
                    ..Hash::of(Algorithm::WeightedCh3)
                },
            ),
        ),
    ];
    each_row(table, |(text, expected)| {
        assert_eq!(route(text), *expected, "{text}");
    });
}
