//! The asynchronous log.

use proxima::config::{
    routes,
    schema::{Config, Leaf, Route, SpoolOptions},
};

use crate::{around, at, run};

fn read(route: &str, flags: &[&str]) -> Config {
    let text = format!("--config={}", around(route));
    let own = ["--port=5000", "-R", "/east/one/", text.as_str()];
    run(&[&own, flags].concat()).unwrap().loaded.config
}

fn root(config: &Config) -> Route {
    let mut route = &config.listeners[0].route;
    while let Route::Named(name) = route {
        route = &config.routes[name];
    }
    let Route::Keyed(_, routes, _) = route else {
        panic!("{route:?}")
    };
    at(routes, "/east/one/").clone()
}

#[test]
fn deletes_of_a_pool_route_are_kept_under_the_pools_name_or_another() {
    let kept = |name: &str| {
        Route::one(
            routes::Spool { name: name.into() },
            Route::Leaf(Leaf::Pool("A".into())),
        )
    };
    for (route, expected) in [
        (r#""PoolRoute|A""#, kept("A")),
        (
            r#"{"type": "PoolRoute", "pool": "A", "asynclog_name": "x"}"#,
            kept("x"),
        ),
        (
            r#"{"type": "PoolRoute", "pool": "A", "asynclog": false}"#,
            Route::Leaf(Leaf::Pool("A".into())),
        ),
    ] {
        assert_eq!(root(&read(route, &[])), expected, "{route}");
        assert_eq!(
            root(&read(route, &["--asynclog-disable"])),
            Route::Leaf(Leaf::Pool("A".into()))
        );
    }
}

#[test]
fn the_log_is_where_the_options_say() {
    let spool = |flags: &[&str]| read("\"NullRoute\"", flags).spool;
    let default = SpoolOptions {
        dir: "/var/spool/mcrouter".into(),
        is_second_form: false,
        port: None,
        router: "5000".into(),
        region: "east".into(),
        cluster: "one".into(),
    };
    assert_eq!(spool(&[]), Some(default.clone()));
    let other = SpoolOptions {
        dir: "/s".into(),
        is_second_form: true,
        port: Some(7),
        ..default
    };
    let options = [
        "-a",
        "/s",
        "--use-asynclog-version2",
        "--asynclog-port-override=7",
    ];
    assert_eq!(spool(&options), Some(other));
    assert_eq!(spool(&["--asynclog-disable"]), None);
    assert_eq!(spool(&["--async-dir="]), None);
}

#[test]
fn a_port_that_is_none_is_refused_by_its_option() {
    let text = format!("--config={}", around(r#""PoolRoute|A""#));
    let error = run(&["--port=5000", &text, "--asynclog-port-override=70000"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "option `--asynclog-port-override` takes a port, or 0 for each server's own, not `70000`"
    );
}
