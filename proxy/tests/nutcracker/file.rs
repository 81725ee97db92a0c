//! What a file becomes.

use std::{path::Path, time::Duration};

use proxima::{config::schema::*, frontdoor::nutcracker};

use crate::{parse, pool, server};

#[test]
fn twemproxy_defaults_are_those_of_the_pool() {
    let config = parse(&pool("")).unwrap();
    let listener = Listener {
        door: Default::default(),
        protocol: Protocol::MEMCACHED,
        address: "127.0.0.1:22121".into(),
        route: Route::Leaf(Leaf::Pool("a".into())),
        access: Access::Open,
        discovery: None,
        permissions: Permissions::default(),
        socket: SocketOptions {
            backlog: 512,
            keepalive: false,
            shared: false,
        },
        reply_style: ReplyStyle::Twemproxy { all_commands: false },
        tls: None,
        server_version: None,
    };
    assert_eq!(config.listeners, [listener]);
    let pool = &config.pools["a"];
    assert_eq!(
        pool.hash,
        Hash {
            stop: false,
            ..Hash::of(Algorithm::KetamaTwemproxy(KeyHash::Fnv1a64))
        }
    );
    // Without a time-out servers are waited for without end.
    assert!(pool.timeout > Duration::from_secs(365 * 86_400) && pool.connect_timeout == pool.timeout);
    assert_eq!(
        (pool.eject.by, pool.eject.failures),
        (EjectBy::LostConnections, 0)
    );
    assert_eq!((config.admin.as_deref(), config.workers), (None, None));
}

#[test]
fn every_key_of_a_twemproxy_file_is_read() {
    let text = "r#é:\n  listen: /run/r.sock 0660\n  hash: md5\n  hash_tag: \"{}\"\n  distribution: modula\n  timeout: 400\n  \
                backlog: 4096\n  client_connections: 5\n  redis: true\n  redis_auth: secret\n  redis_db: 3\n  \
                preconnect: true\n  auto_eject_hosts: true\n  server_connections: 4\n  server_retry_timeout: 5000\n  \
                server_failure_limit: 3\n  tcpkeepalive: true\n  reuseport: true\n  servers:\n    - 10.0.0.1:6379:2 x\n\
                m:\n  listen: 0.0.0.0:22122\n  distribution: random\n  servers:\n    - ::1:11211:1\n";
    for text in [text.to_owned(), text.replace('\n', "\r\n")] {
        let config = parse(&text).unwrap();
        let [redis, plain] = &config.listeners[..] else {
            panic!("{:?}", config.listeners)
        };
        assert_eq!(
            (redis.address.as_str(), redis.protocol),
            ("unix:/run/r.sock", Protocol::REDIS)
        );
        assert_eq!(redis.permissions.mode, Some(0o660));
        let socket = SocketOptions {
            backlog: 4096,
            keepalive: true,
            shared: true,
        };
        assert_eq!((redis.socket, &plain.address[..]), (socket, "0.0.0.0:22122"));
        let password = Password {
            source: PasswordSource::Inline,
            secret: Some(Secret::new(b"secret")),
        };
        assert_eq!(redis.access, Access::Password(password.clone()));
        let pool = &config.pools["r#é"];
        assert_eq!(
            (pool.login.password.as_ref(), pool.login.database),
            (Some(&password), 3)
        );
        assert_eq!(
            pool.hash,
            Hash {
                stop: false,
                tag: Some(*b"{}"),
                eject: OnEject::ShareAnew,
                ..Hash::of(Algorithm::Modula(KeyHash::Md5))
            }
        );
        let pause = Duration::from_secs(5);
        assert_eq!(
            pool.eject,
            Eject {
                by: EjectBy::LostConnections,
                failures: 3,
                probe_initial: pause,
                probe_max: pause,
                fail_open_above: 1.0,
                flush_on_return: false,
            }
        );
        assert!(pool.preconnect && pool.keepalive.is_some() && pool.timeout == Duration::from_millis(400));
        assert_eq!(config.pools["m"].hash.algorithm, Algorithm::Random);
    }
}

