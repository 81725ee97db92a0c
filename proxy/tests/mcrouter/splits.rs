//! mcrouter's handles that move keys or keep copies of them.

use std::{collections::BTreeMap, time::Duration};

use proxima::config::schema::*;

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
    let fault = |fault| Route::Fault {
        child: named("near"),
        fault,
    };
    let table = [
        (
            r#"{"type": "MigrateRoute", "from": "near", "to": "all", "start_time": 1700000000, "interval": 4}"#,
            Route::Migrate {
                from: named("near"),
                to: named("all"),
                start: 1_700_000_000,
                interval: secs(4),
            },
        ),
        (
            r#"{"type": "MigrateRoute", "from": "near", "to": "all", "start_time": 1}"#,
            Route::Migrate {
                from: named("near"),
                to: named("all"),
                start: 1,
                interval: secs(3600),
            },
        ),
        (
            r#"{"type": "PoolRoute", "pool": "A", "shard_splits": {"1": 1, "2": 2, "3": 700,
                "4": {"old_split_size": 2, "new_split_size": 4, "split_start": 5, "migration_period": 60,
                      "fanout_deletes": true},
                "5": {"new_split_size": 3}}}"#,
            Route::ShardSplit {
                child: Box::new(Route::Pool("A".into())),
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
        ),
        (
            r#"{"type": "PoolRoute", "pool": "A", "shard_splits": {"1": 1}}"#,
            Route::Pool("A".into()),
        ),
        (
            r#"{"type": "KeySplitRoute", "destination": "near", "replicas": 3, "all_sync": true}"#,
            Route::KeySplit {
                child: named("near"),
                copies: 3,
                all_sync: true,
                first_hit: false,
            },
        ),
        (
            r#"{"type": "LatencyInjectionRoute", "child": "near", "after_latency_ms": 5, "total_latency_ms": 2000}"#,
            fault(Fault {
                delay_after: Duration::from_millis(5),
                total: vec![(1.0, secs(2))],
                ..Fault::default()
            }),
        ),
        (
            r#"{"type": "LatencyInjectionRoute", "child": "near", "total_latency_percentile_ms": [[99, 1000], [50, 0]]}"#,
            fault(Fault {
                total: vec![(0.5, Duration::ZERO), (0.99, secs(1))],
                ..Fault::default()
            }),
        ),
        (
            r#"{"type": "LatencyInjectionRoute", "child": "near", "before_latency_ms": 0}"#,
            Route::Pool("B".into()),
        ),
    ];
    each_row(table, |(text, expected)| {
        assert_eq!(route(text), *expected, "{text}");
    });
}
