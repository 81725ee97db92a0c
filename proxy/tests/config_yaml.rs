//! The configuration format as its users meet it: what is accepted, and the messages about what is not.
#![allow(clippy::disallowed_methods)]

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use proxima::config::{self, routes, schema::*, source::file::ServerFile};
use proxima_wire::message::{Class, Outcome};

#[path = "../../wire/tests/memcache/rows.rs"]
mod rows;

use rows::each_row;

fn parse(text: &str) -> Config {
    config::parse(text, Path::new("F"))
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
        .config
}

#[test]
fn unix_listeners_have_owner_and_mode() {
    let listener = |text: &str| {
        let text = format!("listeners: [{{route: embedded, {text}}}]\n");
        config::parse(&text, Path::new("F")).map(|loaded| loaded.config.listeners[0].permissions.clone())
    };
    let number = |id| Some(Id::Number(id));
    let name = |name: &str| Some(Id::Name(name.to_owned()));
    let rows = [
        ("mode: 660", Some(0o660), None, None),
        ("mode: \"0777\"", Some(0o777), None, None),
        ("owner: memcache", None, name("memcache"), None),
        ("owner: \"11:web\"", None, number(11), name("web")),
        ("owner: \":20\"", None, None, number(20)),
    ];
    each_row(rows, |(text, mode, user, group)| {
        let (mode, user, group) = (*mode, user.clone(), group.clone());
        let owner = (user.is_some() || group.is_some()).then_some(Ownership { user, group });
        let found = listener(&format!("address: unix:/x, {text}")).unwrap();
        assert_eq!(found, Permissions { mode, owner }, "{text}");
    });
    let rows = [
        "address: unix:/x, mode: 66",
        "address: unix:/x, mode: 668",
        "address: unix:/x, mode: 1777",
        "address: unix:/x, mode: rw",
        "address: unix:/x, owner: \"a:\"",
        "address: unix:/x, owner: \"a b\"",
        "address: unix:/x, owner: \"\"",
        "address: \"127.0.0.1:1\", mode: 660",
    ];
    each_row(rows, |&text| {
        assert!(listener(text).is_err(), "{text}");
    });
}

#[test]
fn listeners_take_addresses_and_localhost() {
    let rows = [
        ("localhost:0", true),
        ("LOCALHOST:11211", true),
        ("0.0.0.0:1", true),
        ("node1:11211", false),
    ];
    each_row(rows, |&(address, good)| {
        for key in [
            "listeners: [{route: embedded, address: A}]",
            "listeners: [{route: embedded, address: \"[::1]:9\"}]\nadmin: A",
        ] {
            let text = key.replace('A', &format!("\"{address}\""));
            assert_eq!(config::parse(&text, Path::new("F")).is_ok(), good, "{text}");
        }
    });
    let taken = "listeners: [{route: embedded, address: \"localhost:5\"}]\nadmin: 127.0.0.1:5\n";
    assert!(config::parse(taken, Path::new("F")).is_err());
}

/// The route named `main`, in a configuration with pools `a` and `b` and a route `r`.
fn route(text: &str) -> Route {
    let around = "listeners: [{address: 127.0.0.1:0, route: main}]\npools: {a: [h:1], b: [h:2]}\n";
    parse(&format!("{around}routes:\n  r: {{nearest: a}}\n  main: {text}\n")).routes["main"].clone()
}

fn named(name: &str) -> Route {
    Route::Named(name.to_owned())
}

fn pool(name: &str) -> Children {
    Children::Pool(name.to_owned())
}

/// Each file of `bad-config` is refused with the message in its first line, which is a comment.
#[test]
fn bad_configurations_are_refused_with_place_key_and_remedy() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad-config");
    let files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(files.len() >= 24, "only {} found", files.len());
    each_row(files, |path| {
        let text = fs::read_to_string(path).unwrap();
        let expected = text.lines().next().unwrap().strip_prefix("# ").unwrap();
        let name = Path::new(path.file_name().unwrap());
        let message = config::parse(&text, name)
            .expect_err(&name.display().to_string())
            .to_string();
        assert_eq!(message, format!("{}:{expected}", name.display()));
    });
}

