//! The parts of a file that are refused, as twemproxy refuses them, each with its place and what would be
//! right.

use crate::{parse, pool, rows::each_row, server};

/// What is said of a file, which begins so.
fn refused(text: &str, expected: &str) -> String {
    let refused = parse(text).expect_err(text).to_string();
    assert!(refused.starts_with(expected), "{text}{refused}\n{expected}");
    refused
}

/// A file with this value of this key in line 3, and what is said of it behind the place.
fn value(key: &str, value: &str, said: &str) -> (String, String) {
    let column = 5 + key.len();
    let text = pool(&format!("  {key}: {value}\n"));
    (text, format!("F:3:{column}: a.{key}: expected {said}"))
}

#[test]
fn values_that_twemproxy_refuses_are_refused_with_their_place() {
    let flag = "`true` or `false`, found";
    let rows = [
        value(
            "hash",
            "FNV1A_64",
            "a hash, found `FNV1A_64`; did you mean `fnv1a_64`?",
        ),
        value("hash", "sha1", "a hash, found `sha1`; "),
        value("hash", "''", "a text, found ``"),
        value("hash", "~", "a hash, found nothing"),
        value("hash", "[md5]", "a text, found a list"),
        value(
            "distribution",
            "ketma",
            "a distribution, found `ketma`; did you mean `ketama`?",
        ),
        value(
            "hash_tag",
            "'{'",
            "two characters, found `{`; write them in quotes, as `\"{}\"`",
        ),
        value("hash_tag", "'{}}'", "two characters, found `{}}`"),
        value("hash_tag", "{}", "two characters, found a map"),
        value("hash_tag", "''", "two characters, found ``"),
        value(
            "timeout",
            "-1",
            "a number from 0 to 2147483647, found `-1`; leave it out, and servers are waited for without end",
        ),
        value(
            "timeout",
            "4x",
            "a number from 0 to 2147483647, found `4x`; write digits",
        ),
        value("timeout", "1.5", "a number from 0 to 2147483647, found `1.5`"),
        value("timeout", "+4", "a number from 0 to 2147483647, found `+4`"),
        value("timeout", "0x10", "a number from 0 to 2147483647, found `0x10`"),
        value("timeout", "' 4'", "a number from 0 to 2147483647, found ` 4`"),
        value(
            "timeout",
            "2147483648",
            "a number from 0 to 2147483647, found `2147483648`",
        ),
        value("timeout", "{a: 1}", "a number from 0 to 2147483647, found a map"),
        value("backlog", "-1", "a number from 0 to 2147483647, found `-1`"),
        value("backlog", "x", "a number from 0 to 2147483647, found `x`"),
        value(
            "client_connections",
            "-1",
            "a number from 0 to 2147483647, found `-1`",
        ),
        value(
            "client_connections",
            "many",
            "a number from 0 to 2147483647, found `many`",
        ),
        value(
            "redis",
            "yes",
            &format!("{flag} `yes`; yes, no, on, off, 1 and 0 mean nothing"),
        ),
        value("redis", "True", &format!("{flag} `True`")),
        value("redis", "1", &format!("{flag} `1`")),
        value("redis", "~", &format!("{flag} nothing")),
        value("redis_auth", "''", "a text, found ``"),
        value("redis_db", "-1", "a number from 0 to 2147483647, found `-1`"),
        value("redis_db", "x", "a number from 0 to 2147483647, found `x`"),
        value("preconnect", "no", &format!("{flag} `no`")),
        value("auto_eject_hosts", "on", &format!("{flag} `on`")),
        value(
            "server_connections",
            "0",
            "a number from 1 to 2147483647, found `0`",
        ),
        value(
            "server_connections",
            "-1",
            "a number from 1 to 2147483647, found `-1`",
        ),
        value(
            "server_retry_timeout",
            "-1",
            "a number from 0 to 2147483647, found `-1`",
        ),
        value(
            "server_failure_limit",
            "-1",
            "a number from 0 to 2147483647, found `-1`",
        ),
        value("flush_on_return", "yes", &format!("{flag} `yes`")),
        value("tcpkeepalive", "x", &format!("{flag} `x`")),
        value("reuseport", "x", &format!("{flag} `x`")),
    ];
    each_row(rows, |(text, expected)| drop(refused(text, expected)));
}

