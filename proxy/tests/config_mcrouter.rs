//! mcrouter's command line and configuration file, as its users write them.

use std::{collections::BTreeMap, fs, time::Duration};

use proxima::config::{
    compat::mcrouter::{Exit, Front, Start, start},
    schema::*,
};
use proxima_wire::message::Outcome;

fn run(arguments: &[&str]) -> Result<Front, Exit> {
    match start(arguments.iter().map(|argument| (*argument).to_owned()))? {
        Start::Run(front) => Ok(*front),
        Start::Print(text) => panic!("printed {text:?}"),
    }
}

/// The configuration of a text.
fn parse(text: &str) -> Result<Front, Exit> {
    run(&["--port=0", &format!("--config={text}")])
}

/// Around a route: pools `A` of two servers, `B` of one, `E` of none, `W` with weights, `T` with tags.
fn around(route: &str) -> String {
    format!(
        r#"{{"pools": {{
            "A": {{"servers": ["a:1", "a:2"]}},
            "B": {{"servers": ["b:1"]}},
            "E": {{"servers": []}},
            "W": {{"servers": ["w:1", "w:2", "w:3"], "weights": [1, 0.25]}},
            "T": {{"servers": ["t:1", "t:2"], "tags": ["x", "y"]}}
        }}, "named_handles": {{"near": "PoolRoute|B", "all": "AllSyncRoute|Pool|A", "list": "Pool|A"}},
        "route": {route}}}"#
    )
}

/// What stands for `route` in the tree, names followed.
fn route(route: &str) -> Route {
    let text = around(route);
    let front = parse(&text).unwrap_or_else(|exit| panic!("{}\n{text}", exit.message));
    let Route::Named(root) = &front.loaded.config.listeners[0].route else {
        panic!("the root has no name")
    };
    let Route::ByRoutingPrefix { routes, default } = &front.loaded.config.routes[root] else {
        panic!("no prefixes")
    };
    match &routes[default] {
        Route::Named(name) => front.loaded.config.routes[name].clone(),
        route => route.clone(),
    }
}

fn refused(text: &str) -> String {
    parse(text).expect_err(text).message
}

fn pool(name: &str) -> Children {
    Children::Pool(name.to_owned())
}

fn failover(children: Children) -> Route {
    Route::Failover {
        children,
        errors: FailoverErrors::default(),
        limit: None,
    }
}

/// Reads go to this node's server first, writes to every server.
const NODE_LOCAL: &str = r#"{
  "pools": {
    "A": {
      "servers": [
        // this node's first
        "10.0.0.3:11211", "10.0.0.1:11211", "10.0.0.2:11211", "10.0.0.4:11211",
        "10.0.0.5:11211", "10.0.0.6:11211", "10.0.0.7:11211", "10.0.0.8:11211",
      ]
    }
  },
  "route": {
    "type": "OperationSelectorRoute",
    "operation_policies": {
      "add": "AllSyncRoute|Pool|A",
      "delete": "AllSyncRoute|Pool|A",
      "get": "FailoverRoute|Pool|A",
      "set": "AllSyncRoute|Pool|A"
    }
  }
}
"#;

