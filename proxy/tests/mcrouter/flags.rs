//! mcrouter's command line.

use std::{fs, path::Path, time::Duration};

use proxima::{
    config::{Loaded, routes::Keyed, schema::*},
    frontdoor::{
        ConfigSource as _,
        mcrouter::{Start, start},
    },
    reactor::Io,
};

use crate::{rows::each_row, run};

#[test]
fn mcrouter_options_become_settings() {
    let config = "--config={\"route\": \"NullRoute\"}";
    let listeners = |arguments: &[&str]| {
        let mcrouter = run(&[&[config], arguments].concat()).unwrap();
        mcrouter
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

    let mcrouter = run(&[
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
        "--tcp-rto-min=3",
        "--async-dir=/spool",
    ])
    .unwrap();
    assert_eq!(mcrouter.loaded.config.workers, None);
    assert_eq!(mcrouter.loaded.config.limits.clients, 50);
    assert_eq!(mcrouter.loaded.config.limits.requests_in_flight, usize::MAX);
    assert_eq!(
        mcrouter.loaded.config.limits.write_timeout,
        Duration::from_secs(1)
    );
    assert_eq!(
        mcrouter.loaded.config.listeners[0].reply_style,
        ReplyStyle::Mcrouter { flush: true }
    );
    assert_eq!(mcrouter.reload_after, None);
    assert_eq!(
        mcrouter.warnings,
        [
            "unknown option `--rss-limit-mb=100` is ignored",
            "unknown option `--rss-limit-mb` is ignored",
            "`100` is ignored",
            "option `--tcp-rto-min=3` has no effect here"
        ]
    );
    assert_eq!(mcrouter.loaded.config.spool.unwrap().dir, Path::new("/spool"));
    let Route::Named(root) = &mcrouter.loaded.config.listeners[0].route else {
        panic!()
    };
    let Route::Keyed(Keyed::ByOperation(_), operations, None) = &mcrouter.loaded.config.routes[root] else {
        panic!()
    };
    assert_eq!(
        operations.iter().map(|(word, _)| &**word).collect::<Vec<_>>(),
        ["gat", "gats", "read"]
    );
}

#[test]
fn command_line_options_override_those_of_a_flavor() {
    let flavor = std::env::temp_dir().join(format!("proxima-flavor-{}.json", std::process::id()));
    let options = r#"{"options": {"ports": "5", "server_timeout_ms": "250", "failures_until_tko": 9,
        "config": "{\"pools\": {\"A\": {\"servers\": [\"a:1\"]}}, \"route\": \"PoolRoute|A\"}", "no_such": "1"}}"#;
    fs::write(&flavor, options).unwrap();
    let mcrouter = run(&[&format!("file:{}", flavor.display()), "-t", "70"]).unwrap();
    fs::remove_file(&flavor).unwrap();
    assert!(mcrouter.loaded.config.listeners[0].address.ends_with(":5"));
    assert_eq!(
        mcrouter.loaded.config.pools["A"].timeout,
        Duration::from_millis(70)
    );
    assert_eq!(mcrouter.loaded.config.pools["A"].eject.failures, 9);
    assert_eq!(mcrouter.warnings.len(), 1, "{:?}", mcrouter.warnings);
}

