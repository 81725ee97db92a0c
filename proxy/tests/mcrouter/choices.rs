//! mcrouter's handles that choose one of their children.

use proxima::config::schema::*;
use proxima_wire::message::Outcome;

use crate::{handles::route, pool, rows::each_row};

fn latest(children: Children) -> Route {
    Route::Latest {
        children,
        count: 5,
        weights: None,
        salt: String::new(),
        per_worker: false,
        rules: Box::default(),
    }
}

#[test]
fn handles_that_choose_become_routes_with_the_same_effect() {
    let near = || Box::new(Route::Named("near".into()));
    let error = |outcome, text: &str| {
        Route::Error(ErrorReply {
            outcome,
            text: text.into(),
        })
    };
    let member = |name: &str| Route::Member(name.to_owned());
    let mixed = || {
        let error = Route::Error("m".into());
        Children::List(vec![member("M/m:1"), error, member("M/m:2")])
    };
    let hash = |children, hash| Route::Hash {
        children,
        hash: Some(hash),
    };
    let salted = |algorithm, salt: &str| Hash {
        salt: salt.into(),
        ..Hash::of(algorithm)
    };
    let table = [
        (
            r#"{"type": "OriginalClientHashRoute", "children": "Pool|A", "offset": 1}"#,
            Route::ByClient {
                children: pool("A"),
                offset: 1,
            },
        ),
        (
            r#"{"type": "OriginalClientHashRoute", "children": "Pool|B"}"#,
            Route::ByClient {
                children: pool("B"),
                offset: 0,
            },
        ),
        (r#""LatestRoute|Pool|A""#, latest(pool("A"))),
        (
            r#"{"type": "LatestRoute", "children": "Pool|A", "failover_count": 2, "salt": "s", "weights": [1, 0.5],
                "thread_local_failover": true, "failover_errors": ["tko"]}"#,
            Route::Latest {
                children: pool("A"),
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
            Route::Failover {
                children: Children::List(vec![
                    hash(pool("A"), salted(Algorithm::Ch3, "")),
                    hash(pool("A"), salted(Algorithm::Ch3, "1")),
                ]),
                rules: Box::default(),
            },
        ),
        (
            r#"{"type": "PoolRoute", "pool": "A", "hash": "LoadBalancer"}"#,
            hash(pool("A"), Hash::of(Algorithm::Ch3)),
        ),
        (
            r#"{"type": "KeyParseRoute", "target": "near", "num_routing_parts": 2, "delimiter": "/"}"#,
            Route::KeyPart {
                child: near(),
                parts: 2,
                delimiter: b'/',
            },
        ),
        (
            r#"{"type": "HashStopAllowListRoute", "target": "near", "prefixes": ["a", "b"]}"#,
            Route::HashStop {
                child: near(),
                prefixes: vec!["a".into(), "b".into()],
            },
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
        (r#""AllSyncRoute|Pool|M""#, Route::AllSync(mixed())),
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