#[test]
fn a_configuration_with_every_section_is_read() {
    let text = r#"
listeners:
  - address: 127.0.0.1:11211
    route: main
  - {address: "unix:/run/proxima.sock", route: {nearest: cache}}
  - {address: 127.0.0.1:6379, protocol: redis, route: keys, password_env: CLIENTS}
  - {address: 127.0.0.1:6380, protocol: redis, route: keys, auth: pass}
  - {address: 127.0.0.1:11212, route: main, discovery: {peers: [a:1, 10.0.0.2:1], announce: b:1, keep: run/told}}
  - {address: 127.0.0.1:11213, route: main, discovery: {peers: {file: run/peers}}}
admin: 127.0.0.1:9150
pools:
  cache:
    servers: [10.0.0.1:11211, {address: 10.0.0.2:11211, weight: 2, name: b, zone: eu-1a}]
    hash: {algorithm: ketama_twemproxy, key_hash: md5, tag: "{}", salt: x, stop: false, eject: true}
    timeout: 2s
    connect_timeout: 250ms
    eject: {failures: 5, probe_initial: 2s, probe_max: 1m, fail_open_above: 0.5}
  spare: ["[::1]:11211"]
  followed: {file: followed.servers}
  named: {dns: "memcached.cache.svc.cluster.local:11211"}
  discovered: {elasticache: "cluster.cfg.cache.amazonaws.com:11211"}
  kept: {source: {elasticache: {endpoint: "[::1]:11211", interval: 5s, keep: run/nodes}}}
  keys:
    protocol: redis
    servers: ["10.0.0.3:6379"]
    user: me
    password_file: secrets/redis
    database: 2
    dedicated: {max: 8, wait: 2s, idle: 1}
  described:
    dns: {name: _memcached._tcp.cache, record: srv, interval: 5s, server: 10.96.0.10}
routes:
  main:
    by_operation:
      read: {failover: [{nearest: cache}, spare]}
      delete: {all_sync: cache}
      touch: named
      incr: described
      decr: discovered
      append: kept
      default: followed
limits: {clients: 5000, value_size: 1MiB, idle: 5m, age: 1h, write_timeout: 3s}
health:
  - "0.0.0.0:9160"
  - {address: 127.0.0.1:9161, check: tcp, pools: {cache: 2, spare: 1}}
  - {address: "[::1]:9162", allow: [127.0.0.1, 10.0.0.0/16]}
drain: {file: run/out, delay: 5s, limit: 1m}
embedded: {memory: 1GiB}
commands:
  JSON.SET: {arity: -4}
  NEW.READ: {arity: 3, keys: [1, -1, 2], class: read}
workers: 4
nodes: {from: run/nodes.sock, grace: 5s}
"#;
    let loaded = config::parse(text, Path::new("conf/proxima.yaml")).unwrap();
    let server = |address: &str| Server {
        address: address.to_owned(),
        name: None,
        weight: 1.0,
        zone: None,
        pod: None,
    };
    let second = Server {
        name: Some("b".into()),
        weight: 2.0,
        zone: Some("eu-1a".into()),
        ..server("10.0.0.2:11211")
    };
    let cache = Pool {
        one_writer: None,
        protocol: Protocol::MEMCACHED,
        source: Source::new(vec![server("10.0.0.1:11211"), second]),
        hash: Hash {
            salt: "x".into(),
            tag: Some(*b"{}"),
            stop: false,
            eject: OnEject::Move,
            ..Hash::of(Algorithm::KetamaTwemproxy(KeyHash::Md5))
        },
        timeout: Duration::from_secs(2),
        connect_timeout: Duration::from_millis(250),
        eject: Eject {
            by: EjectBy::Suspicion,
            failures: 5,
            probe_initial: Duration::from_secs(2),
            probe_max: Duration::from_secs(60),
            fail_open_above: 0.5,
            flush_on_return: false,
        },
        keep_routing_prefix: false,
        replicated: None,
        login: Login::default(),
        dedicated: Dedicated::DEFAULT,
        preconnect: false,
        keepalive: None,
        asks_version: true,
        tls: None,
        plain_logins: PlainLogins::Rejected,
        plain: Vec::new(),
    };
    let plain = |source| Pool {
        one_writer: None,
        protocol: Protocol::MEMCACHED,
        source,
        hash: Hash::of(Algorithm::Ketama),
        timeout: Pool::TIMEOUT,
        connect_timeout: Pool::CONNECT_TIMEOUT,
        eject: Eject::DEFAULT,
        keep_routing_prefix: false,
        replicated: None,
        login: Login::default(),
        dedicated: Dedicated::DEFAULT,
        preconnect: false,
        keepalive: None,
        asks_version: true,
        tls: None,
        plain_logins: PlainLogins::Rejected,
        plain: Vec::new(),
    };
    let unread = |source| Password { source, secret: None };
    let keys = Pool {
        protocol: Protocol::REDIS,
        login: Login {
            user: Some("me".into()),
            password: Some(unread(PasswordSource::File("conf/secrets/redis".into()))),
            database: 2,
        },
        dedicated: Dedicated {
            max: 8,
            wait: Duration::from_secs(2),
            idle: 1,
            ..Dedicated::DEFAULT
        },
        ..plain(Source::new(vec![server("10.0.0.3:6379")]))
    };
    let redis = |address: &str, access| Listener {
        door: Door::default(),
        protocol: Protocol::REDIS,
        address: address.into(),
        route: named("keys"),
        access,
        permissions: Permissions::default(),
        discovery: None,
        socket: SocketOptions::default(),
        reply_style: ReplyStyle::Own,
        tls: None,
        server_version: None,
    };
    let announcing = |address: &str, discovery| Listener {
        protocol: Protocol::MEMCACHED,
        route: named("main"),
        access: Access::Open,
        discovery: Some(discovery),
        ..redis(address, Access::Open)
    };
    let declared = |arity, keys, class| DeclaredCommand { arity, keys, class };
    let failover = Route::of(
        routes::Failover {
            rules: Box::default(),
        },
        Children::List(vec![Route::of(routes::Nearest, pool("cache")), named("spare")]),
    );
    let operations = [
        ("read".to_owned(), failover),
        ("delete".to_owned(), Route::of(routes::AllSync, pool("cache"))),
        ("touch".to_owned(), named("named")),
        ("incr".to_owned(), named("described")),
        ("decr".to_owned(), named("discovered")),
        ("append".to_owned(), named("kept")),
    ];
    let main = Route::keyed(
        routes::ByOperation,
        operations.into(),
        Some(Box::new(named("followed"))),
    );
    let expected = Config {
        fleet: None,
        near: NearCache::default(),
        hot_keys: HotKeys::Watched,
        sampled_keys: ShownKeys::Plain,
        slow_requests: None,
        spool: None,
        state: None,
        health: vec![
            HealthListener {
                address: "0.0.0.0:9160".into(),
                check: HealthCheck::Http,
                pools: BTreeMap::new(),
                allow: Vec::new(),
            },
            HealthListener {
                address: "127.0.0.1:9161".into(),
                check: HealthCheck::Tcp,
                pools: [("cache".into(), 2), ("spare".into(), 1)].into(),
                allow: Vec::new(),
            },
            HealthListener {
                address: "[::1]:9162".into(),
                check: HealthCheck::Http,
                pools: BTreeMap::new(),
                allow: ["127.0.0.1", "10.0.0.0/16"]
                    .map(|text| Network::parse(text).unwrap())
                    .into(),
            },
        ],
        drain: Drain {
            file: Some("conf/run/out".into()),
            delay: Duration::from_secs(5),
            limit: Duration::from_secs(60),
        },
        nodes: Some(Nodes {
            from: "conf/run/nodes.sock".into(),
            grace: Duration::from_secs(5),
        }),
        workers: Some(4),
        listeners: vec![
            Listener {
                door: Door::default(),
                protocol: Protocol::MEMCACHED,
                address: "127.0.0.1:11211".into(),
                route: named("main"),
                access: Access::Open,
                permissions: Permissions::default(),
                discovery: None,
                socket: SocketOptions::default(),
                reply_style: ReplyStyle::Own,
                tls: None,
                server_version: None,
            },
            Listener {
                door: Door::default(),
                protocol: Protocol::MEMCACHED,
                address: "unix:/run/proxima.sock".into(),
                route: Route::of(routes::Nearest, pool("cache")),
                access: Access::Open,
                permissions: Permissions::default(),
                discovery: None,
                socket: SocketOptions::default(),
                reply_style: ReplyStyle::Own,
                tls: None,
                server_version: None,
            },
            redis(
                "127.0.0.1:6379",
                Access::Password(unread(PasswordSource::Variable("CLIENTS".into()))),
            ),
            redis("127.0.0.1:6380", Access::Pass),
            announcing(
                "127.0.0.1:11212",
                Discovery {
                    announce: Some("b:1".into()),
                    peers: Peers::Listed(vec!["a:1".into(), "10.0.0.2:1".into()]),
                    keep: Some("conf/run/told".into()),
                },
            ),
            announcing(
                "127.0.0.1:11213",
                Discovery {
                    announce: None,
                    peers: Peers::File("conf/run/peers".into()),
                    keep: None,
                },
            ),
        ],
        admin: Some("127.0.0.1:9150".into()),
        admin_hosts: Vec::new(),
        admin_tls: None,
        admin_tokens: None,
        pools: BTreeMap::from([
            ("cache".to_owned(), cache),
            ("keys".to_owned(), keys),
            (
                "spare".to_owned(),
                plain(Source::new(vec![server("[::1]:11211")])),
            ),
            (
                "followed".to_owned(),
                plain(Source::new(ServerFile("conf/followed.servers".into()))),
            ),
            (
                "named".to_owned(),
                plain(Source::new(Dns {
                    name: "memcached.cache.svc.cluster.local".into(),
                    record: Record::A(11211),
                    interval: Duration::from_secs(1),
                    server: None,
                })),
            ),
            (
                "discovered".to_owned(),
                plain(Source::new(Endpoint {
                    address: "cluster.cfg.cache.amazonaws.com:11211".into(),
                    interval: Duration::from_secs(60),
                    keep: None,
                    tls: None,
                })),
            ),
            (
                "kept".to_owned(),
                plain(Source::new(Endpoint {
                    address: "[::1]:11211".into(),
                    interval: Duration::from_secs(5),
                    keep: Some("conf/run/nodes".into()),
                    tls: None,
                })),
            ),
            (
                "described".to_owned(),
                plain(Source::new(Dns {
                    name: "_memcached._tcp.cache".into(),
                    record: Record::Srv,
                    interval: Duration::from_secs(5),
                    server: Some("10.96.0.10:53".parse().unwrap()),
                })),
            ),
        ]),
        routes: BTreeMap::from([("main".to_owned(), main)]),
        commands: BTreeMap::from([
            ("json.set".to_owned(), declared(-4, [1, 1, 1], Class::Write)),
            ("new.read".to_owned(), declared(3, [1, -1, 2], Class::Read)),
        ]),
        limits: Limits {
            clients: 5000,
            value_bytes: 1 << 20,
            idle: Duration::from_secs(300),
            age: Duration::from_secs(3600),
            write_timeout: Duration::from_secs(3),
            ..Limits::DEFAULT
        },
        embedded: Embedded { memory: 1 << 30 },
    };
    assert_eq!(loaded.config, expected);
    assert_eq!(loaded.warnings, Vec::<String>::new());
    assert_eq!(
        loaded.files_watched,
        [
            Path::new("conf/proxima.yaml"),
            Path::new("conf/followed.servers"),
            Path::new("conf/secrets/redis"),
        ]
    );
}