#[test]
fn the_node_local_set_up_runs_unchanged_and_is_followed() {
    let folder = std::env::temp_dir().join(format!("proxima-mcrouter-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("mcrouter.json");
    fs::write(&file, NODE_LOCAL).unwrap();
    let front = run(&[
        "--listen-addresses=127.0.0.1",
        "--port=31213",
        &format!("--config-file={}", file.display()),
        &format!("--stats-root={}", folder.display()),
    ])
    .unwrap();

    let config = &front.loaded.config;
    assert_eq!(config.listeners.len(), 1);
    assert_eq!(config.listeners[0].address, "127.0.0.1:31213");
    assert_eq!(config.workers, Some(1));
    assert_eq!(front.warnings, Vec::<String>::new());
    assert_eq!(front.loaded.warnings, Vec::<String>::new());
    assert!(
        front
            .not_served
            .contains(&format!("--stats-root={}", folder.display())),
        "{:?}",
        front.not_served
    );
    assert_eq!(front.loaded.files_watched, std::slice::from_ref(&file));
    assert_eq!(front.reload_after, Some(Duration::from_millis(100)));

    let Source::Static(servers) = &config.pools["A"].source else {
        panic!()
    };
    assert_eq!(servers.len(), 8);
    assert_eq!(servers[0].address, "10.0.0.3:11211");
    assert_eq!(config.pools["A"].hash, Hash::of(Algorithm::Ch3));
    assert_eq!(config.pools["A"].timeout, Duration::from_secs(1));
    assert_eq!(config.pools["A"].eject.probe_initial, Duration::from_secs(10));

    let write = || Route::AllSync(pool("A"));
    let operations = [
        ("add", write()),
        ("delete", write()),
        ("get", failover(pool("A"))),
        ("set", write()),
    ];
    let selector = Route::ByOperation {
        operations: operations.map(|(name, route)| (name.to_owned(), route)).into(),
        default: None,
    };
    let Route::Named(root) = &config.listeners[0].route else {
        panic!()
    };
    assert_eq!(
        config.routes[root],
        Route::ByRoutingPrefix {
            routes: BTreeMap::from([("/././".to_owned(), selector)]),
            default: "/././".into()
        }
    );

    fs::write(&file, NODE_LOCAL.replace("10.0.0.3", "10.0.0.9")).unwrap();
    let again = front.load().unwrap();
    assert_ne!(again.version_hash, front.loaded.version_hash);
    fs::write(&file, "{").unwrap();
    let message = front.load().unwrap_err().to_string();
    assert!(
        message.starts_with(&format!("{}:1:1: not JSON: ", file.display())),
        "{message}"
    );
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn handles_become_the_routes_that_do_the_same() {
    let member = |name: &str| Route::Member(name.to_owned());
    let named = |name: &str| Route::Named(name.to_owned());
    let hashed = |name: &str, hash| Route::Hash {
        children: pool(name),
        hash: Some(hash),
    };
    let of = Hash::of;
    let table = [
        (r#""NullRoute""#, Route::Null),
        (r#""DevNullRoute""#, Route::Null),
        (r#""ErrorRoute|gone | away""#, Route::Error("gone | away".into())),
        (
            r#"{"type": "ErrorRoute", "response": "x", "result": "mc_res_local_error"}"#,
            Route::Error("x".into()),
        ),
        (r#""PoolRoute|A""#, Route::Pool("A".into())),
        (
            r#"{"type": "PoolRoute", "pool": "A", "hash": "Crc32"}"#,
            hashed("A", of(Algorithm::Crc32)),
        ),
        (
            r#"{"type": "PoolRoute", "pool": "A", "hash": {"hash_func": "Ch3", "salt": "s"}}"#,
            hashed(
                "A",
                Hash {
                    salt: "s".into(),
                    ..of(Algorithm::Ch3)
                },
            ),
        ),
        (
            r#"{"type": "PoolRoute", "pool": {"name": "N", "servers": ["n:1"]}}"#,
            Route::Pool("N".into()),
        ),
        (
            r#"{"type": "PoolRoute", "pool": "A", "hash": {"hash_func": "WeightedCh3", "weights": [1]}}"#,
            hashed(
                "A",
                Hash {
                    weights: Some(vec![1.0, 0.5]),
                    ..of(Algorithm::WeightedCh3)
                },
            ),
        ),
        (
            r#"{"type": "PoolRoute", "pool": "W", "hash": "WeightedCh3"}"#,
            hashed(
                "W",
                Hash {
                    weights: Some(vec![1.0, 0.25, 0.5]),
                    ..of(Algorithm::WeightedCh3)
                },
            ),
        ),
        (
            r#"{"type": "PoolRoute", "pool": "T", "hash": "Rendezvous"}"#,
            hashed(
                "T",
                Hash {
                    tags: Some(vec!["x".into(), "y".into()]),
                    ..of(Algorithm::Rendezvous)
                },
            ),
        ),
        (
            r#""PoolRoute|E""#,
            Route::Error("HashRoute with empty children, name: E".into()),
        ),
        (r#""HashRoute|Pool|A""#, hashed("A", of(Algorithm::Ch3))),
        (
            r#"{"type": "HashRoute", "children": "Pool|A", "hash_func": "Crc32", "salt": "s"}"#,
            hashed(
                "A",
                Hash {
                    salt: "s".into(),
                    ..of(Algorithm::Crc32)
                },
            ),
        ),
        (
            r#"{"type": "HashRoute", "children": [], "name": "h"}"#,
            Route::Error("HashRoute with empty children, name: h".into()),
        ),
        (r#""AllSyncRoute|Pool|A""#, Route::AllSync(pool("A"))),
        (r#""AllSyncRoute|Pool|E""#, Route::Null),
        (
            r#"{"type": "AllSyncRoute", "children": ["PoolRoute|A"]}"#,
            Route::Pool("A".into()),
        ),
        (
            r#"{"type": "AllSyncRoute", "children": ["PoolRoute|B", "Pool|A", ["NullRoute"], ""]}"#,
            Route::AllSync(Children::List(vec![
                Route::Pool("B".into()),
                member("A/a:1"),
                member("A/a:2"),
                Route::Null,
            ])),
        ),
        (
            r#"{"type": "AllSyncRoute", "children": "list"}"#,
            Route::AllSync(pool("A")),
        ),
        (r#""AllFastestRoute|PoolRoute|A""#, Route::Pool("A".into())),
        (r#""AllFastestRoute|Pool|A""#, Route::AllFastest(pool("A"))),
        (r#""AllInitialRoute|Pool|A""#, Route::AllInitial(pool("A"))),
        (r#""AllMajorityRoute|Pool|A""#, Route::AllMajority(pool("A"))),
        (
            r#""AllAsyncRoute|PoolRoute|A""#,
            Route::AllAsync(Children::List(vec![Route::Pool("A".into())])),
        ),
        (r#""RandomRoute|Pool|A""#, Route::Random(pool("A"))),
        (
            r#"{"type": "HostIdRoute", "children": "Pool|A", "salt": "s"}"#,
            Route::HostId {
                children: pool("A"),
                salt: "s".into(),
            },
        ),
        (
            r#"{"type": "FailoverRoute", "children": ["near", "all"], "failover_errors": ["tko", "timeout"],
                "failover_limit": {"rate": 0.1}, "failover_tag": false}"#,
            Route::Failover {
                children: Children::List(vec![named("near"), named("all")]),
                errors: FailoverErrors {
                    gets: Some(vec![Outcome::Ejected, Outcome::Timeout]),
                    updates: Some(vec![Outcome::Ejected, Outcome::Timeout]),
                    deletes: Some(vec![Outcome::Ejected, Outcome::Timeout]),
                },
                limit: Some(FailoverLimit {
                    rate: 0.1,
                    burst: 1000.0,
                }),
            },
        ),
        (
            r#"{"type": "FailoverWithExptimeRoute", "normal": "near", "failover": "Pool|A", "failover_exptime": 5}"#,
            Route::FailoverWithTtl {
                normal: Box::new(named("near")),
                failover: pool("A"),
                ttl: 5,
                errors: FailoverErrors::default(),
            },
        ),
        (
            r#"{"type": "MissFailoverRoute", "children": "Pool|A", "return_best_on_error": true}"#,
            Route::MissFailover {
                children: pool("A"),
                best_on_error: true,
            },
        ),
        (
            r#"{"type": "PrefixSelectorRoute", "policies": {"a": "near", "ab": "NullRoute"}, "wildcard": "all"}"#,
            Route::ByPrefix {
                prefixes: BTreeMap::from([("a".to_owned(), named("near")), ("ab".to_owned(), Route::Null)]),
                default: Some(Box::new(named("all"))),
            },
        ),
        (
            r#""LoggingRoute|PoolRoute|A""#,
            Route::Log(Box::new(Route::Pool("A".into()))),
        ),
        (r#""LoggingRoute|Pool|B""#, Route::Log(Box::new(member("B/b:1")))),
        (
            r#"{"type": "ModifyKeyRoute", "target": "near", "ensure_key_prefix": "p", "set_key_suffix": "s"}"#,
            Route::ModifyKey {
                child: Box::new(named("near")),
                ensure_prefix: "p".into(),
                replace_prefix: None,
                in_place: false,
                suffix: "s".into(),
            },
        ),
        (
            r#"{"type": "ModifyExptimeRoute", "target": "near", "exptime": 60, "action": "min"}"#,
            Route::ModifyTtl {
                child: Box::new(named("near")),
                ttl: 60,
                action: TtlAction::Min,
            },
        ),
        (
            r#"{"type": "LatencyInjectionRoute", "child": "near", "before_latency_ms": 20}"#,
            Route::Fault {
                child: Box::new(named("near")),
                fault: Fault {
                    delay: Duration::from_millis(20),
                    error_rate: 0.0,
                },
            },
        ),
        (
            r#"{"type": "OperationSelectorRoute", "default_policy": "near", "operation_policies":
                {"touch": "all", "lease-get": "NullRoute"}}"#,
            Route::ByOperation {
                operations: [
                    ("touch", named("all")),
                    ("gat", named("near")),
                    ("gats", named("near")),
                ]
                .map(|(word, route)| (word.to_owned(), route))
                .into(),
                default: Some(Box::new(named("near"))),
            },
        ),
        (
            r#"{"type": "RoutingGroupRoute", "routing_group_policies": {"get_like": "near", "arithmetic_like": "all"}}"#,
            Route::ByOperation {
                operations: [
                    ("read", named("near")),
                    ("gat", named("near")),
                    ("gats", named("near")),
                    ("arithmetic", named("all")),
                    ("touch", named("all")),
                ]
                .map(|(word, route)| (word.to_owned(), route))
                .into(),
                default: None,
            },
        ),
    ];
    for (text, expected) in table {
        assert_eq!(route(text), expected, "{text}");
    }
}

#[test]
fn what_has_a_name_is_built_once() {
    let text = r#"{"pools": {"A": {"servers": ["a:1", "a:2"]}},
        "route": {"type": "FailoverRoute", "children": [
            {"type": "AllSyncRoute", "name": "x:y", "children": "Pool|A"},
            {"type": "NullRoute", "name": "x:y"},
            "x:y"]}}"#;
    let config = parse(text).unwrap().loaded.config;
    assert_eq!(config.routes["x:y"], Route::AllSync(pool("A")));
    let twice = failover(Children::List(vec![Route::Named("x:y".into()); 3]));
    let Route::Named(root) = &config.listeners[0].route else {
        panic!()
    };
    let Route::ByRoutingPrefix { routes, .. } = &config.routes[root] else {
        panic!()
    };
    assert_eq!(routes["/././"], twice);
}

#[test]
fn routes_by_prefix() {
    let text = r#"{"routes": [
        {"aliases": ["/a/x/", "/a/y/"], "route": "NullRoute"},
        {"aliases": ["/b/x/"], "route": "ErrorRoute|b"}]}"#;
    let front = run(&["-p", "0", "-R", "/b/x/", "--config-str", text]).unwrap();
    let Route::Named(root) = &front.loaded.config.listeners[0].route else {
        panic!()
    };
    let routes = [
        ("/a/x/", Route::Null),
        ("/a/y/", Route::Null),
        ("/b/x/", Route::Error("b".into())),
    ];
    let routes = routes.map(|(alias, route)| (alias.to_owned(), route)).into();
    assert_eq!(
        front.loaded.config.routes[root],
        Route::ByRoutingPrefix {
            routes,
            default: "/b/x/".into()
        }
    );

    let exit = run(&["-p", "0", "--config-str", text]).unwrap_err();
    assert_eq!(exit.code, 2);
    assert!(
        exit.message.contains("invalid default route: /././"),
        "{}",
        exit.message
    );
}

#[test]
fn pools_inherit_and_may_stand_in_files_of_their_own() {
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
    let front = run(&[
        "-p0",
        "-t",
        "300",
        "--cross-region-timeout-ms=900",
        "--config",
        &text,
    ])
    .unwrap();
    let pools = &front.loaded.config.pools;
    let addresses = |name: &str| match &pools[name].source {
        Source::Static(servers) => servers
            .iter()
            .map(|server| server.address.clone())
            .collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(addresses("child"), ["c:1", "[::1]:2", "unix:/run/x"]);
    assert_eq!(pools["child"].timeout, Duration::from_millis(50));
    assert_eq!(pools["child"].connect_timeout, Duration::from_millis(20));
    assert!(pools["child"].keep_routing_prefix);
    assert_eq!(pools["far"].timeout, Duration::from_millis(900));
    assert_eq!(addresses("F"), ["f:1"]);
    assert_eq!(pools["F"].connect_timeout, Duration::from_millis(77));
    assert_eq!(front.loaded.files_watched, std::slice::from_ref(&file));
    fs::write(&file, r#"{"servers": ["f:2"]}"#).unwrap();
    assert_ne!(front.load().unwrap().version_hash, front.loaded.version_hash);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_is_not_served_is_refused_by_name_and_line() {
    let table = [
        (
            around("\"NoSuchRoute\""),
            "Unknown RouteHandle: NoSuchRoute line: 8",
        ),
        (
            around("{\n\"type\": \"NoSuchRoute\"}"),
            "Unknown RouteHandle: NoSuchRoute line: 9",
        ),
        (
            around("{\"type\": \"WarmUpRoute\"}"),
            "WarmUpRoute is not served yet, line: 8",
        ),
        (
            around("\"AllSyncRoute|ShadowRoute|x\""),
            "ShadowRoute is not served yet, line: 8",
        ),
        (
            around(r#"{"type": "PoolRoute", "pool": "A", "shadows": [{}]}"#),
            "`shadows` is not served yet, line: 8",
        ),
        (
            around(r#"{"type": "PoolRoute", "pool": "A", "rates": {"gets_rate": 1}}"#),
            "`rates` is not served yet, line: 8",
        ),
        (
            around(r#"{"type": "PoolRoute", "pool": "A", "shard_splits": {"x": 2}}"#),
            "`shard_splits` is not served yet",
        ),
        (
            around(r#"{"type": "PoolRoute", "pool": "A", "max_outstanding": 5}"#),
            "`max_outstanding` is not served yet",
        ),
        (
            around(r#"{"type": "PoolRoute", "pool": "A", "hash": "Latest"}"#),
            "the hash function `Latest` is not served yet",
        ),
        (
            around(r#"{"type": "PoolRoute", "pool": "A", "hash": "Ch4"}"#),
            "Unknown hash function: Ch4 line: 8; did you mean `Ch3`?",
        ),
        (
            around(
                r#"{"type": "FailoverRoute", "children": "Pool|A", "failover_policy": {"type": "LeastFailuresPolicy"}}"#,
            ),
            "LeastFailuresPolicy is not served yet, line: 8",
        ),
        (
            around(r#"{"type": "FailoverRoute", "children": "Pool|A", "failover_tag": true}"#),
            "`failover_tag` is not served yet, line: 8",
        ),
        (
            around(r#"{"type": "FailoverRoute", "children": "Pool|A", "failover_errors": ["x"]}"#),
            "`x` is no result",
        ),
        (
            around(r#"{"type": "ErrorRoute", "result": "mc_res_busy"}"#),
            "the result `mc_res_busy` is not served yet",
        ),
        (
            around(r#"{"type": "ModifyKeyRoute", "target": "near", "set_routing_prefix": ""}"#),
            "`set_routing_prefix` is not",
        ),
        (
            around("\"LoggingRoute|Pool|A\""),
            "a list stands where one route handle is asked, line: 8",
        ),
        (
            around("\"PoolRoute|a\""),
            "there is no pool `a`, line: 8; did you mean `A`?",
        ),
        (around("\"@x\""), "macros are not served yet"),
        (
            around("{\"type\": \"NullRoute\", \"vars\": {\"a\": 1}}"),
            "`vars` is not served yet, line: 8",
        ),
        (
            "{\"route\": \"NullRoute\",\n \"macros\": {\"a\": {}}}".to_owned(),
            "2:2: `macros` is not served yet, line: 2",
        ),
        (
            "{\"route\": \"NullRoute\", \"routes\": []}".to_owned(),
            "both `route` and `routes` are there",
        ),
        ("{}".to_owned(), "neither `route` nor `routes` is there"),
        (
            "{\"routes\": {\"/a/\": \"NullRoute\"}}".to_owned(),
            "`/a/` is no `/region/cluster/`",
        ),
        (
            r#"{"pools": {"A": {"servers": ["a"]}}, "route": "NullRoute"}"#.to_owned(),
            "invalid server address `a` (there is no port)",
        ),
        (
            r#"{"pools": {"A": {"servers": ["a:1:caret"]}}, "route": "NullRoute"}"#.to_owned(),
            "`caret` is not served yet",
        ),
        (
            r#"{"pools": {"A": {"servers": ["a:1"], "use_ssl": true}}, "route": "NullRoute"}"#.to_owned(),
            "`use_ssl` is not",
        ),
        (
            r#"{"pools": {"A": {"inherit": "A"}}, "route": "NullRoute"}"#.to_owned(),
            "pools.A: ",
        ),
        (
            r#"{"named_handles": {"a": "LoggingRoute|b", "b": "LoggingRoute|a"}, "route": "a"}"#.to_owned(),
            "the named handle `a` leads back to itself",
        ),
    ];
    for (text, expected) in table {
        let message = refused(&text);
        assert!(message.contains(expected), "{text}\n{message}");
    }
}

#[test]
fn what_means_nothing_is_said() {
    let text =
        around(r#"{"type": "PoolRoute", "pool": "A", "asynclog": false, "no_such_key": 1, "shadows": []}"#);
    let warnings = parse(&text).unwrap().loaded.warnings;
    let route: Vec<&String> = warnings
        .iter()
        .filter(|warning| warning.contains("route: "))
        .collect();
    assert_eq!(route.len(), 2, "{warnings:?}");
    assert!(
        route[0].ends_with("`asynclog` has no effect here"),
        "{warnings:?}"
    );
    assert!(
        route[1].ends_with("`no_such_key` is no key of this object and is ignored"),
        "{warnings:?}"
    );
}

#[test]
fn options_of_the_command_line() {
    let config = "--config={\"route\": \"NullRoute\"}";
    let listeners = |arguments: &[&str]| {
        let front = run(&[&[config], arguments].concat()).unwrap();
        front
            .loaded
            .config
            .listeners
            .into_iter()
            .map(|listener| listener.address)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        listeners(&["-p", "1,2", "--listen-addresses=127.0.0.1,::1"]).join(" "),
        "127.0.0.1:1 127.0.0.1:2 [::1]:1 [::1]:2"
    );
    assert_eq!(listeners(&["--unix-domain-sock", "/run/m"]), ["unix:/run/m"]);

    let front = run(&[
        config,
        "-p1",
        "--rss-limit-mb=100",
        "--rss-limit-mb",
        "100",
        "--proxy-threads=auto",
        "--timeouts-until-tko",
        "7",
        "-r",
        "500",
        "--enable-flush-cmd",
        "--allow-only-gets",
        "--disable-reload-configs=true",
        "--max-conns=50",
        "--max-client-outstanding-reqs=0",
        "--keepalive-count=3",
        "--async-dir=/spool",
    ])
    .unwrap();
    assert_eq!(front.loaded.config.workers, None);
    assert_eq!(front.loaded.config.limits.clients, 50);
    assert_eq!(front.loaded.config.limits.requests_in_flight, usize::MAX);
    assert_eq!(front.loaded.config.limits.write_timeout, Duration::from_secs(1));
    assert!(front.flush_enabled);
    assert_eq!(front.reload_after, None);
    assert_eq!(
        front.warnings,
        [
            "unknown option `--rss-limit-mb=100` is ignored",
            "unknown option `--rss-limit-mb` is ignored",
            "`100` is ignored",
            "option `--keepalive-count=3` has no effect here"
        ]
    );
    assert!(front.not_served.contains(&"--async-dir=/spool".to_owned()));
    let Route::Named(root) = &front.loaded.config.listeners[0].route else {
        panic!()
    };
    let Route::ByOperation {
        operations,
        default: None,
    } = &front.loaded.config.routes[root]
    else {
        panic!()
    };
    assert_eq!(
        operations.keys().map(String::as_str).collect::<Vec<_>>(),
        ["gat", "gats", "read"]
    );
}

#[test]
fn a_flavor_gives_options_that_the_command_line_overrides() {
    let flavor = std::env::temp_dir().join(format!("proxima-flavor-{}.json", std::process::id()));
    let options = r#"{"options": {"ports": "5", "server_timeout_ms": "250", "failures_until_tko": 9,
        "config": "{\"pools\": {\"A\": {\"servers\": [\"a:1\"]}}, \"route\": \"PoolRoute|A\"}", "no_such": "1"}}"#;
    fs::write(&flavor, options).unwrap();
    let front = run(&[&format!("file:{}", flavor.display()), "-t", "70"]).unwrap();
    fs::remove_file(&flavor).unwrap();
    assert!(front.loaded.config.listeners[0].address.ends_with(":5"));
    assert_eq!(front.loaded.config.pools["A"].timeout, Duration::from_millis(70));
    assert_eq!(front.loaded.config.pools["A"].eject.failures, 9);
    assert_eq!(front.warnings.len(), 1, "{:?}", front.warnings);
}

#[test]
fn exit_codes_and_what_is_printed() {
    let start = |arguments: &[&str]| start(arguments.iter().map(|argument| (*argument).to_owned()));
    let code = |arguments: &[&str]| start(arguments).unwrap_err().code;
    assert!(matches!(start(&["--version"]), Ok(Start::Print(text)) if text == "1.0.0 mcrouter\n"));
    assert!(matches!(start(&["-V"]), Ok(Start::Print(_))));
    assert!(matches!(start(&["--help"]), Ok(Start::Print(text)) if text.contains("-f, --config-file=VALUE")));
    let (good, bad) = (
        "--config={\"route\": \"NullRoute\"}",
        "--config={\"route\": \"NoSuchRoute\"}",
    );
    for validate in ["--validate-config", "--validate-config=exit"] {
        assert!(matches!(start(&["-p1", good, validate]), Ok(Start::Print(text)) if text.is_empty()));
        assert_eq!(code(&["-p1", bad, validate]), 3);
        assert_eq!(code(&[good, validate]), 3, "no port");
    }
    assert!(matches!(
        start(&["-p1", good, "--validate-config=run"]),
        Ok(Start::Run(_))
    ));
    assert_eq!(code(&["-p1", bad, "--validate-config=run"]), 2);
    assert_eq!(code(&["-p1", bad]), 2);
    let missing = start(&["-p1", "--config=file:/no/such/file"]).unwrap_err();
    assert_eq!(missing.code, 2);
    assert!(
        missing.message.contains("Can not read config"),
        "{}",
        missing.message
    );
    for bad in [
        &["-p1"][..],
        &["-p", "70000", good],
        &["-p1", good, "--server-timeout=0"],
        &["-p1", good, "--server-timeout=x"],
        &["-p1", good, "--num-proxies=0"],
        &["-p1", good, "--ssl-port=5"],
        &["-p1", good, "--group-remote-errors"],
        &["-p1", good, "--route-prefix=x"],
        &["-p1", good, "--unix-domain-sock=/x"],
        &["-p1", good, "--validate-config=maybe"],
        &["-p1", good, "--enable-flush-cmd=maybe"],
        &["-p1", good, "-t"],
    ] {
        assert_eq!(code(bad), 3, "{bad:?}");
    }
    // Refused options that ask for nothing are no reason to refuse.
    assert!(matches!(
        start(&["-p1", good, "--group-remote-errors=0", "--ssl-port="]),
        Ok(Start::Run(_))
    ));
}
