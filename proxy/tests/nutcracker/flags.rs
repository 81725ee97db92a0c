//! The command line.

use std::{fs, time::Duration};

use proxima::{
    config::schema::{Access, HealthCheck, HealthListener, Leaf, Network, ReplyStyle, Route, Verify},
    frontdoor::nutcracker::{Run, Start, StartError, start},
};

use crate::{pool, rows::each_row};

fn said(arguments: &[&str]) -> Result<Start, StartError> {
    start(arguments.iter().map(|argument| (*argument).to_owned()))
}

fn printed(arguments: &[&str]) -> String {
    match said(arguments).unwrap() {
        Start::Print(text) => text,
        Start::Run(_) => panic!("it runs"),
    }
}

fn run(arguments: &[&str]) -> Run {
    match said(arguments).unwrap() {
        Start::Run(run) => *run,
        Start::Print(text) => panic!("printed {text:?}"),
    }
}

#[test]
fn nutcracker_says_its_version_help_and_statistics() {
    let version = "This is nutcracker-0.5.0\nasync event backend: epoll\n\n";
    for arguments in [
        &["-V"][..],
        &["--version"],
        &["-dV"],
        &["-t", "-V"],
        &["-V", "--", "-x"],
        &["x", "-V"],
    ] {
        assert_eq!(printed(arguments), version, "{arguments:?}");
    }
    for arguments in [&["-h"][..], &["--help"], &["-V", "-h"]] {
        let help = printed(arguments);
        assert!(
            help.starts_with(&format!("{version}Usage: nutcracker [-?hVdDt]")),
            "{help}"
        );
        assert!(help.contains("\n  -s, --stats-port=N     : set stats monitoring port (default: 22222)\n"));
    }
    for arguments in [&["-D"][..], &["--describe-stats"], &["--desc"]] {
        let stats = printed(arguments);
        assert!(
            stats.starts_with(&format!(
                "{version}pool stats:\n  client_eof          \"# eof on client"
            )),
            "{stats}"
        );
    }
}

#[test]
fn options_that_nutcracker_refuses_are_refused_with_its_words() {
    let rows = [
        (&["-x"][..], "invalid option -- 'x'"),
        (&["-?"], "invalid option -- '?'"),
        (&["-tx"], "invalid option -- 'x'"),
        (&["--foo"], "invalid option -- '\0'"),
        (&["--stats=1"], "invalid option -- '\0'"),
        (&["--test-conf=1"], "invalid option -- 't'"),
        (&["-s"], "option -s requires a number"),
        (&["--stats-port"], "option -s requires a number"),
        (&["-sabc"], "option -s requires a number"),
        (&["-s", "99999"], "option -s value 99999 is not a valid port"),
        (&["-s", "0"], "option -s value 0 is not a valid port"),
        (
            &["-s", "99999999999999999999"],
            "option -s value 1661992959 is not a valid port",
        ),
        (&["-i", "-5"], "option -i requires a number"),
        (&["-v", "-1"], "option -v requires a number"),
        (&["--verbose=x"], "option -v requires a number"),
        (&["-m"], "option -m requires a number"),
        (&["-m", "0"], "option -m requires a non-zero number"),
        (&["-m", "abc"], "option -m requires a non-zero number"),
        (
            &["-m", "511"],
            "mbuf chunk size must be between 512 and 16777216 bytes",
        ),
        (
            &["-m", "16777217"],
            "mbuf chunk size must be between 512 and 16777216 bytes",
        ),
        (&["-p"], "option -p requires a file name"),
        (&["-c"], "option -c requires a file name"),
        (&["-o"], "option -o requires a file name"),
        (&["-a"], "option -a requires a string"),
        (&["--admin"], "option --admin requires a string"),
        (
            &["--admin=x"],
            "option --admin requires an address to listen on (host:port), and `x` is none",
        ),
        (
            &["--health=x"],
            "option --health requires an address to listen on (host:port, or POOL=host:port), and `x` is none",
        ),
        (
            &["--health=a=/run/health"],
            "option --health requires an address to listen on (host:port, or POOL=host:port), and \
             `a=/run/health` is none",
        ),
        (
            &["--health-min=0"],
            "option --health-min requires a number of servers from 1 (N, or POOL=N), and `0` is none",
        ),
        (
            &["--health-min=a="],
            "option --health-min requires a number of servers from 1 (N, or POOL=N), and `a=` is none",
        ),
        (
            &["--health-min=2"],
            "option --health-min says nothing without --health",
        ),
        (
            &["--health-allow=10.0.0.0/33"],
            "option --health-allow requires an IP address, or a network as 10.0.0.0/16, and \
             `10.0.0.0/33` is none",
        ),
        (
            &["--health-allow", "10.0.0.1"],
            "option --health-allow says nothing without --health",
        ),
        (
            &["--drain-delay=5"],
            "option --drain-delay requires a time with its unit (5s, 250ms), and `5` is none",
        ),
        (&["--drain-file"], "option --drain-file requires a file name"),
        (&["--drain-file="], "option --drain-file requires a file name"),
        (&["--drain-file", ""], "option --drain-file requires a file name"),
        (
            &["--also-listen=127.0.0.1:1"],
            "option --also-listen requires a pool and an address (POOL=host:port, or POOL=/path), and \
             `127.0.0.1:1` is none",
        ),
        (
            &["--also-listen=a=127.0.0.1:0"],
            "option --also-listen requires a pool and an address (POOL=host:port, or POOL=/path), and \
             `a=127.0.0.1:0` is none",
        ),
        (&["--io=x"], "option --io: `x` is none of auto, io_uring, epoll"),
        (
            &["--workers=0"],
            "option --workers requires a number from 1 to 1024",
        ),
        (&["--workers=x"], "option --workers requires a number"),
    ];
    each_row(rows, |(arguments, expected)| {
        let refused = said(arguments).unwrap_err().to_string();
        let expected = format!("nutcracker: {expected}\nUsage: nutcracker [");
        assert!(refused.starts_with(&expected), "{arguments:?}: {refused}");
    });
}