#[test]
fn nodes_is_read_as_a_path_or_with_options() {
    let nodes = |text: &str| {
        let text = format!("listeners: [{{address: 127.0.0.1:1, route: embedded}}]\n{text}\n");
        config::parse(&text, Path::new("conf/F")).map(|loaded| loaded.config.nodes)
    };
    let told = |from: &str, seconds| {
        Some(Nodes {
            from: from.into(),
            grace: Duration::from_secs(seconds),
        })
    };
    let rows = [
        ("", None),
        ("nodes: agent", told("/run/proxima-agent/nodes.sock", 60)),
        ("nodes: /run/x.sock", told("/run/x.sock", 60)),
        ("nodes: ./x.sock", told("conf/./x.sock", 60)),
        (
            "nodes: {from: agent, grace: 0s}",
            told("/run/proxima-agent/nodes.sock", 0),
        ),
    ];
    each_row(rows, |(text, expected)| {
        assert_eq!(nodes(text).unwrap(), *expected, "{text}");
    });
    let long = format!("nodes: /{}", "x".repeat(107));
    let rows = [
        "nodes: agents",
        "nodes: []",
        "nodes: {}",
        "nodes: {grace: 5s}",
        "nodes: {from: agent, grace: 5}",
        &long,
    ];
    each_row(rows, |&text| {
        assert!(nodes(text).is_err(), "{text}");
    });
}

