//! mcrouter's policies of failovers.

use proxima::config::{routes, schema::*};
use proxima_wire::message::Outcome;

use crate::{around, handles::route, parse, pool, rows::each_row};

fn failover(children: Children, policy: FailoverPolicy) -> Route {
    Route::of(
        routes::Failover {
            rules: Box::new(FailoverRules {
                policy,
                ..FailoverRules::default()
            }),
        },
        children,
    )
}

#[test]
fn policies_become_orders_with_the_same_effect() {
    let order = || HashOrder {
        tries: 2,
        error_tries: 1,
        exclude: Vec::new(),
        weights: None,
        domains: Vec::new(),
        knows_first: true,
    };
    let salted = || {
        let member = |name: &str| Route::Leaf(Leaf::Member(name.into()));
        Children::List(vec![
            Route::Leaf(Leaf::Pool("D".into())),
            member("D/d:1"),
            member("D/d:2"),
        ])
    };
    let by_hash = |salt: &str| {
        Route::of(
            routes::ByHash {
                hash: Some(Hash {
                    salt: salt.into(),
                    ..Hash::of(Algorithm::Ch3)
                }),
            },
            pool("A"),
        )
    };
    let table = [
        (
            r#"{"type": "FailoverRoute", "children": "Pool|W", "failover_policy":
                {"type": "LeastFailuresPolicy", "max_tries": 2}}"#,
            failover(pool("W"), FailoverPolicy::LeastFailures { tries: 2 }),
        ),
        (
            r#"{"type": "FailoverRoute", "children": "Pool|A", "failover_policy":
                {"type": "LeastFailuresPolicy", "max_tries": 20}}"#,
            failover(pool("A"), FailoverPolicy::LeastFailures { tries: 2 }),
        ),
        (
            r#"{"type": "FailoverRoute", "children": "Pool|A", "failover_policy": {"type": "DeterministicOrderPolicy",
                "max_tries": 2, "max_error_tries": 1, "hash": {"hash_func": "Ch3"}}}"#,
            failover(pool("A"), FailoverPolicy::HashOrder(Box::new(order()))),
        ),
        (
            r#"{"type": "FailoverRoute", "children": "Pool|A", "hash": {"hash_func": "WeightedCh3", "weights": [1]},
                "failover_policy": {"type": "DeterministicOrderPolicy", "max_tries": 2, "max_error_tries": 1,
                "exclude_errors": ["timeout"], "ignore_normal_reply_index": true}}"#,
            failover(
                pool("A"),
                FailoverPolicy::HashOrder(Box::new(HashOrder {
                    exclude: vec![Outcome::Timeout],
                    weights: Some(vec![1.0, 0.5]),
                    knows_first: false,
                    ..order()
                })),
            ),
        ),
        (
            r#"{"type": "SaltedFailoverRoute", "pool": "D", "failover_policy": {"type": "DeterministicOrderPolicy",
                "max_tries": 2, "max_error_tries": 1, "enable_failure_domains": true}}"#,
            failover(
                salted(),
                FailoverPolicy::HashOrder(Box::new(HashOrder {
                    domains: vec![None, Some(5), Some(6)],
                    ..order()
                })),
            ),
        ),
        (
            r#"{"type": "SaltedFailoverRoute", "pool": "D"}"#,
            failover(salted(), FailoverPolicy::InOrder),
        ),
        (
            r#"{"type": "FailoverRoute", "children": ["near", "all"], "failover_policy":
                {"type": "RendezvousPolicy", "tags": ["x"]}}"#,
            failover(
                Children::List(vec![Route::Named("near".into()), Route::Named("all".into())]),
                FailoverPolicy::Rendezvous {
                    tags: vec!["x".into()],
                },
            ),
        ),
        (
            r#"{"type": "FailoverRoute", "children": "Pool|A", "failover_policy": {"type": "FailoverLoadBalancerPolicy",
                "failover_count": 2}}"#,
            failover(
                Children::List(vec![by_hash(""), by_hash("1")]),
                FailoverPolicy::InOrder,
            ),
        ),
        (
            r#"{"type": "FailoverRoute", "children": "Pool|A", "failover_policy": {"type": "NoSuchPolicy"}}"#,
            failover(pool("A"), FailoverPolicy::InOrder),
        ),
        (
            r#"{"type": "FailoverWithExptimeRoute", "normal": "near", "failover": "Pool|A", "failover_policy":
                {"type": "LeastFailuresPolicy", "max_tries": 3}, "failover_tag": true}"#,
            Route::FailoverWithTtl(
                routes::FailoverWithTtl {
                    ttl: 60,
                    rules: Box::new(FailoverRules {
                        policy: FailoverPolicy::LeastFailures { tries: 3 },
                        tag: true,
                        ..FailoverRules::default()
                    }),
                },
                Box::new(Route::Named("near".into())),
                pool("A"),
            ),
        ),
    ];
    each_row(table, |(text, expected)| {
        assert_eq!(route(text), *expected, "{text}");
    });
}

#[test]
fn more_tries_than_children_are_warned_of() {
    let text = around(
        r#"{"type": "FailoverRoute", "children": "Pool|A", "failover_policy":
            {"type": "LeastFailuresPolicy", "max_tries": 3}}"#,
    );
    let warnings = parse(&text).unwrap().loaded.warnings;
    assert!(
        warnings
            .iter()
            .any(|warning| warning.contains("`max_tries` is 3, of 2 children")),
        "{warnings:?}"
    );
}
