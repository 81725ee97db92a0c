//! mcrouter's handles that copy requests or limit them.

use proxima::config::{routes, schema::*};

use crate::{around, handles::route, parse, pool, rows::each_row};

fn shadow(target: Route, keys: ShadowKeys) -> Shadow {
    Shadow {
        target,
        keys,
        share: 1.0,
        in_flight: Shadow::IN_FLIGHT,
    }
}

fn shadowed(child: Route, shadows: Vec<Shadow>) -> Route {
    Route::Shadow(Box::new(child), shadows)
}

#[test]
fn shadows_stand_around_the_pool_or_around_the_servers_of_their_range() {
    let all = || shadow(Route::Named("near".into()), ShadowKeys::Between(0.0, 1.0));
    let tenth = || shadow(Route::Named("near".into()), ShadowKeys::Between(0.0, 0.1));
    let listed = || shadow(Route::Leaf(Leaf::Null), ShadowKeys::Listed(vec!["k".into()]));
    let member = |name: &str| Route::Leaf(Leaf::Member(name.into()));
    let second_shadowed = || {
        let second = shadowed(member("A/a:2"), vec![tenth()]);
        Children::List(vec![member("A/a:1"), second])
    };
    let hash = |children| {
        Route::of(
            routes::ByHash {
                hash: Some(Hash::of(Algorithm::Ch3)),
            },
            children,
        )
    };
    let table = [
        (
            r#"{"type": "PoolRoute", "pool": "A", "shadow_policy": "default", "shadows": [{"target": "near"},
                {"target": "NullRoute", "keys_to_shadow": ["k"]}]}"#,
            shadowed(Route::Leaf(Leaf::Pool("A".into())), vec![all(), listed()]),
        ),
        (
            r#"{"type": "PoolRoute", "pool": "A", "shadows": [
                {"target": "near", "index_range": [1, 2], "key_fraction_range": [0, 0.1]}]}"#,
            hash(second_shadowed()),
        ),
        (
            r#"{"type": "HashRoute", "children": {"type": "ShadowRoute", "children": "Pool|A", "shadows": [
                {"target": "near", "index_range": [1, 5], "key_fraction_range": [0, 0.1]}]}}"#,
            hash(second_shadowed()),
        ),
        (
            r#"{"type": "ShadowRoute", "children": "near", "shadows": [{"target": "near", "requests_fraction": 0.5}]}"#,
            shadowed(Route::Named("near".into()), vec![Shadow { share: 0.5, ..all() }]),
        ),
        // An entry that is wrong is left out.
        (
            r#"{"type": "PoolRoute", "pool": "A", "shadows": [5, {}, {"target": "nowhere"},
                {"target": "near", "key_fraction_range": [0, 1.5]}, {"target": "near", "index_range": "x"},
                {"target": "near", "index_range": [0, 1], "keys_to_shadow": ["k"]}, {"target": "near"}]}"#,
            shadowed(Route::Leaf(Leaf::Pool("A".into())), vec![all()]),
        ),
    ];
    each_row(table, |(text, expected)| {
        assert_eq!(route(text), *expected, "{text}");
    });
}

#[test]
fn shadow_that_is_left_out_is_warned_of() {
    let text = r#"{"type": "PoolRoute", "pool": "A", "shadows": [{"target": "nowhere"}, {}]}"#;
    let warnings = parse(&around(text)).unwrap().loaded.warnings;
    let left_out = warnings
        .iter()
        .filter(|warning| warning.contains("this shadow is left out: "));
    assert_eq!(left_out.count(), 2, "{warnings:?}");
}

#[test]
fn limits_become_routes_with_the_same_effect() {
    let near = || Box::new(Route::Named("near".into()));
    let rate = |per_second, burst| Some(Rate { per_second, burst });
    let limited = |child| Route::one(routes::OutstandingLimit { most: 5, queue: None }, child);
    let by_key = |keys: &[&str], listed, default| {
        Route::pair(
            routes::ByKey {
                keys: keys.iter().map(|&key| key.into()).collect(),
            },
            listed,
            default,
        )
    };
    let table = [
        (
            r#"{"type": "RateLimitRoute", "target": "near", "rates": {"gets_rate": 10, "sets_rate": 5, "sets_burst": 20},
                "fallback": "NullRoute"}"#,
            Route::pair(
                routes::RateLimit {
                    gets: rate(10.0, 10.0),
                    sets: rate(5.0, 20.0),
                    deletes: None,
                },
                near(),
                Route::Leaf(Leaf::Null),
            ),
        ),
        (
            r#"{"type": "PoolRoute", "pool": "A", "rates": {"deletes_rate": 1}, "shard_splits": {"1": 2}}"#,
            Route::one(
                routes::ShardSplit {
                    splits: [("1".to_owned(), ShardCopies::of(2))].into(),
                },
                Route::pair(
                    routes::RateLimit {
                        deletes: rate(1.0, 1.0),
                        ..routes::RateLimit::default()
                    },
                    Route::Leaf(Leaf::Pool("A".into())),
                    Route::Leaf(Leaf::OverLimit),
                ),
            ),
        ),
        (
            r#"{"type": "PoolRoute", "pool": "A", "rates": {}, "max_outstanding": 0}"#,
            Route::Leaf(Leaf::Pool("A".into())),
        ),
        (
            r#"{"type": "PoolRoute", "pool": "A", "max_outstanding": 5}"#,
            Route::of(
                routes::ByHash {
                    hash: Some(Hash::of(Algorithm::Ch3)),
                },
                Children::List(
                    ["A/a:1", "A/a:2"]
                        .map(|name| limited(Route::Leaf(Leaf::Member(name.into()))))
                        .into(),
                ),
            ),
        ),
        (
            r#"{"type": "OutstandingLimitRoute", "target": "near", "max_outstanding": 5}"#,
            limited(*near()),
        ),
        (
            r#"{"type": "BlackholeRoute", "default": "near", "policies": {"key": [{"op": "equals", "value": "k"}]}}"#,
            by_key(&["k"], Box::new(Route::Leaf(Leaf::Null)), near()),
        ),
        (
            r#"{"type": "BlackholeRoute", "default": "near", "blackhole_child": "all", "policies":
                {"key": [{"op": "not_equals", "value": "k"}]}}"#,
            by_key(&["k"], near(), Box::new(Route::Named("all".into()))),
        ),
        (
            r#"{"type": "BlackholeRoute", "default": "near", "policies": {}}"#,
            Route::Leaf(Leaf::Null),
        ),
        (
            r#"{"type": "HashRoute", "children": {"type": "ShadowRoute", "children": "Pool|A", "shadows": []}}"#,
            Route::of(
                routes::ByHash {
                    hash: Some(Hash::of(Algorithm::Ch3)),
                },
                pool("A"),
            ),
        ),
    ];
    each_row(table, |(text, expected)| {
        assert_eq!(route(text), *expected, "{text}");
    });
}