#[test]
fn mcrouter_commands_print_and_exit_as_mcrouter_does() {
    let start = |arguments: &[&str]| start(arguments.iter().map(|argument| (*argument).to_owned()));
    let code = |arguments: &[&str]| start(arguments).unwrap_err().exit_code();
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
    assert_eq!(missing.exit_code(), 2);
    assert!(missing.to_string().contains("Can not read config"), "{missing}");
    let rows = [
        &["-p1"][..],
        &["-p", "70000", good],
        &["-p1", good, "--server-timeout=0"],
        &["-p1", good, "--server-timeout=x"],
        &["-p1", good, "--num-proxies=0"],
        &["-p1", good, "--ssl-port=5"],
        &["-p1", good, "--ssl-port=5", "--server-pem-cert-path=a"],
        &[
            "-p1",
            good,
            "--ssl-port=5",
            "--server-pem-cert-path=a",
            "--server-pem-key-path=b",
            "--ssl-require-peer-certs",
        ],
        &["-p1", good, "--use-thrift"],
        &["-p1", good, "--route-prefix=x"],
        &["-p1", good, "--unix-domain-sock=/x"],
        &["-p1", good, "--validate-config=maybe"],
        &["-p1", good, "--enable-flush-cmd=maybe"],
        &["-p1", good, "-t"],
    ];
    each_row(rows, |&bad| {
        assert_eq!(code(bad), 3, "{bad:?}");
    });
    // A refused option whose value asks for nothing does not refuse the start.
    assert!(matches!(
        start(&["-p1", good, "--use-thrift=0", "--ssl-port="]),
        Ok(Start::Run(_))
    ));
}

/// A file whose AllSyncRoute writes to a pool of these servers.
fn written_to(servers: &str) -> String {
    let route = r#"{"type": "OperationSelectorRoute", "operation_policies": {"set": "AllSyncRoute|Pool|A"}}"#;
    format!(r#"--config={{"pools": {{"A": {{"servers": [{servers}]}}}}, "route": {route}}}"#)
}

#[test]
fn added_mcrouter_options_set_admin_io_and_keep_writing() {
    let (two, three) = (
        written_to(r#""a:1", "b:1""#),
        written_to(r#""a:1", "b:1", "c:1""#),
    );
    let mcrouter = run(&["-p1", &three, "--admin=127.0.0.1:9150", "--io", "epoll"]).unwrap();
    assert_eq!(mcrouter.loaded.config.admin.as_deref(), Some("127.0.0.1:9150"));
    assert_eq!((mcrouter.io, mcrouter.warnings), (Io::Epoll, vec![]));
    assert_eq!(mcrouter.loaded.config.pools["A"].replicated, None);

    let mcrouter = run(&["-p1", &three, "--keep-writing", "--keep-writing-state=/state"]).unwrap();
    assert_eq!(mcrouter.loaded.config.state.as_deref(), Some(Path::new("/state")));
    assert_eq!(
        (mcrouter.io, mcrouter.warnings, mcrouter.loaded.warnings),
        (Io::Auto, vec![], vec![])
    );
    assert_eq!(
        mcrouter.loaded.config.pools["A"].replicated.unwrap().min_acks,
        None
    );

    let acks = |arguments: &[&str]| {
        let mcrouter = run(&[&["-p1"], arguments].concat()).unwrap();
        mcrouter.loaded.config.pools["A"]
            .replicated
            .map(|how| how.min_acks)
    };
    assert_eq!(acks(&[&three, "--keep-writing=2"]), Some(Some(2)));
    assert_eq!(acks(&[&two, "--keep-writing=1"]), Some(Some(1)));
    assert_eq!(acks(&[&two, "--keep-writing=true"]), Some(None));
    assert_eq!(acks(&[&two, "--keep-writing=false"]), None);

    let of_two = run(&["-p1", &two, "--keep-writing"]).unwrap().loaded.warnings;
    assert!(
        of_two.len() == 1 && of_two[0].contains("--keep-writing=1"),
        "{of_two:?}"
    );
    let idle = run(&["-p1", &two, "--keep-writing-state=/state"])
        .unwrap()
        .warnings;
    assert_eq!(
        idle,
        ["option `--keep-writing-state` has no effect without `--keep-writing`"]
    );

    let rows = [
        (2, "--keep-writing=3"),
        (3, "--keep-writing=0"),
        (3, "--keep-writing=-1"),
        (3, "--admin=9150"),
        (3, "--io=kqueue"),
    ];
    each_row(rows, |&(code, bad)| {
        assert_eq!(run(&["-p1", &two, bad]).unwrap_err().exit_code(), code, "{bad}");
    });
}

#[test]
fn keep_writing_warns_of_other_routes_that_change_a_pool() {
    let aside = |policies: &str| {
        let config = format!(
            r#"--config={{"pools": {{"A": {{"servers": ["a:1", "b:1", "c:1"]}}}}, "route": {{"type": "OperationSelectorRoute",
            "operation_policies": {{"set": "AllSyncRoute|Pool|A", {policies}}}}}}}"#
        );
        let loaded = run(&["-p1", "-p2", "--keep-writing", &config]).unwrap().loaded;
        let grace = loaded.config.pools["A"].replicated.unwrap().grace;
        (loaded.warnings, grace.is_zero())
    };
    for good in [
        r#""get": "FailoverRoute|Pool|A""#,
        r#""get": "AllFastestRoute|Pool|A", "delete": "PoolRoute|A""#,
    ] {
        assert_eq!(aside(good), (vec![], false), "{good}");
    }
    let rows = [
        (
            r#""delete": "AllMajorityRoute|Pool|A""#,
            "AllMajorityRoute as well (`delete`)",
        ),
        (
            r#""add": {"type": "FailoverRoute", "children": "Pool|A"}"#,
            "FailoverRoute as well (`add`)",
        ),
        (
            r#""incr": "LoggingRoute|HashRoute|Pool|A""#,
            "HashRoute as well (`incr`)",
        ),
    ];
    each_row(rows, |&(bad, said)| {
        // The warning comes once, though two ports lead there.
        let (warnings, is_new_when_back) = aside(bad);
        assert_eq!((warnings.len(), is_new_when_back), (1, true), "{warnings:?}");
        assert!(
            warnings[0].contains(&format!("pool `A` is changed by {said}")),
            "{warnings:?}"
        );
    });
}