#[test]
fn a_file_is_tested_with_the_words_that_scripts_look_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nutcracker.yml");
    let file = path.display().to_string();
    let missing = said(&["-t", "-c", &file]).unwrap_err().to_string();
    let invalid = format!("nutcracker: configuration file '{file}' syntax is invalid\n");
    assert_eq!(missing.matches(&invalid).count(), 1, "{missing}");
    fs::write(&path, pool("  hash: x\n")).unwrap();
    let bad = said(&["-tc", &file]).unwrap_err().to_string();
    assert_eq!(bad.matches(&invalid).count(), 2, "{bad}");
    assert!(
        bad.starts_with(&format!("{file}:3:9: a.hash: expected a hash")),
        "{bad}"
    );
    let bad = said(&["-c", &file]).unwrap_err().to_string();
    assert_eq!(bad.matches(&invalid).count(), 1, "{bad}");
    fs::write(&path, pool("")).unwrap();
    let good = format!("nutcracker: configuration file '{file}' syntax is ok\n");
    assert_eq!(printed(&["--test-conf", &format!("--conf-file={file}")]), good);
    let warned = printed(&["-t", "-c", &file, "--health=127.0.0.1:9160"]);
    let warning = format!(
        "{file}:1:1: a: without `auto_eject_hosts: true` none of its servers is down for `--health` (warning)\n"
    );
    assert_eq!(warned, good + &warning);
}

#[test]
fn options_of_nutcracker_and_ours_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nutcracker.yml");
    fs::write(&path, pool("")).unwrap();
    let file = path.display().to_string();
    let plain = run(&["-c", &file]);
    assert_eq!((plain.verbosity, plain.log_file), (5, None));
    let config = plain.loaded.config;
    assert_eq!((config.admin, config.workers), (None, None));
    let all = [
        "-v",
        "11",
        "-o",
        "/tmp/log",
        "-c",
        &file,
        "-s",
        "22223",
        "-a",
        "127.0.0.1",
        "-i",
        "1",
        "-m",
        "512",
    ];
    let ours = ["--admin=127.0.0.1:9150", "--workers", "4", "--io=epoll"];
    let run = run(&[&all[..], &ours].concat());
    assert_eq!((run.verbosity, run.log_file), (11, Some("/tmp/log".into())));
    let config = run.loaded.config;
    assert_eq!(
        (config.admin.as_deref(), config.workers),
        (Some("127.0.0.1:9150"), Some(4))
    );
    assert_eq!(run.loaded.files_watched, [path]);
}