#[test]
fn servers_have_the_names_that_twemproxy_gives_them() {
    for (entry, address, name) in [
        ("10.0.0.1:11211:1", "10.0.0.1:11211", "10.0.0.1"),
        ("10.0.0.1:011211:1", "10.0.0.1:11211", "10.0.0.1"),
        ("10.0.0.1:11212:1", "10.0.0.1:11212", "10.0.0.1:11212"),
        ("10.0.0.1:01:1", "10.0.0.1:1", "10.0.0.1:01"),
        ("10.0.0.1:11211:1 given", "10.0.0.1:11211", "given"),
        ("'10.0.0.1:1:1 '", "10.0.0.1:1", ""),
        ("10.0.0.1:4294978507:1", "10.0.0.1:11211", "10.0.0.1"),
        ("cache.local:11211:1", "cache.local:11211", "cache.local"),
        ("::1:11211:1", "[::1]:11211", "::1"),
        ("::1:1:1", "[::1]:1", "::1:1"),
        ("/run/m.sock:1", "unix:/run/m.sock", "/run/m.sock:"),
        ("/run/../m:001", "unix:/run/../m", "/run/../m:"),
        ("/run/m.sock:1 m", "unix:/run/m.sock", "m"),
    ] {
        let config = parse(&server(entry)).unwrap();
        let expected = Server {
            address: address.into(),
            name: Some(name.into()),
            weight: 1.0,
            zone: None,
            pod: None,
        };
        assert_eq!(config.pools["a"].source.fixed(), Some(&[expected][..]), "{entry}");
    }
}

#[test]
fn servers_that_return_are_flushed_where_the_file_says_so() {
    let flushes = |keys: &str| {
        let loaded = nutcracker::parse(&pool(keys), Path::new("F")).unwrap();
        (loaded.config.pools["a"].eject.flush_on_return, loaded.warnings)
    };
    let none = Vec::new;
    assert_eq!(flushes("  auto_eject_hosts: true\n"), (false, none()));
    let keys = "  auto_eject_hosts: true\n  flush_on_return: true\n";
    assert_eq!(flushes(keys), (true, none()));
    assert_eq!(
        flushes("  redis: true\n  flush_on_return: false\n"),
        (false, none())
    );
    let (_, warnings) = flushes("  flush_on_return: true\n");
    assert_eq!(
        warnings,
        ["F:3:20: a: `flush_on_return` has no effect without `auto_eject_hosts: true`"]
    );
}

#[test]
fn the_first_lost_connection_ejects_with_a_limit_of_none() {
    let config = parse(&pool("  auto_eject_hosts: true\n  server_failure_limit: 0\n")).unwrap();
    assert_eq!(config.pools["a"].eject.failures, 1);
}

#[test]
fn five_thousand_servers_are_read() {
    let servers: String = (0..5_000)
        .map(|i| format!("    - 10.0.{}.{}:11211:1\n", i / 250, i % 250))
        .collect();
    let config = parse(&format!("a:\n  listen: 127.0.0.1:1\n  servers:\n{servers}")).unwrap();
    assert_eq!(config.pools["a"].source.fixed().map(<[Server]>::len), Some(5_000));
}

#[test]
fn an_endpoint_in_the_place_of_servers_is_asked_for_them() {
    for (entry, address) in [
        (
            "elasticache:cluster.cfg.example:11211",
            Some("cluster.cfg.example:11211"),
        ),
        ("elasticache:[::1]:1", Some("[::1]:1")),
        ("elasticache:11211:1", None),
        ("elasticache:11211:1 name", None),
    ] {
        let config = parse(&server(entry)).unwrap();
        let expected = address.map(|address| {
            Question::Endpoint(Endpoint {
                address: address.to_owned(),
                interval: Duration::from_secs(60),
                keep: None,
                tls: None,
            })
        });
        assert_eq!(config.pools["a"].source.question(), expected, "{entry}");
    }
}

#[test]
fn passwords_of_a_twemproxy_file_are_not_shown_and_are_part_of_its_version() {
    let loaded = |password| {
        let text = pool(&format!("  redis: true\n  redis_auth: {password} # {password}\n"));
        nutcracker::parse(&text, Path::new("F")).unwrap()
    };
    let (one, other) = (loaded("hush"), loaded("'hu''sh'"));
    assert!(!format!("{one:?}").contains("hush") && !format!("{other:?}").contains("hu''sh"));
    assert_eq!(one.text, pool("  redis: true\n  redis_auth: \"***\"\n"));
    assert_eq!(one.text, other.text);
    assert_ne!(one.version_hash, other.version_hash);
}