#[test]
fn mcrouter_threads_are_counted_from_the_processors_or_given() {
    let processors = std::thread::available_parallelism().unwrap().get();
    let config = "--config={\"route\": \"NullRoute\"}";
    let rows: [(&[&str], Option<usize>); 7] = [
        (&[], Some(1)),
        (&["--num-proxies=3"], Some(3)),
        (&["--proxy-threads=4"], Some(4)),
        (&["--proxy-threads=auto"], None),
        (&["--core-multiplier=2"], Some(2 * processors)),
        (
            &["--core-multiplier=2", "--core-multiplier-threshold=4096"],
            Some(1),
        ),
        (&["--core-multiplier=0.0001"], Some(1)),
    ];
    each_row(rows, |&(arguments, expected)| {
        let mcrouter = run(&[&["-p1", config], arguments].concat()).unwrap();
        assert_eq!(mcrouter.loaded.config.workers, expected, "{arguments:?}");
    });
    each_row(["--core-multiplier=x", "--core-multiplier=inf"], |bad| {
        assert_eq!(run(&["-p1", config, bad]).unwrap_err().exit_code(), 3);
    });
}

#[test]
fn an_inherited_socket_takes_the_place_of_ports() {
    let config = "--config={\"route\": {\"type\": \"ErrorRoute\", \"response\": \"%router-name%\"}}";
    let listener = |arguments: &[&str]| {
        let mcrouter = run(&[&[config], arguments].concat()).unwrap();
        mcrouter.loaded.config.listeners[0].clone()
    };
    assert_eq!(listener(&["--listen-sock-fd=7"]).address, "fd:7");
    assert_eq!(listener(&["--listen-sock-fd", "7", "-p5"]).address, "fd:7");
    assert!(listener(&["--listen-sock-fd=-1", "-p5"]).address.ends_with(":5"));
    assert_eq!(listener(&["-p5", "--tcp-listen-backlog=9"]).socket.backlog, 9);
    let start = |arguments: &[&str]| start(arguments.iter().map(|argument| (*argument).to_owned()));
    let check = start(&[config, "--listen-sock-fd=900", "--validate-config"]);
    assert!(matches!(check, Ok(Start::Print(_))), "a check looks at no socket");
}

