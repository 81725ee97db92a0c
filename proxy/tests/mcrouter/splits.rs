//! mcrouter's handles that move keys or keep copies of them.

use std::{collections::BTreeMap, time::Duration};

use proxima::config::{routes, schema::*};

use crate::{handles::route, rows::each_row};

#[test]
fn handles_that_split_become_routes_with_the_same_effect() {
    let named = |name: &str| Box::new(Route::Named(name.into()));
    let secs = Duration::from_secs;
    let changing = ShardCopies {
        copies: 4,
        before: 2,
        start: 5,
        period: secs(60),
        all_deletes: true,
    };
    let fault = |fault| Route::one(fault, named("near"));
    let table = [
        (
            r#"{"type": "MigrateRoute", "from": "near", "to": "all", "start_time": 1700000000, "interval": 4}"#,
            Route::pair(
                routes::Migrate {
                    start: 1_700_000_000,
                    interval: secs(4),
                },
                named("near"),
                named("all"),
            ),
        ),
        (
            r#"{"type": "MigrateRoute", "from": "near", "to": "all", "start_time": 1}"#,
            Route::pair(
                routes::Migrate {
                    start: 1,
                    interval: secs(3600),
                },
                named("near"),
                named("all"),
            ),
        ),
        (
            r#"{"type": "PoolRoute", "pool": "A", "shard_splits": {"1": 1, "2": 2, "3": 700,
                "4": {"old_split_size": 2, "new_split_size": 4, "split_start": 5, "migration_period": 60,
                      "fanout_deletes": true},
                "5": {"new_split_size": 3}}}"#,
            Route::one(
                routes::ShardSplit {
                    splits: BTreeMap::from([
                        ("2".to_owned(), ShardCopies::of(2)),
                        ("3".to_owned(), ShardCopies::of(677)),
                        ("4".to_owned(), changing),
                        (
                            "5".to_owned(),
                            ShardCopies {
                                before: 1,
                                all_deletes: false,
                                ..ShardCopies::of(3)
                            },
                        ),
                    ]),
                },
                Route::Leaf(Leaf::Pool("A".into())),
            ),
        ),
        (
            r#"{"type": "PoolRoute", "pool": "A", "shard_splits": {"1": 1}}"#,
            Route::Leaf(Leaf::Pool("A".into())),
        ),
        (
            r#"{"type": "KeySplitRoute", "destination": "near", "replicas": 3, "all_sync": true}"#,
            Route::one(
                routes::KeySplit {
                    copies: 3,
                    all_sync: true,
                    first_hit: false,
                },
                named("near"),
            ),
        ),
        (
            r#"{"type": "LatencyInjectionRoute", "child": "near", "after_latency_ms": 5, "total_latency_ms": 2000}"#,
            fault(routes::Fault {
                delay_after: Duration::from_millis(5),
                total: vec![(1.0, secs(2))],
                ..routes::Fault::default()
            }),
        ),
        (
            r#"{"type": "LatencyInjectionRoute", "child": "near", "total_latency_percentile_ms": [[99, 1000], [50, 0]]}"#,
            fault(routes::Fault {
                total: vec![(0.5, Duration::ZERO), (0.99, secs(1))],
                ..routes::Fault::default()
            }),
        ),
        (
            r#"{"type": "LatencyInjectionRoute", "child": "near", "before_latency_ms": 0}"#,
            Route::Leaf(Leaf::Pool("B".into())),
        ),
    ];
    each_row(table, |(text, expected)| {
        assert_eq!(route(text), *expected, "{text}");
    });
}
