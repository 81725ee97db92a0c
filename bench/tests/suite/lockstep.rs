//! Lockstep and the comparison, with real servers and proxies.

use std::{
    fs,
    path::Path,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use super::{
    common::{Memcached, bench, run},
    rows::each_row,
};
use serde_json::Value;

const SHORT: [&str; 8] = [
    "--bursts",
    "5",
    "--burst-requests",
    "200",
    "--keys",
    "1000",
    "--json",
    "-",
];

fn lockstep(more: &[&str]) -> Value {
    let (output, reports) = run(&[&["lockstep"], &SHORT[..], more].concat());
    assert!(output.status.success(), "{output:?}");
    reports
}

/// Whether Debian's twemproxy is installed. The tests that need it say so and pass otherwise.
fn twemproxy_is_installed() -> bool {
    let installed = Path::new("/usr/sbin/nutcracker").exists();
    if !installed {
        eprintln!("skipped: nutcracker is not installed");
    }
    installed
}

/// Asserts that the target woke up `wakeups` times a round. Other processes may add wake-ups, and a target
/// that loses the processor just before it sleeps goes on with the next batch instead.
fn assert_in_step(report: &Value, wakeups: f64) {
    let figures = &report["figures"];
    let number = |name: &str| figures[name].as_f64().unwrap_or_default();
    let cost = figures["cpu_us"]["p10"].as_f64().unwrap_or_default();
    assert!(
        cost > 0.1 && figures["cpu_us"]["median"].as_f64() >= Some(cost),
        "{report}"
    );
    assert!(figures["resident_bytes"].as_u64() > Some(500_000), "{report}");
    let taken = number("own_preemptions_a_round") + number("preemptions_a_round");
    let expected = wakeups * 0.5 - taken..wakeups * 1.5 + 2.0 * taken;
    assert!(
        expected.contains(&number("wakeups_a_round")),
        "not in step: {report}"
    );
}

#[test]
fn lockstep_wakes_a_server_once_a_round() {
    let reports = lockstep(&["--contender", "memcached", "--clients", "5"]);
    assert_in_step(&reports[0], 1.0);
}

#[test]
fn lockstep_with_tls_wakes_a_proxy_as_often_as_without() {
    if !Path::new("/usr/sbin/haproxy").exists() {
        eprintln!("skipped: haproxy is not installed");
        return;
    }
    let shape = ["--contender", "haproxy", "--clients", "10", "--tls", "1.2"];
    assert_in_step(&lockstep(&shape)[0], 2.0);
    // Each connection begins with a handshake of its own.
    let shape = [
        "--contender",
        "haproxy",
        "--clients",
        "4",
        "--tls",
        "1.3",
        "--connections",
        "fin",
    ];
    let reports = lockstep(&[&shape[..], &["--resume"]].concat());
    assert!(reports[0]["figures"].is_object(), "{reports}");
}

#[test]
fn lockstep_wakes_a_proxy_once_for_requests_and_once_for_replies() {
    if !twemproxy_is_installed() {
        return;
    }
    let rows = [
        &["--clients", "1"][..],
        &["--clients", "20", "--pipeline", "4"],
        &["--servers", "50"],
    ];
    each_row(rows, |&shape| {
        let reports = lockstep(&[&["--contender", "twemproxy"], shape].concat());
        assert_in_step(&reports[0], 2.0);
    });
}

/// This test needs a `proxima` beside `proxima-bench`, which every build of the workspace makes.
#[test]
fn lockstep_of_copies_takes_sets_only() {
    let copies = ["--contender", "proxima-epoll", "--spread", "copies"];
    let reports = lockstep(&[&copies[..], &["--clients", "5", "--mix", "1:0"]].concat());
    assert_in_step(&reports[0], 2.0);
    let output = bench(&[&["lockstep"], &copies[..]].concat()).output().unwrap();
    let refusal = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(
        !output.status.success() && refusal.contains("--mix 1:0"),
        "{refusal}"
    );
}

/// A hit wakes the proxy once a round, as no server answers; everything else twice.
#[test]
fn lockstep_of_a_near_cache_meets_hits_misses_and_kept_keys_alone() {
    let rows = [
        (&["hits", "--mix", "0:1"][..], 1.0),
        (&["misses", "--mix", "0:1", "--keys", "20000"], 2.0),
        (&["written", "--mix", "1:0", "--keys", "200"], 2.0),
        (&["off"], 2.0),
    ];
    each_row(rows, |&(near, wakeups)| {
        let shape = ["--contender", "proxima-epoll", "--clients", "10", "--near"];
        assert_in_step(&lockstep(&[&shape[..], near].concat())[0], wakeups);
    });
    let hits = ["--contender", "proxima-epoll", "--near", "hits"];
    let (output, _) = run(&[&["lockstep"], &hits[..]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("--mix 0:1"),
        "{output:?}"
    );
}

#[test]
fn lockstep_measures_large_values_and_sets_alone() {
    if !twemproxy_is_installed() {
        return;
    }
    let reports = lockstep(&[
        "--contender",
        "twemproxy",
        "--value-size",
        "32768",
        "--clients",
        "30",
        "--mix",
        "1:1",
    ]);
    assert!(reports[0]["figures"].is_object(), "{reports}");
    lockstep(&["--contender", "twemproxy", "--mix", "1:0", "--clients", "10"]);
}

#[test]
fn lockstep_measures_a_running_process() {
    let server = Memcached::start();
    let reports = lockstep(&[
        "--pid",
        &server.pid().to_string(),
        "--address",
        &server.address(),
        "-c",
        "5",
    ]);
    assert_in_step(&reports[0], 1.0);
}

#[test]
fn a_contender_that_fails_leaves_the_others_running() {
    let contenders = [
        "--contender",
        "haproxy,memcached",
        "--binary",
        "haproxy=/bin/false",
    ];
    let reports = lockstep(&contenders);
    assert!(
        reports[0]["failure"]
            .as_str()
            .is_some_and(|words| words.contains("false ended")),
        "{reports}"
    );
    assert!(reports[1]["figures"].is_object(), "{reports}");

    let (output, _) = run(&[
        "lockstep",
        "--contender",
        "haproxy",
        "--binary",
        "haproxy=/bin/false",
    ]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_batch_too_large_for_lockstep_is_refused() {
    let (output, _) = run(&[
        "lockstep",
        "--contender",
        "memcached",
        "--pipeline",
        "100",
        "--value-size",
        "32768",
    ]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("socket's buffer"),
        "{output:?}"
    );
}

/// The memcached that this process has started, or `None` before that.
fn child_of(parent: u32) -> Option<u32> {
    let processes = fs::read_dir("/proc").ok()?;
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .find(|pid: &u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            status.starts_with("Name:\tmemcached\n") && status.contains(&format!("\nPPid:\t{parent}\n"))
        })
}

#[test]
fn no_process_outlives_a_killed_run() {
    let mut command = bench(&["lockstep", "--contender", "memcached", "--bursts", "1000000"]);
    // A killed process does not clean up, so its files are in this folder.
    let folder = tempfile::tempdir().expect("a folder");
    command.stdout(Stdio::null()).env("TMPDIR", folder.path());
    let mut running = command.spawn().expect("the binary starts");
    let deadline = Instant::now() + Duration::from_secs(60);
    let child = loop {
        if let Some(child) = child_of(running.id()) {
            break child;
        }
        assert!(Instant::now() < deadline, "no memcached was started");
        thread::sleep(Duration::from_millis(20));
    };
    running.kill().expect("it runs");
    running.wait().expect("it was started here");
    while Path::new(&format!("/proc/{child}")).exists() {
        assert!(Instant::now() < deadline, "memcached {child} is left behind");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_comparison_writes_its_results() {
    let folder = tempfile::tempdir().expect("a folder");
    let results = folder.path().to_str().expect("text");
    let rows = ["--rows", "embedded-10x1,free", "--only", "memcached,haproxy"];
    let arguments = [
        &["compare", "--quick", "--rounds", "1", "--results", results],
        &rows[..],
    ]
    .concat();
    let (output, _) = run(&[&arguments[..], &["--binary", "haproxy=/bin/false"]].concat());
    assert!(output.status.success(), "{output:?}");
    let files: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(files.len(), 2, "{files:?}");
    let page = files
        .iter()
        .find(|file| file.extension().is_some_and(|extension| extension == "md"))
        .unwrap();
    let page = fs::read_to_string(page).unwrap();
    for words in ["10 × 1, 400 B", "memcached 1.", "| direct |", "false ended"] {
        assert!(page.contains(words), "'{words}' is not in\n{page}");
    }
}
