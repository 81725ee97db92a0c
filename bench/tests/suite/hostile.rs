//! Hostile clients, against servers that are known to withstand them and others that are known not to.

use std::{thread, time::Duration};

use serde_json::Value;

use super::{
    common::{Memcached, run},
    relay::{Mishap, relay},
    rows::each_row,
};

/// Attacks that a memcached withstands on any machine.
const LIGHT: &str =
    "slow-readers,stopped-readers,slow-uploads,slow-lines,half-requests,connection-storm,garbage,smuggling";

/// Runs an attack with these options, and returns the exit code and the report.
fn hostile(more: &[&str]) -> (Option<i32>, Value) {
    let (output, report) = run(&[&["hostile", "--quiet", "--json=-"], more].concat());
    assert!(report.is_object(), "{output:?}");
    (output.status.code(), report)
}

/// The sum over all clients of the first round.
fn sum(report: &Value, name: &str) -> u64 {
    let clients = report["rounds"][0]["clients"].as_array().expect("clients");
    let number = |client: &Value| {
        client[name]
            .as_u64()
            .unwrap_or_else(|| panic!("no {name} in {report}"))
    };
    clients.iter().map(number).sum()
}

#[test]
fn a_server_that_stands_all_attacks_passes_and_each_attack_is_reported() {
    let server = Memcached::start();
    let address = server.address();
    let pid = server.pid().to_string();
    let (code, report) = hostile(
        &[
            &["--address", &address, "--attack", LIGHT, "--duration=3s"][..],
            // The time-out is long, as this test checks correctness also on a machine under load.
            &[
                "--timeout=30s",
                "--control",
                &address,
                "--pid",
                &pid,
                "--rss-limit=4096",
            ],
        ]
        .concat(),
    );
    assert_eq!(code, Some(0), "{report}");
    for nothing in ["wrong", "late", "refused", "lost", "misses"] {
        assert_eq!(sum(&report, nothing), 0, "{nothing}: {report}");
    }
    let round = &report["rounds"][0];
    let clients = round["clients"].as_array().expect("clients");
    assert_eq!(clients.len(), 20);
    for client in clients {
        assert!(client["hits"].as_u64() > Some(10), "{client}");
        assert!(client["worst_seconds"].as_f64() > Some(0.0), "{client}");
    }
    let attacks = round["attacks"].as_array().expect("attacks");
    let names: Vec<_> = attacks
        .iter()
        .filter_map(|attack| attack["attack"].as_str())
        .collect();
    assert_eq!(names.join(","), LIGHT);
    for attack in attacks {
        for something in ["connections", "requests", "bytes_sent"] {
            assert!(attack[something].as_u64() > Some(0), "{something}: {attack}");
        }
    }
    assert!(round["peak_rss_bytes"].as_u64() > Some(1 << 20), "{round}");
    assert!(round["newcomer_served_after_seconds"].is_f64(), "{round}");
}

#[test]
fn attacks_in_turn_have_a_round_each() {
    let server = Memcached::start();
    let (code, report) = hostile(&[
        "--address",
        &server.address(),
        "--attack=slow-lines,smuggling",
        "--in-turn",
        "--duration=500ms",
        "--timeout=30s",
        "--clients=3",
    ]);
    assert_eq!(code, Some(0), "{report}");
    let rounds = report["rounds"].as_array().expect("rounds");
    let names: Vec<_> = rounds
        .iter()
        .map(|round| &round["attacks"][0]["attack"])
        .collect();
    assert_eq!(names, ["slow-lines", "smuggling"]);
}

#[test]
fn another_clients_reply_fails_the_run_and_is_reported() {
    let server = Memcached::start();
    let address = relay(&server, Mishap::Foreign);
    let (code, report) = hostile(&["--address", &address, "--attack=slow-lines", "--duration=2s"]);
    assert_eq!(code, Some(1), "{report}");
    assert!(sum(&report, "wrong") > 0, "{report}");
    let clients = report["rounds"][0]["clients"].as_array().expect("clients");
    let mut words = clients
        .iter()
        .filter_map(|client| client["wrong_replies"][0].as_str());
    assert!(words.any(|words| words.contains("VALUE other 0 15")), "{report}");
}

#[test]
fn a_stall_counts_as_late_unless_the_control_client_met_it() {
    let mut late = Vec::new();
    for control in [false, true] {
        let server = Memcached::start();
        let address = server.address();
        let mut arguments = vec![
            "--address",
            &address,
            "--attack=slow-lines",
            "--duration=3s",
            "--timeout=400ms",
        ];
        if control {
            arguments.extend(["--control", &address]);
        }
        let (code, report) = thread::scope(|scope| {
            scope.spawn(|| {
                server.wait_for_reads(500);
                server.signal("STOP");
                thread::sleep(Duration::from_millis(1_500));
                server.signal("CONT");
            });
            hostile(&arguments)
        });
        assert_eq!(sum(&report, "wrong"), 0, "{report}");
        if control {
            assert!(
                report["rounds"][0]["longest_stalls"]["control_seconds"].as_f64() > Some(1.0),
                "{report}"
            );
        } else {
            assert_eq!(code, Some(1), "{report}");
        }
        late.push(sum(&report, "late"));
    }
    assert!(late[0] > 0 && late[1] < late[0], "{late:?}");
}

#[test]
fn vanished_values_fail_the_run_only_with_no_misses() {
    let rows = [(&[][..], 0), (&["--no-misses"], 1)];
    each_row(rows, |&(more, expected)| {
        let server = Memcached::start();
        let address = server.address();
        let fixed = [
            "--address",
            &address,
            "--attack=slow-lines",
            "--duration=2s",
            "--timeout=30s",
        ];
        let (code, report) = thread::scope(|scope| {
            scope.spawn(|| {
                server.wait_for_reads(500);
                server.flush();
            });
            hostile(&[&fixed[..], more].concat())
        });
        assert!(sum(&report, "misses") > 0, "{report}");
        assert_eq!(code, Some(expected), "{report}");
    });
}

#[test]
fn a_server_that_dies_under_attack_is_reported_as_ended() {
    let mut server = Memcached::start();
    let (address, pid) = (server.address(), server.pid().to_string());
    let arguments = [
        "--address",
        &address,
        "--attack=slow-lines",
        "--duration=2s",
        "--pid",
        &pid,
    ];
    let (code, report) = thread::scope(|scope| {
        scope.spawn(|| {
            server.wait_for_reads(500);
            server.stop();
        });
        hostile(&arguments)
    });
    assert_eq!(code, Some(1), "{report}");
    assert!(sum(&report, "lost") > 0, "{report}");
    let failures = report["failures"].to_string();
    for words in ["no new client was served", "the attacked process has ended"] {
        assert!(failures.contains(words), "{failures}");
    }
}

#[test]
fn an_attack_with_bad_options_says_why() {
    let server = Memcached::start();
    let address = server.address();
    let rows = [
        (&["--address", "127.0.0.1:1"][..], "127.0.0.1:1"),
        (&["--address", "nowhere"], "not HOST:PORT"),
        (&["--address", &address, "--attack=nonsense"], "slow-readers"),
        (&["--address", &address, "--timeout=0s"], "--timeout"),
        (
            &["--address", &address, "--attack=large-mget"],
            "--attack large-mget",
        ),
        (&["--address", &address, "--rss-limit=9"], "--pid"),
        (&["--address", &address, "--prefix=a b"], "--prefix"),
    ];
    each_row(rows, |&(arguments, words)| {
        let (output, _) = run(&[&["hostile", "--duration=200ms"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(words), "{arguments:?}: {said}");
    });
}
