//! The command line, without a data plane.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use proxima::{
    cli::{Answer, LogFormat, LogLevel, Run, Task, task},
    config,
    reactor::Io,
};
use proxima_wire::memcache::Command;

#[path = "../../wire/tests/memcache/rows.rs"]
mod rows;

use rows::each_row;

fn asked(arguments: &[&str]) -> Task {
    task(arguments.iter().map(OsString::from))
}

fn said(arguments: &[&str]) -> Answer {
    match asked(arguments) {
        Task::Say(answer) => answer,
        other => panic!("{arguments:?}: {other:?}"),
    }
}

fn run(arguments: &[&str]) -> Run {
    match asked(&[&["proxima", "run"], arguments].concat()) {
        Task::Run(run) => run,
        other => panic!("{arguments:?}: {other:?}"),
    }
}

#[test]
fn orders_for_servers_of_mysql_say_what_they_need() {
    let cases: [(&[&str], &str); 9] = [
        (&["writer", "db"], "<MEMBER>"),
        (&["writer", "db", "a", "--end"], "cannot be used with"),
        (
            &["writer", "db", "a", "--within", "0s"],
            "expected a time above 0, such as 5s",
        ),
        (&["drain", "db"], "<MEMBER>"),
        (
            &["drain", "db", "a", "--within", "soon"],
            "expected a time above 0, such as 5s",
        ),
        (
            &["show", "db", "--wait", "away=a"],
            "expected online=MEMBER, writer=MEMBER or drained=MEMBER",
        ),
        (&["show", "--wait", "online=a"], "<POOL>"),
        (&["show", "db", "--for", "5s"], "--wait"),
        (
            &["show", "db", "--admin", "127.0.0.1:1"],
            "nobody answers at the admin port 127.0.0.1:1",
        ),
    ];
    for (words, expected) in cases {
        let answer = said(&[&["proxima", "mysql"], words].concat());
        assert_eq!(answer.code, 1, "{words:?}: {answer:?}");
        assert!(answer.err.contains(expected), "{words:?}: {}", answer.err);
    }
    let help = said(&["proxima", "mysql", "show", "--help"]).out;
    assert!(
        help.contains("proxima mysql show db --wait online=pxc-2"),
        "{help}"
    );
}

#[test]
fn commands_that_look_at_a_running_proxy_say_what_they_need() {
    let nobody = "nobody answers at the admin port 127.0.0.1:1";
    let cases: [(&[&str], &str); 8] = [
        (&["top", "--once", "--admin", "127.0.0.1:1"], nobody),
        (&["top", "--json", "--admin", "127.0.0.1:1"], nobody),
        (&["events", "-f", "--admin", "127.0.0.1:1"], nobody),
        (&["tap", "--admin", "127.0.0.1:1"], nobody),
        (&["events", "--after", "x"], "invalid digit"),
        (&["tap", "--class", "reads"], "read, write"),
        (&["tap", "--slow", "soon"], "expected a time above 0, such as 5s"),
        (&["tap", "--limit", "0"], "0 is not in 1.."),
    ];
    for (words, expected) in cases {
        let answer = said(&[&["proxima"], words].concat());
        assert_eq!(answer.code, 1, "{words:?}: {answer:?}");
        assert!(answer.err.contains(expected), "{words:?}: {}", answer.err);
    }
    for (command, example) in [
        ("top", "proxima top --once"),
        ("events", "proxima events -f"),
        ("tap", "proxima tap --slow 10ms"),
    ] {
        let help = said(&["proxima", command, "--help"]).out;
        assert!(help.contains(example), "{help}");
    }
}