#[test]
fn every_handle_is_read() {
    let children = || Children::List(vec![named("a"), named("r")]);
    let failover = |policy| {
        Route::of(
            routes::Failover {
                rules: Box::new(FailoverRules {
                    policy,
                    ..FailoverRules::default()
                }),
            },
            pool("a"),
        )
    };
    let table = [
        ("a", named("a")),
        ("embedded", Route::Leaf(Leaf::Embedded)),
        ("null", Route::Leaf(Leaf::Null)),
        ("{\"null\": }", Route::Leaf(Leaf::Null)),
        ("{pool: a}", Route::Leaf(Leaf::Pool("a".into()))),
        ("{member: a/h:1}", Route::Leaf(Leaf::Member("a/h:1".into()))),
        ("{member: \"h:5\"}", Route::Leaf(Leaf::Member("h:5".into()))),
        ("{error: gone away}", Route::Leaf(Leaf::Error("gone away".into()))),
        (
            "{error: {text: gone, result: timeout}}",
            Route::Leaf(Leaf::Error(ErrorReply {
                outcome: Outcome::Timeout,
                text: "gone".into(),
            })),
        ),
        (
            "{hash: [a, r]}",
            Route::of(routes::ByHash { hash: None }, children()),
        ),
        (
            "{hash: {children: a, hash: jump}}",
            Route::of(
                routes::ByHash {
                    hash: Some(Hash::of(Algorithm::Jump)),
                },
                pool("a"),
            ),
        ),
        ("{nearest: a}", Route::of(routes::Nearest, pool("a"))),
        ("{random: a}", Route::of(routes::Random, pool("a"))),
        ("{round_robin: a}", Route::of(routes::RoundRobin, pool("a"))),
        (
            "{host_id: a}",
            Route::of(routes::HostId { salt: String::new() }, pool("a")),
        ),
        (
            "{host_id: {children: a, salt: 5}}",
            Route::of(routes::HostId { salt: "5".into() }, pool("a")),
        ),
        (
            "{by_client: {children: a, offset: 1}}",
            Route::of(routes::ByClient { offset: 1 }, pool("a")),
        ),
        (
            "{latest: [a, r]}",
            Route::of(
                routes::Latest {
                    count: 5,
                    weights: None,
                    salt: String::new(),
                    per_worker: false,
                    rules: Box::default(),
                },
                children(),
            ),
        ),
        (
            "{latest: {children: [a, r], count: 1, weights: [1, 0.5], salt: s, per_worker: true}}",
            Route::of(
                routes::Latest {
                    count: 1,
                    weights: Some(vec![1.0, 0.5]),
                    salt: "s".into(),
                    per_worker: true,
                    rules: Box::default(),
                },
                children(),
            ),
        ),
        (
            "{migrate: {from: a, to: r, start: 1700000000, interval: 4s}}",
            Route::pair(
                routes::Migrate {
                    start: 1_700_000_000,
                    interval: Duration::from_secs(4),
                },
                named("a"),
                named("r"),
            ),
        ),
        (
            "{shard_split: {child: a, splits: {12: 3, x: {copies: 4, before: 2, start: 5, period: 1h, all_deletes: false}}}}",
            Route::one(
                routes::ShardSplit {
                    splits: BTreeMap::from([
                        ("12".to_owned(), ShardCopies::of(3)),
                        (
                            "x".to_owned(),
                            ShardCopies {
                                copies: 4,
                                before: 2,
                                start: 5,
                                period: Duration::from_secs(3600),
                                all_deletes: false,
                            },
                        ),
                    ]),
                },
                named("a"),
            ),
        ),
        (
            "{key_split: {child: a, copies: 3, first_hit: true}}",
            Route::one(
                routes::KeySplit {
                    copies: 3,
                    all_sync: false,
                    first_hit: true,
                },
                named("a"),
            ),
        ),
        (
            "{fault: {child: a, delay_after: 1s, total: 2s}}",
            Route::one(
                routes::Fault {
                    delay_after: Duration::from_secs(1),
                    total: vec![(1.0, Duration::from_secs(2))],
                    ..routes::Fault::default()
                },
                named("a"),
            ),
        ),
        (
            "{shadow: {child: a, shadows: [{target: r}, {target: b, key_range: [0, 0.1], share: 0.5, in_flight: 2}, {target: r, keys: [x]}]}}",
            Route::Shadow(
                Box::new(named("a")),
                vec![
                    Shadow {
                        target: named("r"),
                        keys: ShadowKeys::Between(0.0, 1.0),
                        share: 1.0,
                        in_flight: 1000,
                    },
                    Shadow {
                        target: named("b"),
                        keys: ShadowKeys::Between(0.0, 0.1),
                        share: 0.5,
                        in_flight: 2,
                    },
                    Shadow {
                        target: named("r"),
                        keys: ShadowKeys::Listed(vec!["x".into()]),
                        share: 1.0,
                        in_flight: 1000,
                    },
                ],
            ),
        ),
        (
            "{rate_limit: {child: a, gets: 10, sets: {rate: 0.5}, deletes: {rate: 5, burst: 2}, fallback: r}}",
            Route::pair(
                routes::RateLimit {
                    gets: Some(Rate {
                        per_second: 10.0,
                        burst: 10.0,
                    }),
                    sets: Some(Rate {
                        per_second: 0.5,
                        burst: 1.0,
                    }),
                    deletes: Some(Rate {
                        per_second: 5.0,
                        burst: 2.0,
                    }),
                },
                named("a"),
                named("r"),
            ),
        ),
        (
            "{outstanding_limit: {child: a, requests: 2}}",
            Route::one(routes::OutstandingLimit { most: 2, queue: None }, named("a")),
        ),
        (
            "{warm_up: {cold: a, warm: r, ttl: 1m}}",
            Route::pair(routes::WarmUp { ttl: Some(60) }, named("a"), named("r")),
        ),
        (
            "{slow_warm_up: {child: a, failover: r, start: 0.2, min_requests: 5}}",
            Route::pair(
                routes::SlowWarmUp {
                    start: 0.2,
                    min_requests: 5,
                    ..routes::SlowWarmUp::default()
                },
                named("a"),
                named("r"),
            ),
        ),
        (
            "{staging: {warm: a, staging: r}}",
            Route::pair(routes::Staging, named("a"), named("r")),
        ),
        (
            "{l1_l2_cache: {l1: a, l2: r, ttl: 60, miss_ttl: 5, miss_period: 10}}",
            Route::pair(
                routes::L1L2Cache {
                    ttl: 60,
                    misses: Some((5, 10)),
                },
                named("a"),
                named("r"),
            ),
        ),
        (
            "{size_split: {l1: a, l2: r, threshold: 1KiB, ttl_threshold: 5, both: true, retries: 3}}",
            Route::pair(
                routes::SizeSplit {
                    threshold: 1024,
                    ttl_threshold: 5,
                    failure_ttl: 60,
                    both: true,
                    retries: 3,
                    hides_server: false,
                },
                named("a"),
                named("r"),
            ),
        ),
        (
            "{big_value: {child: a, threshold: 1MiB}}",
            Route::one(
                routes::BigValue {
                    threshold: 1 << 20,
                    batch: 10,
                    hides_flag: false,
                },
                named("a"),
            ),
        ),
        (
            "{by_key: {keys: [x], listed: a, default: r}}",
            Route::pair(
                routes::ByKey {
                    keys: vec!["x".into()],
                },
                named("a"),
                named("r"),
            ),
        ),
        (
            "{key_part: {child: a, parts: 2, delimiter: \"/\"}}",
            Route::one(
                routes::KeyPart {
                    parts: 2,
                    delimiter: b'/',
                },
                named("a"),
            ),
        ),
        (
            "{hash_stop: {child: a, prefixes: [x]}}",
            Route::one(
                routes::HashStop {
                    prefixes: vec!["x".into()],
                },
                named("a"),
            ),
        ),
        ("{all_sync: [a, r]}", Route::of(routes::AllSync, children())),
        ("{all_majority: a}", Route::of(routes::AllMajority, pool("a"))),
        ("{all_fastest: a}", Route::of(routes::AllFastest, pool("a"))),
        ("{all_initial: a}", Route::of(routes::AllInitial, pool("a"))),
        ("{all_async: a}", Route::of(routes::AllAsync, pool("a"))),
        (
            "{failover: [a, r]}",
            Route::of(
                routes::Failover {
                    rules: Box::default(),
                },
                children(),
            ),
        ),
        (
            "{failover: {children: a, errors: {gets: [timeout], deletes: []}, limit: {rate: 0.1}, tag: true}}",
            Route::of(
                routes::Failover {
                    rules: Box::new(FailoverRules {
                        errors: FailoverErrors {
                            gets: Some(vec![Outcome::Timeout]),
                            updates: None,
                            deletes: Some(vec![]),
                            others: None,
                        },
                        limit: Some(FailoverLimit {
                            rate: 0.1,
                            burst: 1000.0,
                        }),
                        tag: true,
                        ..FailoverRules::default()
                    }),
                },
                pool("a"),
            ),
        ),
        (
            "{failover: {children: a, policy: {least_failures: 2}}}",
            failover(FailoverPolicy::LeastFailures { tries: 2 }),
        ),
        (
            "{failover: {children: a, policy: {hash_order: {tries: 3, error_tries: 2, exclude: [timeout],
                weights: [1], domains: [7], knows_first: false}}}}",
            failover(FailoverPolicy::HashOrder(Box::new(HashOrder {
                tries: 3,
                error_tries: 2,
                exclude: vec![Outcome::Timeout],
                weights: Some(vec![1.0]),
                domains: vec![Some(7)],
                knows_first: false,
            }))),
        ),
        (
            "{failover: {children: [a, r], policy: {rendezvous: [x]}}}",
            Route::of(
                routes::Failover {
                    rules: Box::new(FailoverRules {
                        policy: FailoverPolicy::Rendezvous {
                            tags: vec!["x".into()],
                        },
                        ..FailoverRules::default()
                    }),
                },
                children(),
            ),
        ),
        (
            "{miss_failover: a}",
            Route::of(routes::MissFailover { best_on_error: false }, pool("a")),
        ),
        (
            "{failover_with_ttl: {normal: a, failover: [b], errors: [ejected]}}",
            Route::FailoverWithTtl(
                routes::FailoverWithTtl {
                    ttl: 60,
                    rules: FailoverErrors {
                        gets: Some(vec![Outcome::Ejected]),
                        updates: Some(vec![Outcome::Ejected]),
                        deletes: Some(vec![Outcome::Ejected]),
                        others: Some(vec![Outcome::Ejected]),
                    }
                    .into(),
                },
                Box::new(named("a")),
                Children::List(vec![named("b")]),
            ),
        ),
        (
            "{by_prefix: {prefixes: {\"user:\": a}, default: r}}",
            Route::keyed(
                routes::ByPrefix,
                BTreeMap::from([("user:".to_owned(), named("a"))]),
                Some(Box::new(named("r"))),
            ),
        ),
        (
            "{by_key_pattern: {patterns: {\"z*\": a, \"a*\": b}}}",
            Route::Keyed(
                routes::ByKeyPattern.into(),
                vec![("z*".to_owned(), named("a")), ("a*".to_owned(), named("b"))],
                None,
            ),
        ),
        (
            "{modify_key: {child: a, ensure_prefix: p, replace_prefix: q, in_place: true, suffix: s}}",
            Route::one(
                routes::ModifyKey {
                    routing_prefix: None,
                    ensure_prefix: "p".into(),
                    replace_prefix: Some("q".into()),
                    in_place: true,
                    suffix: "s".into(),
                },
                named("a"),
            ),
        ),
        (
            "{modify_ttl: {child: a, ttl: 5m, action: min}}",
            Route::one(
                routes::ModifyTtl {
                    ttl: 300,
                    action: TtlAction::Min,
                },
                named("a"),
            ),
        ),
        (
            "{log: {nearest: a}}",
            Route::one(routes::Log, Route::of(routes::Nearest, pool("a"))),
        ),
        (
            "{fault: {child: a, delay: 5ms, error_rate: 0.5}}",
            Route::one(
                routes::Fault {
                    delay: Duration::from_millis(5),
                    error_rate: 0.5,
                    ..routes::Fault::default()
                },
                named("a"),
            ),
        ),
    ];
    each_row(table, |(text, expected)| {
        assert_eq!(route(text), *expected, "{text}");
    });
}