#[test]
fn addresses_that_twemproxy_refuses_are_refused_with_their_place() {
    let rows = [
        ("127.0.0.1:0", "an address whose port is a number from 1 to 65535"),
        (
            "127.0.0.1:65536",
            "an address whose port is a number from 1 to 65535",
        ),
        ("127.0.0.1:x", "an address whose port is a number"),
        ("127.0.0.1:+5", "an address whose port is a number"),
        ("127.0.0.1", "`host:port`, or the path of a socket"),
        (
            "relative.sock",
            "`host:port`, or the path of a socket, found `relative.sock`; the path",
        ),
        ("''", "a text"),
        (":22121", "an address of this host"),
        (
            "nope.invalid:22121",
            "an address of this host, found `nope.invalid:22121`; write an IP",
        ),
        ("/run/s 07777", "permissions in octal behind the path"),
        ("/run/s 0999", "permissions in octal behind the path"),
    ];
    each_row(rows, |(listen, said)| {
        let text = format!("a:\n  listen: {listen}\n  servers:\n    - 10.0.0.1:11211:1\n");
        refused(&text, &format!("F:2:11: a.listen: expected {said}"));
    });
    let rows = [
        ("10.0.0.1:1", "a server with a port and a weight"),
        ("10.0.0.1:1:0", "a server whose weight is a number from 1"),
        ("10.0.0.1:1:-1", "a server whose weight is a number from 1"),
        ("10.0.0.1:1:1.5", "a server whose weight is a number from 1"),
        ("10.0.0.1:1:x", "a server whose weight is a number from 1"),
        ("'10.0.0.1:1:'", "a server whose weight is a number from 1"),
        (
            "10.0.0.1:1:2147483648",
            "a server whose weight is a number from 1",
        ),
        ("10.0.0.1:1:1 a b", "a server whose weight is a number from 1"),
        ("10.0.0.1:0:1", "a server whose port is a number from 1 to 65535"),
        (
            "10.0.0.1:65536:1",
            "a server whose port is a number from 1 to 65535",
        ),
        ("10.0.0.1:x:1", "a server whose port is a number from 1 to 65535"),
        ("10.0.0.1::1", "a server whose port is a number from 1 to 65535"),
        ("/run/s:0", "a server whose weight is a number from 1"),
        ("/run/s", "a server with a weight"),
        ("/run/a:b:1", "the path of a socket without a colon, and a weight"),
        ("relative:1", "a server with a port and a weight"),
        ("a b:1:1", "a server with a weight"),
        ("{a: 1}", "a text, found a map"),
        ("''", "a text"),
        // It is a host that is called so.
        ("elasticache:1:0", "a server whose weight is a number from 1"),
    ];
    each_row(rows, |(entry, said)| {
        let refused = refused(&server(entry), &format!("F:4:7: a.servers[0]: expected {said}"));
        let remedy = "write `host:port:weight` or `/path:weight`";
        assert!(
            said.starts_with("a text") || refused.contains(remedy),
            "{refused}"
        );
    });
}