#[test]
fn run_options_replace_parts_of_the_configuration() {
    let plain = run(&[]);
    assert_eq!(
        (plain.config.clone(), plain.io, plain.workers),
        (None, Io::Auto, None)
    );
    assert_eq!(
        (plain.log_format, plain.log_level),
        (LogFormat::Text, LogLevel::Info)
    );

    let full = run(&[
        "--config=p.yaml",
        "--io=epoll",
        "--workers=4",
        "--listen=0.0.0.0:5",
        "--admin=[::1]:6",
        "--node-address=10.0.0.3,::1",
        "--zone=eu-1a",
        "--log-format=json",
        "--log-level=debug",
    ]);
    assert_eq!(full.config, Some(PathBuf::from("p.yaml")));
    assert_eq!(full.here.node_addresses().len(), 2);
    assert_eq!(full.here.zone.as_deref(), Some("eu-1a"));

    let text = "listeners: [{address: 127.0.0.1:1, route: embedded}]\nworkers: 2\n";
    let file = Path::new("F");
    let mut loaded = config::parse(text, file).unwrap();
    loaded = plain.overrides().applied(loaded, file).unwrap();
    assert_eq!(loaded.config.workers, Some(2));
    loaded = full.overrides().applied(loaded, file).unwrap();
    assert_eq!(loaded.config.workers, Some(4));
    assert_eq!(loaded.config.listeners[0].address, "0.0.0.0:5");
    assert_eq!(loaded.config.admin.as_deref(), Some("[::1]:6"));
    loaded.config.listeners.push(loaded.config.listeners[0].clone());
    let refused = full.overrides().applied(loaded, file).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "F: --listen stands for one listener, the configuration has 2"
    );
}

#[test]
fn bad_options_are_refused_with_the_remedy() {
    let table = [
        (
            &["proxima", "run", "--io=kqueue"][..],
            "none of auto, io_uring, epoll",
        ),
        (&["proxima", "run", "--workers=0"], "0 is not in 1..=1024"),
        (
            &["proxima", "run", "--listen=11211"],
            "write `host:port`, `[v6]:port` or `unix:/path`",
        ),
        (&["proxima", "run", "--confg=x"], "--config"),
        (
            &["proxima", "explain", "k", "--command=gte"],
            "`gte` is no command of memcached",
        ),
        (&["proxima", "rum"], "run"),
        (&["proxima", "man", "rum"], "there is no such command"),
    ];
    each_row(table, |&(arguments, expected)| {
        let answer = said(arguments);
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{arguments:?}");
        assert!(answer.err.contains(expected), "{arguments:?}: {}", answer.err);
    });
}

#[test]
fn explain_takes_a_key_and_a_command() {
    let Task::Explain(explain) = asked(&["proxima", "explain", "user:1", "--command=mg", "-c", "p.yaml"])
    else {
        panic!()
    };
    assert_eq!(
        (explain.key.as_deref(), explain.command),
        (Some("user:1"), Command::MetaGet)
    );
}

#[test]
fn explain_takes_a_statement_in_place_of_a_key() {
    let Task::Explain(explain) = asked(&["proxima", "explain", "--sql", "SELECT 1"]) else {
        panic!()
    };
    assert_eq!((explain.key, explain.sql.as_deref()), (None, Some("SELECT 1")));
    for more in [
        &[][..],
        &["k", "--sql=a"],
        &["--sql=a", "--command=get"],
        &["k", "--user=u"],
    ] {
        let answer = said(&[&["proxima", "explain"], more].concat());
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{more:?}");
    }
}