#[test]
fn yaml_anchors_stand_for_their_values() {
    let text =
        "listeners: [{address: 127.0.0.1:1, route: {by_operation: {get: &near {nearest: a}, gets: *near}}}]
pools: {a: [h:1]}\n";
    let Route::Keyed(_, operations, _) = parse(text).listeners.remove(0).route else {
        panic!()
    };
    let of = |name: &str| operations.iter().find(|(own, _)| own == name);
    assert_eq!(of("get").unwrap().1, of("gets").unwrap().1);
}

#[test]
fn equal_texts_have_equal_versions_and_others_differ() {
    let text = "listeners: [{address: 127.0.0.1:1, route: embedded}]\n";
    let version = |text: &str| config::parse(text, Path::new("F")).unwrap().version_hash;
    assert_eq!(version(text), version(text));
    assert_ne!(version(text), version(&format!("{text}# changed\n")));
}

#[test]
fn tls_of_listeners_pools_endpoints_and_the_admin_port_is_read() {
    let text = "
listeners:
  - {address: 127.0.0.1:11212, route: a, tls: {certificate: own.crt, key: /etc/own.key}}
admin: {address: 127.0.0.1:9150, hosts: [cache.example.com], tls: {certificate: own.crt, key: /etc/own.key}}
admin_hosts: [other.example.com]
pools:
  a: {servers: [10.0.0.1:11211], tls: {}}
  b:
    elasticache: name.cfg.cache.amazonaws.com:11211
    tls: {ca: ca.crt, name: cache.test, certificate: me.crt, key: me.key, verify: authority}
  c: {servers: [10.0.0.1:11211], tls: {verify: none}}
routes: {x: {failover: [b, c]}}
";
    let loaded = config::parse(text, Path::new("conf/proxima.yaml")).unwrap();
    let config = loaded.config;
    let own = ServerTls {
        identity: Identity {
            certificate: "conf/own.crt".into(),
            key: "/etc/own.key".into(),
        },
        ca: None,
    };
    assert_eq!(config.listeners[0].tls.as_ref(), Some(&own));
    assert_eq!(config.admin_tls, Some(own));
    assert_eq!(config.admin.as_deref(), Some("127.0.0.1:9150"));
    assert_eq!(config.admin_hosts, ["cache.example.com", "other.example.com"]);
    let plain = ClientTls {
        ca: None,
        name: None,
        identity: None,
        verify: Verify::Full,
    };
    assert_eq!(config.pools["a"].tls.as_ref(), Some(&plain));
    let full = ClientTls {
        ca: Some("conf/ca.crt".into()),
        name: Some("cache.test".into()),
        identity: Some(Identity {
            certificate: "conf/me.crt".into(),
            key: "conf/me.key".into(),
        }),
        verify: Verify::Authority,
    };
    assert_eq!(config.pools["b"].tls.as_ref(), Some(&full));
    let question = config.pools["b"].source.question();
    assert!(matches!(question, Some(Question::Endpoint(endpoint)) if endpoint.tls == Some(full)));
    let warnings: Vec<_> = loaded
        .warnings
        .iter()
        .filter(|warning| warning.contains("`verify: none`"))
        .collect();
    assert_eq!(warnings.len(), 1, "{:?}", loaded.warnings);
    assert!(
        warnings[0].starts_with("conf/proxima.yaml:11:39: "),
        "{}",
        warnings[0]
    );
}

