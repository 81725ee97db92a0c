//! MySQL: lockstep through proxies.

use std::path::Path;

use super::{common::run, rows::each_row};

fn lockstep(more: &[&str]) -> serde_json::Value {
    let start = [
        "lockstep",
        "--bursts=3",
        "--burst-requests=100",
        "--keys=1000",
        "--json=-",
    ];
    let (output, reports) = run(&[&start[..], more].concat());
    assert!(output.status.success(), "{output:?}");
    for report in reports.as_array().expect("reports") {
        let cost = report["figures"]["cpu_us"]["p10"].as_f64();
        assert!(cost > Some(0.1), "{report}");
    }
    reports
}

/// This test needs a `proxima` beside `proxima-bench`, which every build of the workspace makes.
#[test]
fn every_form_of_statement_is_measured_in_lockstep() {
    const PROXY: &str = "--contender=proxima-epoll";
    let forms = [
        &["--protocol=mysql", "--clients=10"][..],
        &["--protocol=mysql-prepared", "--clients=10"],
        &["--protocol=mysql", "--clients=10", "--galera"],
        &[
            "--protocol=mysql-prepared",
            "--clients=10",
            "--galera",
            "--mix=1:0",
        ],
        &["--protocol=mysql", "--clients=5", "--value-size=32768"],
        &[
            "--protocol=mysql",
            "--clients=4",
            "--connections=fin",
            "--tls=1.3",
        ],
        &["--protocol=mysql-prepared", "--clients=4", "--connections=rst"],
    ];
    each_row(forms, |&form| _ = lockstep(&[&[PROXY], form].concat()));
}

#[test]
fn a_connection_of_mysql_each_is_measured_through_a_relay_of_bytes() {
    if !Path::new("/usr/sbin/haproxy").exists() {
        eprintln!("skipped: haproxy is not installed");
        return;
    }
    let contenders = "--contender=haproxy,accept-loop";
    for connections in ["kept", "fin"] {
        lockstep(&[
            "--protocol=mysql",
            contenders,
            "--clients=4",
            "--connections",
            connections,
        ]);
    }
}

#[test]
fn what_clients_of_mysql_do_not_do_is_refused() {
    for (option, words) in [
        ("--pipeline=2", "no --pipeline"),
        ("--keys-a-request=2", "--protocol redis"),
        ("--near=off", "--spread and --near"),
        ("--spread=all", "--spread and --near"),
    ] {
        let (output, _) = run(&["lockstep", "--protocol=mysql", "--contender=haproxy", option]);
        assert_eq!(output.status.code(), Some(2), "{option}");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(words), "{option}: {said}");
    }
    let (output, _) = run(&["lockstep", "--galera", "--contender=haproxy"]);
    assert_eq!(output.status.code(), Some(2));
}
