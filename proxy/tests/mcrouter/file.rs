//! Pools and routing prefixes of a file.

use std::{fs, time::Duration};

use proxima::{
    config::{routes, schema::*},
    frontdoor::ConfigSource as _,
};

use crate::run;

#[test]
fn mcrouter_routes_are_chosen_by_routing_prefix() {
    let text = r#"{"routes": [
        {"aliases": ["/a/x/", "/a/y/"], "route": "NullRoute"},
        {"aliases": ["/b/x/"], "route": "ErrorRoute|b"}]}"#;
    let mcrouter = run(&["-p", "0", "-R", "/b/x/", "--config-str", text]).unwrap();
    let Route::Named(root) = &mcrouter.loaded.config.listeners[0].route else {
        panic!()
    };
    let routes = [
        ("/a/x/", Route::Leaf(Leaf::Null)),
        ("/a/y/", Route::Leaf(Leaf::Null)),
        ("/b/x/", Route::Leaf(Leaf::Error("b".into()))),
    ];
    let routes = routes.map(|(alias, route)| (alias.to_owned(), route)).into();
    assert_eq!(
        mcrouter.loaded.config.routes[root],
        Route::keyed(
            routes::ByRoutingPrefix {
                default: "/b/x/".into(),
                takes_unknown: false
            },
            routes,
            None
        )
    );

    let exit = run(&["-p", "0", "--config-str", text]).unwrap_err();
    assert_eq!(exit.exit_code(), 2);
    assert!(
        exit.to_string().contains("invalid default route: /././"),
        "{exit}"
    );
}

#[test]
fn mcrouter_pools_inherit_and_are_read_from_files() {
    let folder = std::env::temp_dir().join(format!("proxima-pools-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("f.json");
    fs::write(&file, r#"{"servers": ["f:1"], /* ms */ "server_timeout": 77}"#).unwrap();
    let text = format!(
        r#"{{"pools": {{
            "parent": {{"servers": ["p:1"], "server_timeout": 50, "connect_timeout": 20, "keep_routing_prefix": true}},
            "child": {{"inherit": "parent", "servers": ["c:1:ascii:plain", "[::1]:2", "unix:/run/x"]}},
            "far": {{"servers": ["x:1"], "region": "r", "cluster": "c", "server_timeout": 50}},
            "F": "file:{}"
        }}, "route": "NullRoute"}}"#,
        file.display()
    );
    let mcrouter = run(&[
        "-p0",
        "-t",
        "300",
        "--cross-region-timeout-ms=900",
        "--config",
        &text,
    ])
    .unwrap();
    let pools = &mcrouter.loaded.config.pools;
    let addresses = |name: &str| -> Vec<String> {
        let servers = pools[name].source.fixed().unwrap();
        servers.iter().map(|server| server.address.clone()).collect()
    };
    assert_eq!(addresses("child"), ["c:1", "[::1]:2", "unix:/run/x"]);
    assert_eq!(pools["child"].timeout, Duration::from_millis(50));
    assert_eq!(pools["child"].connect_timeout, Duration::from_millis(20));
    assert!(pools["child"].keep_routing_prefix);
    assert_eq!(pools["far"].timeout, Duration::from_millis(900));
    assert_eq!(addresses("F"), ["f:1"]);
    assert_eq!(pools["F"].connect_timeout, Duration::from_millis(77));
    assert_eq!(mcrouter.loaded.files_watched, std::slice::from_ref(&file));
    fs::write(&file, r#"{"servers": ["f:2"]}"#).unwrap();
    assert_ne!(
        mcrouter.load().unwrap().version_hash,
        mcrouter.loaded.version_hash
    );
    fs::remove_dir_all(folder).unwrap();
}