#[test]
fn unused_pools_and_routes_are_warned_of() {
    let text = "listeners: [{address: 127.0.0.1:1, route: a}]\npools:\n  a: [h:1]\n  b: [h:2]\nroutes: {r: embedded}\n";
    let warnings = config::parse(text, Path::new("F")).unwrap().warnings;
    assert_eq!(
        warnings,
        [
            "F:4:3: pools.b: nothing uses the pool `b`",
            "F:5:10: routes.r: nothing uses the route `r`"
        ]
    );
}

#[test]
fn a_route_with_a_pools_name_is_warned_of() {
    let text =
        "listeners: [{address: 127.0.0.1:1, route: a}]\npools: {a: [h:1, h:2]}\nroutes:\n  a: {nearest: a}\n";
    let warnings = config::parse(text, Path::new("F")).unwrap().warnings;
    assert_eq!(
        warnings,
        [
            "F:4:3: routes.a: a pool is called `a`, too: as a route the name means this route, as children the pool's servers"
        ]
    );
}

#[test]
fn a_file_of_servers_is_found_beside_the_configuration() {
    let folder = std::env::temp_dir().join(format!("proxima-config-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (main, servers) = (folder.join("proxima.yaml"), folder.join("cache.servers"));
    fs::write(
        &main,
        "listeners: [{address: 127.0.0.1:1, route: c}]\npools: {c: {file: cache.servers}}\n",
    )
    .unwrap();

    let missing = config::load(&main).unwrap_err().to_string();
    assert!(
        missing.starts_with(&format!("{}: cannot be read: ", servers.display())),
        "{missing}"
    );

    fs::write(&servers, "10.0.0.1:11211\n10.0.0.2\n").unwrap();
    let bad = config::load(&main).unwrap_err().to_string();
    assert!(
        bad.starts_with(&format!("{}:2:1: `10.0.0.2` is no address", servers.display())),
        "{bad}"
    );

    fs::write(&servers, "10.0.0.1:11211\n").unwrap();
    assert_eq!(config::load(&main).unwrap().files_watched, [main, servers]);
    fs::remove_dir_all(folder).unwrap();
}

/// The pages under `docs/` and the schema are those that the program generates.
#[test]
fn the_reference_pages_are_up_to_date() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let generated = [
        ("options.md", config::describe::options()),
        ("routes.md", config::describe::routes()),
        ("proxima.schema.json", config::describe::json_schema_text()),
    ];
    for (name, text) in generated {
        let path = docs.join(name);
        if std::env::var_os("UPDATE_REFERENCE").is_some() {
            fs::write(&path, &text).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == text,
            "docs/{name} is stale: run this test with UPDATE_REFERENCE=1"
        );
    }
}