#[test]
fn check_says_how_fresh_reads_are_at_each_listener_and_why() {
    let pool = |galera: &str| {
        format!(
            "{{protocol: mysql, servers: ['127.0.0.1:1'], user: u, password_env: HOME, galera: {galera}}}"
        )
    };
    let listener = |number: u32, route: &str| {
        format!("{{address: '127.0.0.1:{number}', protocol: mysql, users: server, {route}}}")
    };
    let split = "route: {by_operation: {read: two, default: one}}";
    let cases = [
        (
            "{proxies: 1}",
            "true",
            "route: one",
            "causal",
            "pool `one` says `proxies: 1`",
        ),
        (
            "{proxies: 2}",
            "true",
            "route: one",
            "strict",
            "pool `one` does not say `proxies: 1`",
        ),
        (
            "true",
            "true",
            "route: one",
            "strict",
            "pool `one` does not say `proxies: 1`",
        ),
        (
            "{proxies: 1, consistency: session}",
            "true",
            "route: one",
            "session",
            "pool `one` says so",
        ),
        (
            "{proxies: 1}",
            "true",
            "route: one, consistency: eventual",
            "eventual",
            "the listener says so",
        ),
        (
            "{proxies: 1}",
            "true",
            split,
            "strict",
            "pools `one` and `two` differ",
        ),
    ];
    let file = std::env::temp_dir().join(format!("proxima-check-words-{}.yaml", std::process::id()));
    for (one, two, route, word, why) in cases {
        let (one, two, listener) = (pool(one), pool(two), listener(1, route));
        fs::write(
            &file,
            format!("listeners: [{listener}]\npools: {{one: {one}, two: {two}}}\n"),
        )
        .unwrap();
        let good = said(&["proxima", "check", file.to_str().unwrap()]);
        assert_eq!(good.code, 0, "{}", good.err);
        let shown = format!("{}: reads at 127.0.0.1:1 are `{word}`: {why}\n", file.display());
        assert!(good.out.ends_with(&shown), "{} lacks {shown}", good.out);
    }
    // By a route, for whom it says so.
    let (one, listener) = (pool("{proxies: 1}"), listener(1, "route: r"));
    let by_user = "by_user: {users: {app: {consistency: {child: one, level: session}}}, default: one}";
    for (route, shown) in [
        (
            "{consistency: {child: one, level: eventual}}",
            "reads at 127.0.0.1:1 are `eventual`: its route says so\n",
        ),
        (
            "{consistency: {child: s, level: strict}}",
            "reads at 127.0.0.1:1 are `strict`: its route says so\n\
             F: reads at 127.0.0.1:1 of user `app` are `session`: their route says so\n",
        ),
        (
            "{by_schema: {schemas: {b: {consistency: {child: s, level: strict}}}, default: s}}",
            "reads at 127.0.0.1:1 are `causal`: pool `one` says `proxies: 1`\n\
             F: reads at 127.0.0.1:1 of schema `b`, user `app` are `session`: their route says so\n\
             F: reads at 127.0.0.1:1 of schema `b`, other users are `strict`: their route says so\n\
             F: reads at 127.0.0.1:1 of other schemas, user `app` are `session`: their route says so\n",
        ),
    ] {
        let text = format!(
            "listeners: [{listener}]\npools: {{one: {one}}}\nroutes: {{r: {route}, s: {{{by_user}}}}}\n"
        );
        fs::write(&file, text).unwrap();
        let good = said(&["proxima", "check", file.to_str().unwrap()]);
        assert_eq!(good.code, 0, "{}", good.err);
        let shown = shown.replace("F:", &format!("{}:", file.display()));
        assert!(good.out.ends_with(&shown), "{} lacks {shown}", good.out);
    }
    fs::remove_file(file).unwrap();
}

#[test]
fn check_prints_warnings_and_a_summary() {
    let file = std::env::temp_dir().join(format!("proxima-check-{}.yaml", std::process::id()));
    let name = file.to_str().unwrap();
    let write = |text: &str| fs::write(&file, text).unwrap();

    write(
        "listeners: [{address: 127.0.0.1:1, route: a}]\npools: {a: [\"127.0.0.1:1\"], b: [\"127.0.0.1:2\"]}\n",
    );
    let good = said(&["proxima", "check", name]);
    assert_eq!(good.code, 0);
    assert!(
        good.out.starts_with(&format!("{name}: good, version ")),
        "{}",
        good.out
    );
    assert_eq!(
        good.err,
        format!("{name}:2:29: pools.b: nothing uses the pool `b` (warning)\n")
    );

    // An address needs no name server. This name has no address anywhere.
    write(
        "listeners: [{address: 127.0.0.1:1, route: a}]\npools: {a: [\"[::1]:1\", localhost:1, nowhere.invalid:1]}\n",
    );
    let unresolved = said(&["proxima", "check", name]);
    assert_eq!(unresolved.code, 0);
    let about = format!("{name}: pool a: `nowhere.invalid` does not resolve here (");
    assert!(
        unresolved.err.starts_with(&about) && unresolved.err.lines().count() == 1,
        "{}",
        unresolved.err
    );

    write("listeners: [{address: 127.0.0.1:1, route: c}]\nroutes: {m: {nearest: d}}\npools: {a: [h:1]}\n");
    let bad = said(&["proxima", "check", name]);
    fs::remove_file(&file).unwrap();
    assert_eq!((bad.code, bad.out.as_str()), (1, ""));
    let lines: Vec<&str> = bad.err.lines().collect();
    assert_eq!(lines.len(), 2, "{}", bad.err);
    assert!(
        lines[0].starts_with(&format!("{name}:1:43: listeners[0].route: ")),
        "{}",
        lines[0]
    );
    assert!(
        lines[1].starts_with(&format!("{name}:2:23: routes.m.nearest: ")),
        "{}",
        lines[1]
    );
}