#[test]
fn files_that_twemproxy_refuses_are_refused_with_their_place() {
    let one = pool("");
    let table = [
        (String::new(), "F:1:1: the file is empty"),
        (
            "x\n".to_owned(),
            "F:1:1: expected pools, found `x`; begin each pool with its name",
        ),
        ("- a\n".to_owned(), "F:1:1: expected pools, found a list"),
        ("{}\n".to_owned(), "F:1:1: expected pools, found a map"),
        (
            "a:\n".to_owned(),
            "F:1:2: a: expected a pool, found nothing; write its keys below its name",
        ),
        ("a: [1]\n".to_owned(), "F:1:4: a: expected a pool, found a list"),
        (
            "a:\n  listen: 127.0.0.1:1\n".to_owned(),
            "F:2:3: a: `servers` is missing; list its servers",
        ),
        (
            "a:\n  servers:\n    - 10.0.0.1:1:1\n".to_owned(),
            "F:2:3: a: `listen` is missing; say where its clients connect",
        ),
        (
            "a:\n  listen: 127.0.0.1:1\n  servers: []\n".to_owned(),
            "F:3:12: a.servers: expected at least one server, found a list",
        ),
        (
            "a:\n  listen: 127.0.0.1:1\n  servers: 10.0.0.1:1:1\n".to_owned(),
            "F:3:12: a.servers: expected a list of servers, found `10.0.0.1:1:1`; write one in each line",
        ),
        (
            pool("  liste: x\n"),
            "F:3:3: a: unknown key `liste`; did you mean `listen`?",
        ),
        (
            pool("  LISTEN: x\n"),
            "F:3:3: a: unknown key `LISTEN`; did you mean `listen`?",
        ),
        (
            pool("  timeout: 1\n  timeout: 2\n"),
            "F:4:3: the key `timeout` stood in line 3 already; keep one",
        ),
        (
            format!("{one}{one}"),
            "F:5:1: the key `a` stood in line 1 already; keep one",
        ),
        (
            format!("{one}{}", one.replace("a:\n", "b:\n")),
            "F:6:11: b.listen: `127.0.0.1:22121` is taken by `127.0.0.1:22121` in line 2",
        ),
        (
            pool("  redis_auth: x\n"),
            "F:3:15: a.redis_auth: a password of a pool that is not Redis'; write `redis: true`",
        ),
        (
            pool("  redis: true\n  flush_on_return: true\n"),
            "F:4:20: a.flush_on_return: a Redis is never flushed; leave it out",
        ),
        (
            format!("{one}    - 10.0.0.1:11211:2\n"),
            "F:5:7: a.servers[1]: a server of line 4 is called `10.0.0.1`, too; give one of them",
        ),
        (
            server("elasticache:cluster"),
            "F:4:7: a.servers[0]: expected the address of an endpoint, found `elasticache:cluster`; write",
        ),
        (
            server("elasticache:unix:/run/m"),
            "F:4:7: a.servers[0]: expected the address of an endpoint, found",
        ),
        (
            format!("{one}    - elasticache:cluster:11211\n"),
            "F:5:7: a.servers[1]: an endpoint beside other servers; leave it alone in the list",
        ),
        (
            format!("{one}    - 10.0.0.2:1:2 10.0.0.1\n"),
            "F:5:7: a.servers[1]: a server of line 4 is called `10.0.0.1`, too",
        ),
        (
            "'':\n  listen: 127.0.0.1:1\n".to_owned(),
            "F:1:1: a pool without a name",
        ),
        (
            format!("---\n{one}---\n{one}"),
            "F:6:1: a second document begins here",
        ),
        ("a:\n\tlisten: 127.0.0.1:1\n".to_owned(), "F:2:2: not YAML: "),
        ("a: [1\n".to_owned(), "F:2:1: not YAML: "),
    ];
    each_row(table, |(text, expected)| drop(refused(text, expected)));
}

#[test]
fn all_mistakes_of_a_twemproxy_file_are_named_at_once() {
    let text = "a:\n  listen: x\n  hash: y\n  servers:\n    - z\nb:\n  timeout: -1\n";
    let refused = parse(text).unwrap_err().to_string();
    let places: Vec<&str> = refused
        .lines()
        .filter_map(|line| line.split(": ").next())
        .collect();
    assert_eq!(places, ["F:2:11", "F:3:9", "F:5:7", "F:7:12"], "{refused}");
}