/// The file of one pool `a`, in its folder.
fn file_of(keys: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nutcracker.yml");
    fs::write(&path, pool(keys)).unwrap();
    let file = path.display().to_string();
    (folder, file)
}

#[test]
fn options_of_ours_give_tls_to_listeners_and_pools_and_one_pool_may_differ() {
    let (_folder, file) = file_of("");
    let config = |options: &[&str]| run(&[&["-c", &file], options].concat()).loaded.config;
    let given = config(&[
        "--tls-certificate=l.crt",
        "--tls-key=l.key",
        "--server-tls-ca=system",
        "--server-tls-verify=none",
        "--server-tls-verify=a=authority",
        "--also-listen=a=127.0.0.1:1",
    ]);
    let certificates = given.listeners.iter().map(|listener| {
        let tls = listener.tls.as_ref().unwrap();
        tls.identity.certificate.to_str().unwrap()
    });
    assert_eq!(certificates.collect::<Vec<_>>(), ["l.crt", "l.crt"]);
    let tls = given.pools["a"].tls.as_ref().unwrap();
    assert_eq!((tls.verify, tls.ca.as_ref()), (Verify::Authority, None));
    let plain = config(&[]);
    assert!(plain.pools["a"].tls.is_none() && plain.listeners[0].tls.is_none());
    for bad in [
        &["--tls-certificate=l.crt"][..],
        &["--server-tls-key=a=l.key"],
        &["--server-tls-ca=nobody=x.crt"],
        &["--server-tls-verify=some"],
        &["--tls-key="],
    ] {
        assert!(said(&[&["-c", &file], bad].concat()).is_err(), "{bad:?}");
    }
}

#[test]
fn health_and_drain_are_told_on_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nutcracker.yml");
    let other = pool("").replace("a:\n", "b=c:\n").replace("22121", "22122");
    let two = pool("  auto_eject_hosts: true\n") + "    - 10.0.0.2:11211:1\n";
    fs::write(&path, two + &other).unwrap();
    let file = path.display().to_string();
    let loaded = run(&[
        "-c",
        &file,
        "--health=127.0.0.1:9160",
        "--health=b=c=[::1]:9161",
        "--health-min=b=c=1",
        "--health-min=2",
        "--health-allow=127.0.0.1",
        "--health-allow=10.0.0.0/16",
        "--drain-file=/tmp/out",
        "--drain-delay=5s",
    ])
    .loaded;
    let listener = |address: &str, pools: &[(&str, u32)]| HealthListener {
        address: address.to_owned(),
        check: HealthCheck::Http,
        pools: pools
            .iter()
            .map(|(name, least)| ((*name).to_owned(), *least))
            .collect(),
        allow: ["127.0.0.1", "10.0.0.0/16"]
            .map(|text| Network::parse(text).unwrap())
            .into(),
    };
    let config = loaded.config;
    assert_eq!(
        config.health,
        [
            listener("127.0.0.1:9160", &[("a", 2), ("b=c", 1)]),
            listener("[::1]:9161", &[("b=c", 1)]),
        ]
    );
    assert_eq!(config.drain.file.as_deref(), Some("/tmp/out".as_ref()));
    assert_eq!(config.drain.delay, Duration::from_secs(5));
    let warning = format!(
        "{file}:7:1: b=c: without `auto_eject_hosts: true` none of its servers is down for `--health`"
    );
    assert_eq!(loaded.warnings, [warning]);
}

