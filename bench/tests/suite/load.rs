//! The load generator against a real memcached.

use std::{thread, time::Duration};

use super::common::{Memcached, run};

const SMALL: [&str; 8] = [
    "--keys",
    "200",
    "--connections",
    "8",
    "--quiet",
    "--json",
    "-",
    "--duration=500ms",
];

fn load(server: &Memcached, more: &[&str]) -> (std::process::Output, serde_json::Value) {
    let address = server.address();
    run(&[&["load", "--address", &address], &SMALL[..], more].concat())
}

#[test]
fn what_was_filled_is_read_back_without_a_miss() {
    let server = Memcached::start();
    for shape in [
        &["--fill"][..],
        &["--pipeline", "16", "--threads", "3"],
        &["--popularity", "zipf", "--reconnect"],
    ] {
        let (output, report) = load(&server, shape);
        assert_eq!(output.status.code(), Some(0), "{shape:?}: {output:?}");
        assert!(report["hits"].as_u64() > Some(0), "{report}");
        assert!(report["stored"].as_u64() > Some(0), "{report}");
        for nothing in ["misses", "wrong", "refused", "lost"] {
            assert_eq!(report[nothing], 0, "{shape:?}: {report}");
        }
    }
}

#[test]
fn misses_are_counted_and_are_no_error() {
    let server = Memcached::start();
    let (output, report) = load(&server, &["--mix", "0:1", "--strict"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        (&report["hits"], &report["misses"]),
        (&0.into(), &report["replies"])
    );
}

#[test]
fn a_wrong_byte_is_an_error() {
    let server = Memcached::start();
    let one_key = [
        "--keys",
        "1",
        "--key-size",
        "8",
        "--value-size",
        "20",
        "--mix",
        "0:1",
    ];
    let (output, _) = load(&server, &[&one_key[..], &["--fill"]].concat());
    assert_eq!(output.status.code(), Some(0));

    // The right length, the key inside, and one byte that is another.
    let mut value = b"0:proxim".to_vec();
    value.resize(20, b'x');
    server.set("0:proxim", &value);
    let (output, report) = load(&server, &one_key);
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert!(report["wrong"].as_u64() > Some(0));
    assert!(
        report["first_wrong"]
            .as_str()
            .is_some_and(|words| words.contains("not the bytes of this key"))
    );

    // Another length.
    server.set("0:proxim", b"short");
    assert_eq!(load(&server, &one_key).0.status.code(), Some(1));
}

#[test]
fn the_open_loop_charges_a_stall_to_every_request_that_was_due() {
    let server = Memcached::start();
    let stall = thread::scope(|scope| {
        scope.spawn(|| {
            server.wait_for_reads(300);
            server.signal("STOP");
            thread::sleep(Duration::from_millis(1_000));
            server.signal("CONT");
        });
        load(&server, &["--fill", "--rate", "1000", "--duration=3s"]).1
    });
    assert_eq!(stall["corrected_for_coordinated_omission"], true);
    let (replies, lost) = (
        stall["replies"].as_u64().unwrap(),
        stall["lost"].as_u64().unwrap(),
    );
    // One at the start, then one each millisecond.
    assert!((3_000..=3_001).contains(&(replies + lost)), "{stall}");
    // A third of all requests was due in the stall and waited half of it in the mean. A closed loop would have asked
    // 8 times in it.
    assert!(
        stall["latency_us"]["all"]["p90"].as_f64() > Some(300_000.0),
        "{stall}"
    );
}

#[test]
fn every_request_has_a_connection_of_its_own_when_asked() {
    let server = Memcached::start();
    let (_, report) = load(&server, &["--fill", "--reconnect", "--rate", "500"]);
    assert!(report["replies"].as_u64() > Some(200), "{report}");
    assert_eq!(report["connects"], report["replies"], "{report}");
}

#[test]
fn a_server_that_dies_loses_requests_and_the_run_goes_on() {
    for (more, code) in [(&[][..], 0), (&["--strict"][..], 1)] {
        let mut server = Memcached::start();
        let address = server.address();
        let arguments = [
            &["load", "--address", &address],
            &SMALL[..],
            &["--duration=1500ms"],
            more,
        ]
        .concat();
        let (output, report) = thread::scope(|scope| {
            scope.spawn(|| {
                server.wait_for_reads(300);
                server.stop();
            });
            run(&arguments)
        });
        assert_eq!(output.status.code(), Some(code), "{report}");
        assert!(report["lost"].as_u64() >= Some(8), "{report}");
        assert!(report["failed_connects"].as_u64() > Some(0), "{report}");
    }
}

#[test]
fn a_run_that_cannot_be_made_says_why() {
    for (arguments, words) in [
        (
            &["load", "--address", "127.0.0.1:1", "--duration=1s"][..],
            "127.0.0.1:1",
        ),
        (&["load", "--keys", "100", "--key-size", "1"], "key size"),
        (&["load", "--reconnect", "--pipeline", "2"], "--pipeline"),
        (&["load", "--rate", "0"], "--rate"),
    ] {
        let (output, _) = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains(words),
            "{output:?}"
        );
    }
}