/// The exit code and the lines of `check` for these files, without the folder. The first file is the
/// configuration.
fn checked(files: &[(&str, &str)]) -> (u8, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let file = folder.path().join(files[0].0);
    let answer = said(&["proxima", "check", file.to_str().unwrap()]);
    let prefix = format!("{}/", folder.path().display());
    let lines = answer.err.lines().map(|line| line.replace(&prefix, ""));
    (answer.code, lines.collect())
}

#[test]
fn check_reports_every_mistake() {
    let text = "listeners:\n  - {address: nowhere, route: a}\n  - {address: 127.0.0.1:1, rout: a, route: b}\n\
                pools:\n  a: {servers: [h:1, \"h\", h:0], timeout: soon, hash: ketame}\n  c: {servers: [h:1], tymeout: 1s}\n\
                limits: {clients: many, idle: never}\nroutes: {r: {all_sync: [a, d]}}\n";
    let (code, lines) = checked(&[("F", text)]);
    let places: Vec<&str> = lines
        .iter()
        .map(|line| line.split(": ").next().unwrap())
        .collect();
    assert_eq!(code, 1);
    let expected = [
        "F:2:15", "F:3:28", "F:3:44", "F:5:22", "F:5:27", "F:5:42", "F:5:54", "F:6:23", "F:7:19", "F:7:31",
        "F:8:28",
    ];
    assert_eq!(places, expected, "{lines:#?}");
}

#[test]
fn check_reports_mistakes_of_meaning_and_of_syntax_together() {
    let text = "listeners:\n  - {address: 127.0.0.1:1, route: a}\n  - {address: 127.0.0.1:1, route: {nearest: copies}}\n  \
                - {address: nowhere, route: b}\n\
                pools:\n  bad: {servers: [h:1], timeout: soon}\n  copies: {servers: [h:1, h:2], replicated: {min_acks: 3}}\n  \
                shares: {servers: [{address: h:1, weight: 5}], hash: weighted_ch3}\n\
                routes:\n  a: b\n  b: {failover: [a, {nearst: copies}, {member: bad/x}, {nearest: bad}]}\n  \
                c: {hash: {children: [shares, shares], hash: {algorithm: rendezvous, tags: [x]}}}\n";
    let (code, lines) = checked(&[("F", text)]);
    let expected = [
        "F:3:5: listeners[1]: `127.0.0.1:1` is taken by `127.0.0.1:1` in line 2; choose another port",
        "F:3:45: listeners[1].route.nearest: `nearest` over `copies`, which is replicated: a `set` would leave copies behind; \
         name the pool alone as the route; what only reads may stand below `by_operation: {read: …}`",
        "F:4:15: listeners[2].address: expected an address (there is no port), found `nowhere`; write `host:port`, \
         `[v6]:port` or `unix:/path`",
        "F:6:34: pools.bad.timeout: expected a duration, found `soon`; write a number and a unit: `250ms`, `1s`, `5m`, `1h`, \
         at most `1000d`",
        "F:7:3: pools.copies: `min_acks: 3` of 2 servers: every write would be refused; ask for as many as there are, or fewer",
        "F:8:3: pools.shares: this hash cannot be used: the weight of member 0 is 5 and should be a number from 0 to 1",
        "F:10:3: routes.a: the route leads back to itself: a → b → a; let one of them go elsewhere",
        "F:11:22: routes.b.failover[1]: unknown handle `nearst`; did you mean `nearest`?",
        "F:12:13: routes.c.hash: a list of 1 for 2 children; give one for each child",
    ];
    assert_eq!(
        (code, &lines[..]),
        (1, &expected.map(str::to_owned)[..]),
        "{lines:#?}"
    );
}

