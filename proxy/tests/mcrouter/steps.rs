//! mcrouter's handles that serve a request in several steps.

use proxima::config::{routes, schema::*};

use crate::{handles::route, rows::each_row};

#[test]
fn handles_in_steps_become_routes_with_the_same_effect() {
    let near = || Box::new(Route::Named("near".into()));
    let all = || Box::new(Route::Named("all".into()));
    let warm_up = |ttl| Route::pair(routes::WarmUp { ttl }, near(), all());
    let cache = |misses| Route::pair(routes::L1L2Cache { ttl: 60, misses }, near(), all());
    let table = [
        (
            r#"{"type": "WarmUpRoute", "cold": "near", "warm": "all"}"#,
            warm_up(Some(0)),
        ),
        (
            r#"{"type": "WarmUpRoute", "cold": "near", "warm": "all", "exptime": 5, "enable_metaget": true}"#,
            warm_up(Some(5)),
        ),
        (
            r#"{"type": "WarmUpRoute", "cold": "near", "warm": "all", "enable_metaget": true}"#,
            warm_up(None),
        ),
        (
            r#"{"type": "StagingRoute", "warm": "near", "staging": "all"}"#,
            Route::pair(routes::Staging, near(), all()),
        ),
        (
            r#"{"type": "L1L2CacheRoute", "l1": "near", "l2": "all", "upgradingL1Exptime": 60}"#,
            cache(None),
        ),
        (
            r#"{"type": "L1L2CacheRoute", "l1": "near", "l2": "all", "upgradingL1Exptime": 60, "ncacheExptime": 5,
                "ncacheUpdatePeriod": 10}"#,
            cache(Some((5, 10))),
        ),
        (
            r#"{"type": "L1L2SizeSplitRoute", "l1": "near", "l2": "all", "threshold": 100, "failure_ttl": 30}"#,
            Route::pair(
                routes::SizeSplit {
                    threshold: 100,
                    ttl_threshold: 0,
                    failure_ttl: 30,
                    both: false,
                    retries: 1,
                    hides_server: true,
                },
                near(),
                all(),
            ),
        ),
        (
            r#"{"type": "BigValueRoute", "target": "near", "split_threshold": 5000, "batch_size": 2}"#,
            Route::one(
                routes::BigValue {
                    threshold: 5000,
                    batch: 2,
                    hides_flag: false,
                },
                near(),
            ),
        ),
        (
            r#"{"type": "PoolRoute", "pool": "B", "slow_warmup": {"failoverTarget": "all", "settings":
                {"start": 0.2, "min_requests": 5}}}"#,
            Route::of(
                routes::ByHash {
                    hash: Some(Hash::of(Algorithm::Ch3)),
                },
                Children::List(vec![Route::pair(
                    routes::SlowWarmUp {
                        start: 0.2,
                        min_requests: 5,
                        ..routes::SlowWarmUp::default()
                    },
                    Route::Leaf(Leaf::Member("B/b:1".into())),
                    all(),
                )]),
            ),
        ),
    ];
    each_row(table, |(text, expected)| {
        assert_eq!(route(text), *expected, "{text}");
    });
}