#[test]
fn options_of_a_flavor_may_be_named_by_their_opposites() {
    let flavor = std::env::temp_dir().join(format!("proxima-opposite-{}.json", std::process::id()));
    let route =
        r#"{\"route\": {\"type\": \"ErrorRoute\", \"response\": \"%mcr_opts-enable_failure_logging%\"}}"#;
    for (value, expected) in [("false", 1), ("true", 0)] {
        let options = format!(
            r#"{{"options": {{"enable_failure_logging": {value}, "ports": "1", "config": "{route}"}}}}"#
        );
        fs::write(&flavor, options).unwrap();
        let mcrouter = run(&[&format!("file:{}", flavor.display())]).unwrap();
        let of_logging = mcrouter
            .warnings
            .iter()
            .filter(|warning| warning.contains("disable-failure-logging"));
        assert_eq!(of_logging.count(), expected, "{:?}", mcrouter.warnings);
    }
    fs::remove_file(&flavor).unwrap();
}

#[test]
fn keepalive_options_are_those_of_every_server() {
    let config = r#"--config={"pools": {"A": {"servers": ["a:1"]}}, "route": "PoolRoute|A"}"#;
    let keepalive = |arguments: &[&str]| {
        let mcrouter = run(&[&["-p1", config], arguments].concat()).unwrap();
        mcrouter.loaded.config.pools["A"].keepalive
    };
    assert_eq!(
        keepalive(&["--keepalive-idle=5"]),
        None,
        "without a count there is none"
    );
    let expected = KeepAlive {
        idle: Some(Duration::from_secs(300)),
        interval: Some(Duration::from_secs(7)),
        probes: Some(3),
    };
    assert_eq!(keepalive(&["-K", "3", "-i7"]), Some(expected));
}

#[test]
fn the_last_good_configuration_is_kept_and_used_by_a_start_that_finds_a_bad_one() {
    let folder = tempfile::tempdir().unwrap();
    let (file, import, dump) = (
        folder.path().join("c.json"),
        folder.path().join("i.json"),
        folder.path().join("dump"),
    );
    let good = r#"{"pools": {"A": {"servers": "@import(i.json)"}}, "route": "PoolRoute|A"}"#;
    fs::write(&file, good).unwrap();
    fs::write(&import, r#"["a:1"]"#).unwrap();
    let config = format!("--config=file:{}", file.display());
    let root = format!("--config-dump-root={}", dump.display());
    let start = |more: &[&str]| run(&[&["-p", "12,13", &config, &root], more].concat());
    let server = |loaded: &Loaded| {
        loaded.config.pools["A"].source.fixed().unwrap()[0]
            .address
            .clone()
    };

    let mcrouter = start(&[]).unwrap();
    assert!(!dump.exists(), "a configuration is kept once it is served");
    mcrouter.load().unwrap();
    let kept: Vec<_> = fs::read_dir(dump.join("mcrouter/12")).unwrap().collect();
    assert_eq!(kept.len(), 2, "the file, and the one that it imports");

    fs::write(&import, "[").unwrap();
    assert!(mcrouter.load().is_err(), "while it runs, the running one stays");
    assert!(start(&["--validate-config=run"]).is_err());
    assert!(start(&["--max-dumped-config-age=0"]).is_err());
    assert!(start(&["--service-name=other"]).is_err());
    let second = start(&[]).unwrap();
    assert_eq!(server(&second.loaded), "a:1");
    assert!(
        second.loaded.warnings[0].contains("Import 'i.json'"),
        "{:?}",
        second.loaded.warnings
    );
    assert_eq!(second.loaded.files_watched, [file.clone(), import.clone()]);
    assert_eq!(server(&second.load().unwrap()), "a:1", "the start reads it again");
    assert!(second.load().is_err(), "from then on the running one stays");

    fs::remove_file(&file).unwrap();
    assert_eq!(server(&start(&[]).unwrap().loaded), "a:1");
    fs::write(&file, good).unwrap();
    fs::write(&import, r#"["a:2"]"#).unwrap();
    assert_eq!(server(&start(&[]).unwrap().loaded), "a:2");
}