#[test]
fn check_reports_routes_and_files_of_servers_beside_other_mistakes() {
    let circle = "routes: {a: {log: b}, b: a}\n";
    let rows = [
        (
            "pools: []\nlisteners: [{address: 127.0.0.1:1, route: a}]\n",
            &["F:1:10", "F:2:8"][..],
        ),
        ("limits: {clients: many}\n", &["F:1:1", "F:1:10", "F:2:19"]),
        ("listeners: []\npool: {x: [h:1]}\n", &["F:1:1", "F:1:10", "F:3:1"]),
        (
            "listeners: [{address: 127.0.0.1:1, rout: c}]\npools: {p: {file: S}, q: {file: S, tymeout: 1s}}\n",
            &["F:1:10", "F:2:13", "F:2:36", "F:3:36", "S:1:1"],
        ),
    ];
    each_row(rows, |&(rest, places)| {
        let (code, lines) = checked(&[("F", &format!("{circle}{rest}")), ("S", "h:1 0\n")]);
        let found: Vec<&str> = lines
            .iter()
            .map(|line| line.split(": ").next().unwrap())
            .collect();
        assert_eq!((code, &found[..]), (1, places), "{lines:#?}");
    });
}

#[test]
fn check_reports_every_mistake_in_files_of_servers() {
    let text = "listeners: [{address: 127.0.0.1:1, route: a}]\npools: {a: {file: one}, b: {file: two}, c: {file: one}, d: {file: good}}\n\
                routes: {r: {all_sync: [b, c, d]}}\n";
    let files = [
        ("F", text),
        ("one", "h:1\nh\nh:1 0\n"),
        ("two", "# none\n"),
        ("good", "127.0.0.1:1\n"),
    ];
    let (code, lines) = checked(&files);
    assert_eq!((code, lines.len()), (1, 3), "{lines:#?}");
    for (line, start) in lines.iter().zip([
        "one:2:1: `h` is no address",
        "one:3:1: the weight",
        "two: names no server",
    ]) {
        assert!(line.starts_with(start), "{line}");
    }
}

#[test]
fn check_refuses_a_state_file_that_cannot_be_written() {
    let text = "listeners: [{address: 127.0.0.1:1, route: a}]\npools: {a: {servers: [\"127.0.0.1:1\"], replicated: true}}\n";
    let rows = ["absent/state", "F/state", "."];
    each_row(rows, |&state| {
        let (code, lines) = checked(&[("F", &format!("{text}state: {state}\n"))]);
        assert_eq!((code, lines.len()), (1, 1), "{lines:#?}");
        assert!(
            lines[0].starts_with("F: state: ") && lines[0].contains("cannot be written here"),
            "{}",
            lines[0]
        );
    });
    let (code, lines) = checked(&[("F", &format!("{text}state: new\n"))]);
    assert_eq!((code, lines), (0, Vec::new()));
}

