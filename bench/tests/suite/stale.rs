//! Stale reads, with real servers that return them and real servers that do not.

use std::{
    fs,
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::Value;

use super::{
    common::{Memcached, bench, free_port, run},
    relay::{Mishap, relay},
    rows::each_row,
};

/// Runs with these options, and returns the exit code and the report.
fn stale(more: &[&str]) -> (Option<i32>, Value) {
    let (output, report) = run(&[&["stale", "--duration=700ms", "--quiet", "--json=-"], more].concat());
    assert!(report.is_object(), "{output:?}");
    (output.status.code(), report)
}

fn number(report: &Value, name: &str) -> u64 {
    report[name]
        .as_u64()
        .unwrap_or_else(|| panic!("no {name} in {report}"))
}

fn assert_nothing_stale(code: Option<i32>, report: &Value) {
    assert_eq!(code, Some(0), "{report}");
    for nothing in ["stale_reads", "wrong"] {
        assert_eq!(number(report, nothing), 0, "{report}");
    }
    for something in ["acknowledged_writes", "hits"] {
        assert!(number(report, something) > 10, "{report}");
    }
}

#[test]
fn a_single_server_has_no_stale_reads() {
    let server = Memcached::start();
    let rows = [
        &["--pause=0s"][..],
        &["--keys=1", "--writers=1"],
        &["--value-size=20000", "--ttl=0s"],
        &["--connections=same"],
        &["--connections=pool", "--pool=3"],
    ];
    each_row(rows, |&shape| {
        let (code, report) = stale(&[&["--write", &server.address()], shape].concat());
        assert_nothing_stale(code, &report);
        for failure in [
            "misses",
            "refused_writes",
            "lost_writes",
            "refused_reads",
            "lost_reads",
        ] {
            assert_eq!(number(&report, failure), 0, "{shape:?}: {report}");
        }
        assert!(report.get("lost_acknowledged_writes").is_none(), "{report}");
    });
}

#[test]
fn reads_of_a_copy_without_writes_are_stale() {
    let (written, read) = (Memcached::start(), Memcached::start());
    let (code, report) = stale(&["--write", &written.address(), "--read", &read.address()]);
    assert_eq!(code, Some(1), "{report}");
    let count = number(&report, "stale_reads");
    assert!(count > 10, "{report}");
    assert_eq!(
        number(&report["stale_by_address"], &read.address()),
        count,
        "{report}"
    );
    let worst = &report["worst_stale_read"];
    assert_eq!(worst["version"], 1, "{report}");
    // The second version of a key was acknowledged right at the start.
    assert!(worst["age_seconds"].as_f64() > Some(0.2), "{report}");
    assert_eq!(report["stale_age_seconds"]["max"], worst["age_seconds"]);
}

#[test]
fn servers_written_together_are_fresh_and_others_are_stale() {
    let (one, two) = (Memcached::start(), Memcached::start());
    let both = format!("{},{}", one.address(), two.address());
    let (code, report) = stale(&["--write", &both, "--write-all"]);
    assert_nothing_stale(code, &report);
    let (code, report) = stale(&["--write", &both]);
    assert_eq!(code, Some(1), "{report}");
    for server in [one, two] {
        assert!(
            number(&report["stale_by_address"], &server.address()) > 0,
            "{report}"
        );
    }
}

#[test]
fn a_restarted_server_causes_failures_and_misses_but_no_stale_read() {
    let restart = || {
        let mut server = Memcached::start();
        let address = server.address();
        thread::scope(|scope| {
            let restarted = scope.spawn(|| {
                // Early, so that most of the run is left behind the restart however slow the machine is.
                server.wait_for_reads(50);
                server.stop();
                thread::sleep(Duration::from_millis(500));
                Memcached::try_on(server.port).ok()
            });
            let seen = stale(&["--write", &address, "--duration=4s"]);
            restarted.join().expect("it ends").map(|_| seen)
        })
    };
    // A port that nobody listens on for a while may be another program's by then.
    let restarted = (0..5).find_map(|_| restart());
    let (code, report) = restarted.expect("one of five ports is still free");
    assert_nothing_stale(code, &report);
    for something in ["misses", "lost_writes", "lost_reads"] {
        assert!(number(&report, something) > 0, "{something}: {report}");
    }
    assert!(report["longest_spell_seconds"].as_f64() > Some(0.4), "{report}");
    assert!(report["first_write_failure"].is_string(), "{report}");
}

#[test]
fn a_write_without_an_answer_is_never_counted_as_stale() {
    for mishap in [Mishap::Unanswered, Mishap::Dropped] {
        let server = Memcached::start();
        let address = relay(&server, mishap);
        let (code, report) = stale(&["--write", &address, "--read", &server.address(), "--keys=4"]);
        assert_nothing_stale(code, &report);
        assert!(number(&report, "lost_writes") > 0, "{mishap:?}: {report}");
    }
}

#[test]
fn a_late_write_that_replaces_a_newer_one_is_stale() {
    let server = Memcached::start();
    let address = relay(&server, Mishap::Late(Duration::from_millis(400)));
    // With a write every 20 ms, a late one is seen before the next has replaced it.
    let slow = [
        "--keys=1",
        "--writers=1",
        "--pause=20ms",
        "--timeout=100ms",
        "--duration=6s",
    ];
    let (code, report) = stale(&[&["--write", &address, "--read", &server.address()], &slow[..]].concat());
    assert_eq!(code, Some(1), "{report}");
    assert!(number(&report, "lost_writes") > 0, "{report}");
    assert_eq!(number(&report, "wrong"), 0, "{report}");
    let worst = &report["worst_stale_read"];
    assert!(worst["age_seconds"].as_f64() > Some(0.2), "{report}");
}

/// A twemproxy in front of a server, which ends with the test.
struct Twemproxy(Child, String);

impl Twemproxy {
    fn start(server: &Memcached, folder: &Path) -> Option<Self> {
        let program = Path::new("/usr/sbin/nutcracker");
        if !program.exists() {
            eprintln!("skipped: nutcracker is not installed");
            return None;
        }
        let address = format!("127.0.0.1:{}", free_port());
        let configuration = folder.join("nutcracker.yml");
        let text = format!(
            "pool:\n  listen: {address}\n  servers:\n    - {}:1\n",
            server.address()
        );
        fs::write(&configuration, text).expect("a file");
        let mut command = Command::new(program);
        command.arg("--conf-file").arg(&configuration);
        command.args([
            "--stats-addr",
            "127.0.0.1",
            "--stats-port",
            &free_port().to_string(),
        ]);
        let child = command.stderr(Stdio::null()).spawn().expect("it starts");
        let proxy = Self(child, address);
        while TcpStream::connect(&proxy.1).is_err() {
            thread::sleep(Duration::from_millis(10));
        }
        Some(proxy)
    }
}

impl Drop for Twemproxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn refused_writes_and_lost_writes_are_counted_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Memcached::start();
    let Some(proxy) = Twemproxy::start(&server, folder.path()) else {
        return;
    };
    let (code, report) = thread::scope(|scope| {
        scope.spawn(|| {
            server.wait_for_reads(500);
            server.stop();
        });
        stale(&["--write", &proxy.1, "--duration=1500ms"])
    });
    assert_nothing_stale(code, &report);
    assert!(number(&report, "refused_writes") > 0, "{report}");
    assert!(number(&report, "refused_reads") > 0, "{report}");
    // Writes were refused until the end of the run.
    assert!(report["longest_spell_seconds"].as_f64() > Some(0.5), "{report}");
}

