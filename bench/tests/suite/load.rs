//! The load generator against a real memcached.

use std::{thread, time::Duration};

use super::{
    common::{Memcached, run},
    rows::each_row,
};

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
fn filled_keys_are_read_back_without_a_miss() {
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

    // This value has the right length and the key inside, but one other byte.
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

    // This value has another length.
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
    // One request is due at the start, then one each millisecond.
    assert!((3_000..=3_001).contains(&(replies + lost)), "{stall}");
    // A third of all requests was due in the stall and waited half of it in the mean. A closed loop would
    // have sent only 8 of them.
    assert!(
        stall["latency_us"]["all"]["p90"].as_f64() > Some(300_000.0),
        "{stall}"
    );
}

#[test]
fn with_reconnect_every_request_has_a_connection_of_its_own() {
    let server = Memcached::start();
    let (_, report) = load(&server, &["--fill", "--reconnect", "--rate", "500"]);
    assert!(report["replies"].as_u64() > Some(200), "{report}");
    assert_eq!(report["connects"], report["replies"], "{report}");
}

#[test]
fn a_load_goes_on_when_its_server_dies() {
    let rows = [(&[][..], 0), (&["--strict"][..], 1)];
    each_row(rows, |&(more, code)| {
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
    });
}

#[test]
fn a_load_with_bad_options_says_why() {
    let rows = [
        (
            &["load", "--address", "127.0.0.1:1", "--duration=1s"][..],
            "127.0.0.1:1",
        ),
        (&["load", "--keys", "100", "--key-size", "1"], "key size"),
        (&["load", "--reconnect", "--pipeline", "2"], "--pipeline"),
        (&["load", "--rate", "0"], "--rate"),
    ];
    each_row(rows, |&(arguments, words)| {
        let (output, _) = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains(words),
            "{output:?}"
        );
    });
}
