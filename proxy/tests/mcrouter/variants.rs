//! What may be written in several ways: each variant, and whether mcrouter reads it.
//!
//! The verdicts follow from mcrouter's documentation and from what its libraries take: getopt for options,
//! folly for truth values and numbers, and the form of a server's address.

use proxima::config::{
    routes::{ByRoutingPrefix, Keyed},
    schema::Route,
};

use crate::{rows::each_row, run};

/// Checks that each row is read, or refused, as its verdict says.
fn judge(rows: Vec<(String, Vec<String>, bool)>) {
    each_row(rows, |(what, arguments, reads)| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let read = run(&arguments);
        assert_eq!(
            read.is_ok(),
            *reads,
            "{what}: {:?}",
            read.err().map(|why| why.to_string())
        );
    });
}

fn given(options: &[&str], config: &str) -> Vec<String> {
    let always = ["--port=0".to_owned(), format!("--config={config}")];
    let options = options.iter().map(|option| (*option).to_owned());
    always.into_iter().chain(options).collect()
}

fn with_option(option: &str, reads: bool) -> (String, Vec<String>, bool) {
    (
        option.to_owned(),
        given(&[option], r#"{"route": "NullRoute"}"#),
        reads,
    )
}

fn with_config(config: &str, reads: bool) -> (String, Vec<String>, bool) {
    (config.to_owned(), given(&[], config), reads)
}

#[test]
fn switches_take_what_folly_takes_for_a_truth_value() {
    let words = [
        "1", "0", "01", "00", "true", "false", "True", "FALSE", "t", "F", "y", "n", "yes", "No", "on", "OFF",
        " true ",
    ];
    let good = words.map(|word| with_option(&format!("--enable-flush-cmd={word}"), true));
    let bad = ["2", "10", "tru", "ye", "of", "", "-1", "1 1"];
    let bad = bad.map(|word| with_option(&format!("--enable-flush-cmd={word}"), false));
    judge(good.into_iter().chain(bad).collect());
    let is_on = |word: &str| {
        let option = format!("--send-invalid-route-to-default={word}");
        let read = run(&["--port=0", r#"--config={"route": "NullRoute"}"#, &option]).unwrap();
        matches!(
            read.loaded.config.routes["root line 1"],
            Route::Keyed(
                Keyed::ByRoutingPrefix(ByRoutingPrefix {
                    takes_unknown: true,
                    ..
                }),
                ..
            )
        )
    };
    each_row(
        [
            ("On", true),
            ("y", true),
            ("01", true),
            ("NO", false),
            ("f", false),
            ("0", false),
        ],
        |(word, on)| {
            assert_eq!(is_on(word), *on, "{word}");
        },
    );
}

#[test]
fn long_options_may_be_cut_short_as_getopt_allows() {
    let value = |option: &str| {
        let read = run(&[
            "--port=0",
            r#"--config={"route": "PoolRoute|A", "pools": {"A": {"servers": ["a:1"]}}}"#,
            option,
        ]);
        let config = read.unwrap().loaded.config;
        config.pools["A"].timeout.as_millis()
    };
    each_row(
        [
            ("--server-timeout=7", 7),
            ("--server-time=7", 7),
            ("--server-ti=7", 7),
            ("--server_ti=7", 7),
            // These are the beginnings of several names.
            ("--server-=7", 1000),
            ("--s=7", 1000),
            ("--=7", 1000),
        ],
        |(option, milliseconds)| assert_eq!(value(option), *milliseconds, "{option}"),
    );
    let exit = run(&["--port=0", "--config-str={", "--valid"]).unwrap_err();
    assert_eq!(exit.exit_code(), 3, "{exit}");
    // An option of Proxima's own (`--fleet`, `--io`) makes none of mcrouter's ambiguous.
    judge(vec![
        with_option("--keepalive-id=5", true),
        with_option("--enable-fl=x", false),
    ]);
}

#[test]
fn outer_slashes_of_routing_prefixes_may_be_missing() {
    let route = |alias: &str| format!(r#"{{"routes": [{{"aliases": ["{alias}"], "route": "NullRoute"}}]}}"#);
    let mut rows = Vec::new();
    for form in ["east/web", "/east/web", "east/web/", "/east/web/"] {
        for alias in ["east/web", "/east/web/"] {
            rows.push((
                format!("{form} beside {alias}"),
                given(&[&format!("--route-prefix={form}")], &route(alias)),
                true,
            ));
        }
        let object = format!(r#"{{"routes": {{"{form}": "NullRoute"}}}}"#);
        rows.push((object.clone(), given(&["-R", "/east/web/"], &object), true));
        let key = r#"{"type": "ModifyKeyRoute", "target": "NullRoute", "set_routing_prefix": "#;
        rows.push(with_config(&format!(r#"{{"route": {key}"{form}"}}}}"#), true));
    }
    for bad in ["east", "/east/", "", "/", "east/web/x", "//east/web/"] {
        rows.push(with_option(&format!("--route-prefix={bad}"), false));
        rows.push(with_config(&route(bad), false));
    }
    judge(rows);
}

#[test]
fn servers_are_read_in_every_form_of_an_access_point() {
    let good = [
        "a:1",
        "a:1:",
        "a:1:ascii",
        "a:1::plain",
        "a:1:ascii:plain:compressed",
        "a:1:ascii:plain:notcompressed",
        "[localhost]:1",
        "[10.0.0.1]:1:ascii",
        "[::1]:1",
        "[::1]:1:ascii:plain",
        "unix:/a",
        "unix:/a:ascii:plain",
        "a:007",
    ];
    let bad = [
        "",
        "a",
        "a:",
        "a:x",
        "a::1",
        "a:1:ASCII",
        "a:1:caret",
        "a:1:ascii:tls",
        "a:1:ascii:x",
        "[::1",
        "[::1]",
        "[::1]1",
        ":1",
        "a:65536",
        "a:1:ascii:plain:notcompressed:x",
        "::1:1",
    ];
    let of = |server: &str, reads| {
        with_config(
            &format!(r#"{{"pools": {{"A": {{"servers": ["{server}"]}}}}, "route": "PoolRoute|A"}}"#),
            reads,
        )
    };
    let good = good.iter().map(|server| of(server, true));
    judge(good.chain(bad.iter().map(|server| of(server, false))).collect());
}

#[test]
fn keys_of_a_pool_are_read_as_mcrouter_reads_them() {
    let of = |keys: &str, reads| {
        with_config(
            &format!(r#"{{"pools": {{"A": {{"servers": ["a:1", "a:2"]{keys}}}}}, "route": "PoolRoute|A"}}"#),
            reads,
        )
    };
    judge(vec![
        of(r#", "protocol": "ascii""#, true),
        of(r#", "protocol": "ASCII""#, true),
        of(r#", "protocol": "Ascii""#, true),
        of(r#", "protocol": "caret""#, false),
        of(r#", "security_mech": "plain""#, true),
        of(r#", "security_mech": "tls""#, false),
        of(r#", "security_mech": "ssl""#, true),
        of(r#", "use_ssl": true"#, true),
        of(r#", "failure_domains": [1, 2]"#, true),
        of(r#", "failure_domains": ["rack one", "rack two"]"#, true),
        of(r#", "failure_domains": [1]"#, false),
        of(r#", "server_timeout": 5"#, true),
        of(r#", "server_timeout": "5ms""#, false),
        of(r#", "server_timeout": 1000000"#, true),
        of(r#", "server_timeout": 1000001"#, false),
        of(r#", "connect_timeout": 0"#, false),
        of(r#", "port_override": 5"#, true),
        of(r#", "port_override": 65536"#, false),
        of(r#", "an_unknown_key": []"#, true),
    ]);
}

#[test]
fn pools_that_no_route_uses_may_hold_anything() {
    let pools = [
        r#"{"servers": ["10.0.0.1:11214:ascii:tls"]}"#,
        r#"{"servers": ["10.0.0.1:11214"], "protocol": "caret"}"#,
        r#"{"servers": ["SERVERS_HERE"]}"#,
        r#"{"servers": ["a:1"], "tko_tracker": {"num_tko_threshold_upper": 2}}"#,
        r#"{"servers": ["a:1"], "weights": [1, 1]}"#,
        r#"{"servers": ["a:1", "a:1"]}"#,
        r#"{"inherit": "nobody"}"#,
        r#""file:/no/such/file""#,
        "{}",
        "5",
    ];
    each_row(pools, |pool| {
        let config =
            format!(r#"{{"pools": {{"A": {{"servers": ["a:1"]}}, "B": {pool}}}, "route": "PoolRoute|A"}}"#);
        for strict in ["--verbosity=1", "--validate-config=run"] {
            let read = run(&["--port=0", strict, &format!("--config={config}")]).expect(pool);
            let of_b = |warning: &&String| warning.contains("no route uses this pool");
            let warned = read.loaded.warnings.iter().filter(of_b).count();
            let is_readable = read.loaded.config.pools.contains_key("B");
            assert_eq!((warned == 1), !is_readable, "{pool}: {:?}", read.loaded.warnings);
        }
    });
}

#[test]
fn numbers_of_handles_have_64_bits() {
    let of = |keys: &str, reads| with_config(&format!(r#"{{"route": {{"type": {keys}}}}}"#), reads);
    judge(vec![
        of(
            r#""MigrateRoute", "from": "NullRoute", "to": "NullRoute", "start_time": 4102444800"#,
            true,
        ),
        of(
            r#""MigrateRoute", "from": "NullRoute", "to": "NullRoute", "start_time": -1"#,
            false,
        ),
        of(
            r#""OutstandingLimitRoute", "target": "NullRoute", "max_outstanding": 9223372036854775807"#,
            true,
        ),
        of(
            r#""OutstandingLimitRoute", "target": "NullRoute", "max_outstanding": 9223372036854775808"#,
            false,
        ),
        of(
            r#""BigValueRoute", "target": "NullRoute", "split_threshold": 4294967296"#,
            true,
        ),
        of(
            r#""ModifyExptimeRoute", "target": "NullRoute", "exptime": 1.5"#,
            false,
        ),
    ]);
}

#[test]
fn handles_that_no_route_uses_may_hold_anything() {
    let handles = [
        r#""NoSuchRoute""#,
        r#""PoolRoute|nobody""#,
        r#"{"name": "H", "type": "MigrateRoute"}"#,
        r#""LoggingRoute|H""#,
    ];
    each_row(handles, |handle| {
        let config =
            |route: &str| format!(r#"--config={{"named_handles": {{"H": {handle}}}, "route": "{route}"}}"#);
        let read = run(&["--port=0", "--validate-config=run", &config("NullRoute")]).expect(handle);
        let warnings = &read.loaded.warnings;
        assert!(
            matches!(&warnings[..], [only] if only.contains("no route uses this handle")),
            "{handle}: {warnings:?}"
        );
        assert!(run(&["--port=0", &config("H")]).is_err(), "{handle}");
    });
}

#[test]
fn pools_may_be_written_where_they_are_used() {
    let inline = r#"{"type": "Pool", "name": "I", "servers": ["i:1", "i:2"]}"#;
    let routes = [
        format!(r#"{{"type": "AllSyncRoute", "children": {inline}}}"#),
        format!(r#"{{"type": "HashRoute", "children": [{inline}]}}"#),
        format!(r#"{{"type": "FailoverRoute", "children": ["PoolRoute|A", {inline}, "ErrorRoute"]}}"#),
        r#"{"type": "PoolRoute", "pool": {"name": "I", "servers": ["i:1", "i:2"]}}"#.to_owned(),
        r#"{"type": "PoolRoute", "pool": {"name": "I", "inherit": "P", "servers": ["i:1", "i:2"]}}"#
            .to_owned(),
        format!(r#"{{"type": "AllSyncRoute", "children": [{inline}, "PoolRoute|I", "Pool|I"]}}"#),
    ];
    each_row(routes, |route| {
        let pools = r#"{"A": {"servers": ["a:1"]}, "P": {"servers": ["p:1"], "server_timeout": 5}}"#;
        let config = format!(r#"{{"pools": {pools}, "route": {route}}}"#);
        let read = run(&["--port=0", &format!("--config={config}")]).expect(route);
        let pool = &read.loaded.config.pools["I"];
        let servers = pool
            .source
            .fixed()
            .unwrap()
            .iter()
            .map(|server| server.address.as_str());
        assert_eq!(servers.collect::<Vec<_>>(), ["i:1", "i:2"], "{route}");
        assert_eq!(
            pool.timeout.as_millis() == 5,
            route.contains("inherit"),
            "{route}"
        );
        let unknown = |warning: &&String| warning.contains("is no key of this object");
        assert_eq!(read.loaded.warnings.iter().find(unknown), None, "{route}");
    });
}