#[test]
fn check_recognizes_files_of_other_programs() {
    let rows = [
        (
            "{\"pools\": {\"A\": {\"servers\": [\"h:1\"]}}, \"route\": \"PoolRoute|A\"}",
            "mcrouter",
        ),
        ("// a comment\n{\"route\": \"NullRoute\", }\n", "mcrouter"),
        (
            "alpha:\n  listen: 127.0.0.1:22121\n  servers:\n   - 127.0.0.1:11211:1\n",
            "twemproxy",
        ),
    ];
    each_row(rows, |&(text, whose)| {
        let (code, lines) = checked(&[("F", text)]);
        assert_eq!((code, lines.len()), (1, 1), "{lines:#?}");
        assert!(
            lines[0].starts_with(&format!("F: this is a configuration of {whose}; ")),
            "{}",
            lines[0]
        );
    });
}

#[test]
fn check_and_explain_report_pools_without_servers_from_dns() {
    let text =
        "listeners: [{address: 127.0.0.1:1, route: a}]\npools: {a: {dns: \"nowhere.invalid:11211\"}}\n";
    let (code, lines) = checked(&[("F", text)]);
    assert_eq!((code, lines.len()), (0, 1), "{lines:#?}");
    let start = "F: pool a has no servers: DNS has named none for nowhere.invalid (";
    assert!(
        lines[0].starts_with(start) && lines[0].ends_with("(warning)"),
        "{}",
        lines[0]
    );
}

#[test]
fn manual_pages_and_completions_can_be_printed() {
    let help = said(&["proxima", "--help"]);
    assert_eq!(help.code, 0);
    for command in [
        "run",
        "check",
        "explain",
        "config",
        "completions",
        "man",
        "mcrouter",
    ] {
        assert!(
            help.out
                .lines()
                .any(|line| line.trim_start().starts_with(command)),
            "{command}"
        );
        if command != "mcrouter" {
            let own = said(&["proxima", command, "--help"]);
            assert!(
                own.code == 0 && own.out.contains("Usage: proxima"),
                "{command}: {}{}",
                own.out,
                own.err
            );
        }
    }
    assert!(help.out.contains("Examples:"));
    assert!(said(&["proxima", "--version"]).out.starts_with("proxima 0."));
    assert_eq!(said(&["proxima"]).code, 2);
    assert!(said(&["proxima", "config", "schema"]).out.contains("$schema"));
    assert!(
        said(&["proxima", "config", "options"])
            .out
            .starts_with("# Options")
    );
    assert!(said(&["proxima", "config", "routes"]).out.starts_with("# Routes"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            said(&["proxima", "completions", shell])
                .out
                .contains("node-address"),
            "{shell}"
        );
    }
    assert!(said(&["proxima", "man"]).out.contains(".TH proxima"));
    assert!(said(&["proxima", "man", "run"]).out.contains("node\\-address"));
}

#[test]
fn the_program_called_nutcracker_takes_twemproxys_options() {
    for name in [
        &["nutcracker"][..],
        &["/usr/sbin/nutcracker"],
        &["proxima", "nutcracker"],
    ] {
        let version = said(&[name, &["-V"]].concat());
        assert!(version.err.starts_with("This is nutcracker-0.5.0\n") && version.out.is_empty());
        assert_eq!(version.code, 0);
        let refused = said(&[name, &["-x"]].concat());
        assert!(
            refused
                .err
                .starts_with("nutcracker: invalid option -- 'x'\nUsage: nutcracker")
        );
        assert_eq!(refused.code, 1);
    }
}

#[test]
fn the_program_called_mcrouter_takes_mcrouter_options() {
    let options = ["--port=1", "--config={\"route\": \"NullRoute\"}", "-v", "2"];
    let rows = [
        &["mcrouter"][..],
        &["/usr/bin/mcrouter"],
        &["proxima", "mcrouter"],
    ];
    each_row(rows, |&name| {
        let Task::Mcrouter(run) = asked(&[name, &options].concat()) else {
            panic!("{name:?}")
        };
        assert_eq!(run.verbosity, 2);
        assert_eq!(said(&[name, &["--version"]].concat()).out, "1.0.0 mcrouter\n");
        assert!(
            said(&[name, &["--help"]].concat())
                .out
                .starts_with("Usage: mcrouter")
        );
        assert_eq!(said(&[name, &["--port=1"]].concat()).code, 3);
    });
}
