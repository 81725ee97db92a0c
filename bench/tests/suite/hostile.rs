//! Hostile clients, before servers that are known to stand them and others that are known not to.

use std::{thread, time::Duration};

use serde_json::Value;

use super::{
    common::{Memcached, run},
    relay::{Mishap, relay},
};

/// Attacks that a memcached shrugs off on any machine.
const LIGHT: &str =
    "slow-readers,stopped-readers,slow-uploads,slow-lines,half-requests,connection-storm,garbage,smuggling";

/// Runs with these options; returns the exit code and the report.
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
fn a_server_that_stands_all_attacks_passes_and_the_report_says_what_was_done() {
    let server = Memcached::start();
    let address = server.address();
    let pid = server.pid().to_string();
    let (code, report) = hostile(
        &[
            &["--address", &address, "--attack", LIGHT, "--duration=3s"][..],
            // No limit for a machine under load, as this is about what is right.
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
fn each_attack_has_a_round_of_its_own_when_they_come_in_turn() {
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
fn another_clients_reply_is_found_and_shown() {
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
fn a_server_that_stands_still_is_late_unless_a_control_client_met_the_same() {
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
fn values_that_vanish_are_a_failure_only_where_there_is_room_for_them() {
    for (more, expected) in [(&[][..], 0), (&["--no-misses"], 1)] {
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
    }
}

#[test]
fn a_server_that_dies_is_said_to_have_ended() {
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
fn a_run_that_cannot_be_made_says_why() {
    let server = Memcached::start();
    let address = server.address();
    for (arguments, words) in [
        (&["--address", "127.0.0.1:1"][..], "127.0.0.1:1"),
        (&["--address", "nowhere"], "not HOST:PORT"),
        (&["--address", &address, "--attack=nonsense"], "slow-readers"),
        (&["--address", &address, "--timeout=0s"], "--timeout"),
        (&["--address", &address, "--rss-limit=9"], "--pid"),
        (&["--address", &address, "--prefix=a b"], "--prefix"),
    ] {
        let (output, _) = run(&[&["hostile", "--duration=200ms"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}