#[test]
fn further_listener_of_a_pool_is_in_proximas_own_manner_with_the_pools_password() {
    let (_folder, file) = file_of("  redis: true\n  redis_auth: secret\n  backlog: 77\n");
    let also = [
        "--also-listen=a=0.0.0.0:7",
        "--also-listen",
        "a=/run/a=/b=c.sock 0600",
    ];
    let config = run(&[&["-c", &file][..], &also].concat()).loaded.config;
    let [first, second, third] = &config.listeners[..] else {
        panic!("{:?}", config.listeners)
    };
    assert_eq!(first.reply_style, ReplyStyle::Twemproxy { all_commands: false });
    assert_eq!(
        (&*second.address, &*third.address),
        ("0.0.0.0:7", "unix:/run/a=/b=c.sock")
    );
    for further in [second, third] {
        assert_eq!(
            (further.reply_style, &further.route),
            (ReplyStyle::Own, &Route::Leaf(Leaf::Pool("a".to_owned())))
        );
        assert!(matches!(further.access, Access::Password(_)) && further.access == first.access);
        assert_eq!((further.protocol, further.socket), (first.protocol, first.socket));
    }
    assert_eq!(
        (second.permissions.mode, third.permissions.mode),
        (None, Some(0o600))
    );
}

#[test]
fn options_that_do_not_go_with_the_file_are_refused_with_it() {
    let (_folder, file) = file_of("");
    let rows = [
        (
            "--health=b=127.0.0.1:1",
            "--health: there is no pool `b`; did you mean `a`?",
        ),
        (
            "--health-min=b=1",
            "--health-min: there is no pool `b`; did you mean `a`?",
        ),
        (
            "--also-listen=b=127.0.0.1:1",
            "--also-listen: there is no pool `b`; did you mean `a`?",
        ),
        (
            "--also-listen=a=127.0.0.1:22121",
            "--also-listen: `127.0.0.1:22121` is taken by `127.0.0.1:22121` in line 2; choose another port",
        ),
        (
            "--health=0.0.0.0:22121",
            "--health: `0.0.0.0:22121` is taken by `127.0.0.1:22121` in line 2",
        ),
        (
            "--admin=0.0.0.0:9160",
            "--health: `127.0.0.1:9160` is taken by `0.0.0.0:9160` in line 1",
        ),
        (
            "--admin=127.0.0.1:22222",
            "--stats-port: `0.0.0.0:22222` is taken by `127.0.0.1:22222` in line 1; choose another port",
        ),
        (
            "--health=127.0.0.1:22222",
            "--stats-port: `0.0.0.0:22222` is taken by `127.0.0.1:22222` in line 1",
        ),
        (
            "--also-listen=a=127.0.0.1:22222",
            "--stats-port: `0.0.0.0:22222` is taken by `127.0.0.1:22222` in line 1",
        ),
        (
            "-s22121",
            "--stats-port: `0.0.0.0:22121` is taken by `127.0.0.1:22121` in line 2",
        ),
        (
            "--health-min=2",
            "--health-min: pool `a` has 1 server, so that 2 are never up; give it a number of its own: \
             `--health-min=a=N`",
        ),
        (
            "--health-min=a=3",
            "--health-min: pool `a` has 1 server, so that 3 are never up; lower the number, or list more \
             servers",
        ),
    ];
    each_row(rows, |(option, expected)| {
        let refused = said(&["-c", &file, "--health=127.0.0.1:9160", option])
            .unwrap_err()
            .to_string();
        assert!(
            refused.starts_with(&format!("{file}:1:1: {expected}")),
            "{option}: {refused}"
        );
    });
}

#[test]
fn least_number_of_servers_is_not_checked_for_pools_whose_health_nobody_asks_for_or_whose_servers_come_and_go()
 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nutcracker.yml");
    let file = path.display().to_string();
    let two = pool("  auto_eject_hosts: true\n") + "    - 10.0.0.2:11211:1\n";
    let one = pool("").replace("a:\n", "b:\n").replace("22121", "22122");
    let found = "c:\n  listen: 127.0.0.1:1\n  servers:\n    - elasticache:c.example.com:11211\n";
    fs::write(&path, two + &one + found).unwrap();
    let least = ["-c", &file, "--health-min=2"];
    run(&[
        &least[..],
        &["--health=a=127.0.0.1:9160", "--health=c=127.0.0.1:9161"],
    ]
    .concat());
    run(&[&least[..], &["--health=127.0.0.1:9160", "--health-min=b=1"]].concat());
    let refused = said(&[&least[..], &["--health=127.0.0.1:9160"]].concat()).unwrap_err();
    let place = format!("{file}:7:1: --health-min: pool `b` has 1 server, so that 2 are never up; ");
    assert!(refused.to_string().starts_with(&place), "{refused}");
}
