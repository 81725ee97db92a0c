//! mcrouter's handles that serve a request in several steps.

use proxima::config::schema::*;

use crate::{handles::route, rows::each_row};

#[test]
fn handles_in_steps_become_routes_with_the_same_effect() {
    let near = || Box::new(Route::Named("near".into()));
    let all = || Box::new(Route::Named("all".into()));
    let warm_up = |ttl| Route::WarmUp {
        cold: near(),
        warm: all(),
        ttl,
    };
    let cache = |misses| Route::L1L2Cache {
        l1: near(),
        l2: all(),
        ttl: 60,
        misses,
    };
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
            Route::Staging {
                warm: near(),
                staging: all(),
            },
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
            Route::SizeSplit {
                l1: near(),
                l2: all(),
                threshold: 100,
                ttl_threshold: 0,
                failure_ttl: 30,
                both: false,
                retries: 1,
                hides_server: true,
            },
        ),
        (
            r#"{"type": "BigValueRoute", "target": "near", "split_threshold": 5000, "batch_size": 2}"#,
            Route::BigValue {
                child: near(),
                threshold: 5000,
                batch: 2,
                hides_flag: false,
            },
        ),
        (
            r#"{"type": "PoolRoute", "pool": "B", "slow_warmup": {"failoverTarget": "all", "settings":
                {"start": 0.2, "min_requests": 5}}}"#,
            Route::Hash {
                children: Children::List(vec![Route::SlowWarmUp {
                    child: Box::new(Route::Member("B/b:1".into())),
                    failover: all(),
                    settings: SlowWarmUpSettings {
                        start: 0.2,
                        min_requests: 5,
                        ..SlowWarmUpSettings::default()
                    },
                }]),
                hash: Some(Hash::of(Algorithm::Ch3)),
            },
        ),
    ];
    each_row(table, |(text, expected)| {
        assert_eq!(route(text), *expected, "{text}");
    });
}