#[test]
fn an_interrupted_run_reports() {
    let server = Memcached::start();
    let mut command = bench(&["stale", "--duration=1h", "--write", &server.address()]);
    let running = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // A signal would end the run before it handles signals. The first writes show that it does.
    while server.stat("cmd_set") < 200 {
        thread::sleep(Duration::from_millis(10));
    }
    let kill = Command::new("kill")
        .args(["-INT", &running.id().to_string()])
        .status();
    assert!(kill.expect("kill starts").success());
    let output = running.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("stale reads: 0"), "{text}");
}

#[test]
fn a_stale_run_with_bad_options_says_why() {
    let server = Memcached::start();
    let address = server.address();
    let rows = [
        (&["--write", "127.0.0.1:1"][..], "127.0.0.1:1"),
        (&["--write", "nowhere"], "not HOST:PORT"),
        (&["--write", &address, "--writers=9", "--keys=8"], "--writers"),
        (&["--write", &address, "--ttl=100ms"], "--ttl"),
        (&["--write", &address, "--prefix=a b"], "--prefix"),
        (&["--write", &address, "--pool=2"], "--connections pool"),
        (
            &["--write", &address, "--connections=same", "--readers=2"],
            "no --readers",
        ),
        (&["--write", &address, "--as=tables"], "--protocol mysql"),
        (&["--protocol=mysql-prepared", "--as=tables"], "--protocol mysql"),
        (
            &["--protocol=mysql", "--as=tables", "--value-size=2049"],
            "--value-size",
        ),
        (&["--protocol=mysql", "--prefix=a`b"], "no backquote"),
        (&["--write", &address, "--duration=0s"], "nothing was shown"),
        // With its key and head this value is too large for memcached.
        (&["--write", &address, "--value-size=1048576"], "object too large"),
    ];
    each_row(rows, |&(arguments, words)| {
        let (output, _) = run(&[&["stale", "--duration=200ms"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(words), "{arguments:?}: {said}");
    });
}
