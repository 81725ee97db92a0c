//! Redis: load against a real server, lockstep through proxies.

use std::{
    net::TcpStream,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::Value;

use super::{
    common::{free_port, run},
    rows::each_row,
};

/// A Redis that ends with the test.
struct Redis {
    child: Child,
    port: u16,
}

impl Redis {
    /// `None`, after words about it: it is not installed.
    fn start() -> Option<Self> {
        // Another process may take a port that was free.
        for _ in 0..5 {
            let port = free_port();
            let child = Command::new("redis-server")
                .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""])
                .stdout(Stdio::null())
                .spawn();
            let Ok(child) = child else {
                eprintln!("skipped: redis-server is not installed");
                return None;
            };
            let mut server = Self { child, port };
            if server.answers() {
                return Some(server);
            }
        }
        panic!("redis-server ends on every port");
    }

    /// Whether it answers at its port; if not, it has ended.
    fn answers(&mut self) -> bool {
        loop {
            let ended = self.child.try_wait().expect("it can be asked");
            if ended.is_some() {
                return false;
            }
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return true;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn keys_that_redis_was_filled_with_are_read_back_one_by_one_and_many_at_a_time() {
    let Some(server) = Redis::start() else { return };
    let address = format!("127.0.0.1:{}", server.port);
    for shape in [
        &["--fill"][..],
        &["--pipeline", "16", "--threads", "3"],
        &["--keys-a-request", "20"],
        &["--keys-a-request", "20", "--pipeline", "4"],
    ] {
        let words = [
            &[
                "load",
                "--address",
                &address,
                "--protocol",
                "redis",
                "--keys",
                "200",
                "--connections",
                "8",
            ][..],
            &["--quiet", "--json", "-", "--duration=500ms"],
            shape,
        ];
        let (output, report) = run(&words.concat());
        assert_eq!(output.status.code(), Some(0), "{shape:?}: {output:?}");
        assert!(report["hits"].as_u64() > Some(0), "{report}");
        assert!(report["stored"].as_u64() > Some(0), "{report}");
        for nothing in ["misses", "wrong", "refused", "lost"] {
            assert_eq!(report[nothing], 0, "{shape:?}: {report}");
        }
    }
}

#[test]
fn a_redis_stands_attacks_in_turn_and_each_is_compared_with_a_quiet_round() {
    let Some(server) = Redis::start() else { return };
    let address = format!("127.0.0.1:{}", server.port);
    let words = [
        "hostile",
        "--protocol=redis",
        "--address",
        &address,
        "--attack=large-mget,garbage",
        "--in-turn",
        "--duration=500ms",
        "--timeout=30s",
        "--clients=3",
        "--no-misses",
        "--quiet",
        "--json=-",
    ];
    for most in [30, 0] {
        let option = format!("--most-delay={most}s");
        let (output, report) = run(&[&words[..], &[&option]].concat());
        let rounds = report["rounds"].as_array().expect("rounds");
        assert_eq!(rounds.len(), 3, "{report}");
        assert!(rounds[0]["attacks"] == Value::Array(Vec::new()) && rounds[0]["delay_seconds"].is_null());
        for (round, attack) in rounds[1..].iter().zip(["large-mget", "garbage"]) {
            assert_eq!(round["attacks"][0]["attack"], attack);
            assert!(round["attacks"][0]["requests"].as_u64() > Some(0), "{round}");
        }
        let delays = rounds[1..]
            .iter()
            .map(|round| round["delay_seconds"].as_f64().expect("a delay"));
        let above = delays.filter(|delay| *delay > f64::from(most)).count();
        let failures = report["failures"].as_array().expect("failures");
        let is_delay = |failure: &Value| failure.to_string().contains("longer than in the quiet round");
        assert!(failures.iter().all(is_delay), "{failures:?}");
        assert_eq!(failures.len(), above, "{report}");
        assert_eq!(output.status.code(), Some(i32::from(above > 0)), "{output:?}");
    }
}

#[test]
fn a_value_that_redis_has_not_is_a_miss() {
    let Some(server) = Redis::start() else { return };
    let address = format!("127.0.0.1:{}", server.port);
    for count in ["1", "5"] {
        let (output, report) = run(&[
            "load",
            "--address",
            &address,
            "--protocol=redis",
            "--keys-a-request",
            count,
            "--mix=0:1",
            "--connections=2",
            "--duration=300ms",
            "--quiet",
            "--json=-",
        ]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(
            (&report["hits"], &report["misses"]),
            (&0.into(), &report["replies"])
        );
    }
}

/// This test needs a `proxima` beside `proxima-bench`, which every build of the workspace makes.
#[test]
fn every_form_of_request_is_measured_in_lockstep() {
    const PROXY: &str = "--contender=proxima-epoll";
    let forms = [
        &[PROXY, "--clients=10"][..],
        &[PROXY, "--clients=10", "--pipeline=4"],
        &[PROXY, "--clients=10", "--keys-a-request=20", "--value-size=100"],
        &[
            PROXY,
            "--clients=10",
            "--keys-a-request=20",
            "--value-size=100",
            "--mix=1:0",
        ],
        &[PROXY, "--clients=10", "--keys-a-request=3", "--transaction"],
        &[PROXY, "--clients=5", "--value-size=32768"],
        &["--contender=embedded-epoll", "--clients=10"],
    ];
    each_row(forms, |&form| {
        let start = [
            "lockstep",
            "--protocol=redis",
            "--bursts=3",
            "--burst-requests=100",
        ];
        let (output, reports) = run(&[&start[..], &["--keys=1000", "--json=-"], form].concat());
        assert!(output.status.success(), "{output:?}");
        assert!(
            reports[0]["figures"]["cpu_us"]["p10"].as_f64() > Some(0.1),
            "{reports}"
        );
    });
}
