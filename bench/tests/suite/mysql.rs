//! MySQL: load and stale reads against real servers, lockstep through proxies.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use super::{
    common::{bench, free_port, run},
    rows::each_row,
};

/// The account of the clients, and the value of one key, which has its length and the key but another byte.
const SQL: &str = "CREATE DATABASE proxima_bench;\n\
    CREATE USER app IDENTIFIED BY 'secret';\n\
    GRANT ALL ON proxima_bench.* TO app;\n\
    CREATE TABLE proxima_bench.bench (k VARBINARY(250) PRIMARY KEY, v LONGBLOB NOT NULL);\n\
    INSERT INTO proxima_bench.bench VALUES ('0:proxim', '0:proximxxxxxxxxxxxx');\n";

/// A MariaDB that ends with the test.
struct MariaDb {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl MariaDb {
    /// `None`, after words about it: it is not installed.
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| folder.path().join(name).display().to_string();
        fs::write(place("sql"), SQL).expect("it can be written");
        let datadir = format!("--datadir={}", place("data"));
        // Servers that start at the same time remove each other's files in a folder that they share.
        let tmpdir = format!("--tmpdir={}", folder.path().display());
        let mut common = vec!["--no-defaults", &datadir, &tmpdir];
        if rustix::process::geteuid().is_root() {
            common.push("--user=root");
        }
        let made = Command::new("mariadb-install-db")
            .args(&common)
            .arg("--skip-test-db")
            .output();
        let Ok(made) = made else {
            eprintln!("skipped: mariadb-server is not installed");
            return None;
        };
        assert!(made.status.success(), "{made:?}");
        let port = free_port();
        let child = Command::new("mariadbd")
            .args(&common)
            .arg("--bind-address=127.0.0.1")
            .args([format!("--port={port}"), format!("--socket={}", place("socket"))])
            .args([format!("--init-file={}", place("sql"))])
            .args([
                "--innodb-buffer-pool-size=16M",
                "--innodb-flush-log-at-trx-commit=0",
            ])
            .stderr(Stdio::null())
            .spawn()
            .expect("it is where mariadb-install-db is");
        let mut server = Self {
            child,
            port,
            _folder: folder,
        };
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = server.child.try_wait().expect("it can be asked");
            assert!(ended.is_none(), "mariadbd on port {port}: {ended:?}");
            thread::sleep(Duration::from_millis(10));
        }
        Some(server)
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn load(&self, more: &[&str]) -> (std::process::Output, serde_json::Value) {
        let address = self.address();
        let words = [
            "load",
            "--address",
            &address,
            "--connections=8",
            "--quiet",
            "--json=-",
        ];
        run(&[&words[..], &["--duration=500ms"], more].concat())
    }

    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        self.stop();
    }
}

#[test]
fn rows_that_mariadb_was_filled_with_are_read_back_and_a_wrong_byte_is_an_error() {
    let Some(server) = MariaDb::start() else { return };
    let forms = [
        &["--protocol=mysql", "--fill"][..],
        &["--protocol=mysql", "--threads=3", "--rate=500"],
        &["--protocol=mysql-prepared"],
        &["--protocol=mysql", "--reconnect"],
        &["--protocol=mysql-prepared", "--reconnect"],
    ];
    each_row(forms, |&form| {
        let (output, report) = server.load(&[&["--keys=200"], form].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(report["hits"].as_u64() > Some(0), "{report}");
        assert!(report["stored"].as_u64() > Some(0), "{report}");
        for nothing in ["misses", "wrong", "refused", "lost"] {
            assert_eq!(report[nothing], 0, "{report}");
        }
    });
    let one_key = ["--keys=1", "--key-size=8", "--value-size=20", "--mix=0:1"];
    for protocol in ["--protocol=mysql", "--protocol=mysql-prepared"] {
        let (output, report) = server.load(&[&one_key[..], &[protocol]].concat());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(report["wrong"].as_u64() > Some(0), "{report}");
        let (_, report) = server.load(&["--keys=1", "--key-size=9", "--mix=0:1", protocol]);
        assert_eq!(
            (&report["hits"], &report["misses"]),
            (&0.into(), &report["replies"])
        );
    }
}

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

/// Runs `stale` with these options, and returns its output and the report.
fn stale(more: &[&str]) -> (std::process::Output, serde_json::Value) {
    let start = [
        "stale",
        "--protocol=mysql",
        "--keys=20",
        "--duration=500ms",
        "--quiet",
        "--json=-",
    ];
    run(&[&start[..], more].concat())
}

#[test]
fn a_single_mariadb_is_fresh_and_loses_nothing_whatever_the_connections_and_statements() {
    let Some(server) = MariaDb::start() else { return };
    let address = server.address();
    let rows = [
        &["--pause=0s"][..],
        &["--connections=same", "--value-size=20000"],
        &["--connections=pool", "--pool=3"],
        &["--protocol=mysql-prepared"],
        &["--protocol=mysql-prepared", "--connections=same"],
        &[
            "--protocol=mysql-prepared",
            "--connections=pool",
            "--value-size=300000",
        ],
        &["--as=tables", "--value-size=2048"],
        &["--as=tables", "--connections=same"],
        &["--as=tables", "--connections=pool"],
    ];
    each_row(rows, |&shape| {
        let (output, report) = stale(&[&["--write", &address], shape].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        for nothing in [
            "stale_reads",
            "stale_share",
            "backward_reads",
            "foreign_replies",
            "lost_acknowledged_writes",
            "unread_keys",
            "misses",
            "refused_writes",
            "lost_writes",
            "refused_reads",
            "lost_reads",
            "wrong",
        ] {
            assert_eq!(report[nothing].as_f64(), Some(0.0), "{nothing}: {report}");
        }
        let is_counted = !shape.contains(&"--as=tables");
        assert_eq!(report["writes_applied_twice"].as_u64(), is_counted.then_some(0));
        assert!(report["hits"].as_u64() > Some(10), "{report}");
    });
}

#[test]
fn reads_of_another_mariadb_than_is_written_to_are_stale() {
    let (Some(written), Some(read)) = (MariaDb::start(), MariaDb::start()) else {
        return;
    };
    let (written, read) = (written.address(), read.address());
    // Only where it is written to is the table made by the run.
    assert_eq!(stale(&["--write", &read]).0.status.code(), Some(0));
    for place in ["rows", "tables"] {
        let (output, report) = stale(&["--write", &written, "--read", &read, "--as", place]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(report["stale_reads"].as_u64() > Some(10), "{report}");
        assert!(report["stale_share"].as_f64() > Some(0.5), "{report}");
        assert!(report["lost_acknowledged_writes"].as_u64() > Some(10), "{report}");
        assert_eq!(report["unread_keys"], 0, "{report}");
        let words = report["first_difference"].as_str().expect("words");
        assert!(words.starts_with(&read), "{words}");
    }
}

#[test]
fn a_server_that_is_gone_at_the_end_leaves_its_keys_unread_and_nothing_shown() {
    let Some(mut server) = MariaDb::start() else {
        return;
    };
    let address = server.address();
    let words = [
        "stale",
        "--protocol=mysql",
        "--keys=20",
        "--duration=1h",
        "--json=-",
    ];
    let mut command = bench(&[&words[..], &["--write", &address]].concat());
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = piped.spawn().expect("the binary starts");
    let mut said = BufReader::new(running.stderr.take().expect("it is piped")).lines();
    // A line of progress with some reads and writes.
    let is_under_way = |line: &str| !line.contains(" 0 writes/s") && !line.contains(" 0 reads/s");
    assert!(said.any(|line| is_under_way(&line.expect("text"))));
    server.stop();
    let kill = Command::new("kill")
        .args(["-INT", &running.id().to_string()])
        .status();
    assert!(kill.expect("kill starts").success());
    let output = running.wait_with_output().expect("it ends");
    // A check that could check nothing is no success.
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["unread_keys"], 20, "{report}");
    assert_eq!(report["lost_acknowledged_writes"], 0, "{report}");
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
        &[
            "--protocol=mysql",
            "--clients=4",
            "--transaction",
            "--keys-a-request=3",
            "--galera",
        ],
        &[
            "--protocol=mysql-prepared",
            "--clients=4",
            "--transaction",
            "--connections=fin",
        ],
        &["--protocol=mysql", "--clients=5", "--value-size=1000"],
        &["--protocol=mysql", "--clients=10", "--tls=1.3"],
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

/// `--binary` for the MySQL Router that `scripts/prepare.sh` unpacks, or else the one of this system. `None`,
/// after words about it: there is none.
fn mysqlrouter() -> Option<String> {
    const UNPACKED: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../target/servers/mysqlrouter97/root/usr/bin/mysqlrouter"
    );
    let places = [UNPACKED, "/usr/bin/mysqlrouter"].map(PathBuf::from);
    let found = places.into_iter().find(|place| place.exists());
    if found.is_none() {
        eprintln!("skipped: MySQL Router is not here; wire/commands/databases.py unpacks it");
    }
    found.map(|place| format!("--binary=mysqlrouter={}", place.display()))
}

#[test]
fn every_form_of_statement_is_measured_through_mysql_router() {
    let Some(binary) = mysqlrouter() else { return };
    let forms = [
        &["--protocol=mysql", "--clients=10", "--mix=1:1"][..],
        &["--protocol=mysql-prepared", "--clients=10", "--mix=1:1"],
        &["--protocol=mysql", "--clients=600"],
        &["--protocol=mysql", "--clients=5", "--value-size=30000"],
        &[
            "--protocol=mysql",
            "--clients=4",
            "--transaction",
            "--keys-a-request=3",
        ],
        &["--protocol=mysql", "--clients=4", "--connections=fin"],
        &["--protocol=mysql-prepared", "--clients=4", "--connections=rst"],
    ];
    each_row(forms, |&form| {
        _ = lockstep(&[&["--contender=mysqlrouter", &binary], form].concat());
    });
}

#[test]
fn a_comparison_measures_a_mariadb_behind_mysql_router() {
    let Some(binary) = mysqlrouter() else { return };
    if Command::new("mariadb-install-db").arg("--help").output().is_err() {
        eprintln!("skipped: mariadb-server is not installed");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let results = folder.path().to_str().expect("text");
    let (output, _) = run(&[
        "compare",
        "--protocol=mysql",
        "--quick",
        "--rounds=1",
        "--rows=free",
        "--only=mysqlrouter",
        &binary,
        "--results",
        results,
    ]);
    assert!(output.status.success(), "{output:?}");
    let files = fs::read_dir(results).expect("results");
    let json = files
        .map(|file| file.expect("a file").path())
        .find(|file| file.extension().is_some_and(|kind| kind == "json"));
    let json = fs::read(json.expect("a report")).expect("it can be read");
    let results: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let findings = results["free"].as_array().expect("free runs");
    assert!(!findings.is_empty(), "{results}");
    for finding in findings {
        let entries = finding["entries"].as_array().expect("entries");
        let router = entries.iter().find(|entry| entry["label"] == "mysqlrouter");
        let router = router.expect("it took part");
        assert!(router["failure"].is_null(), "{router}");
        let report = &router["runs"][0]["report"];
        assert!(report["hits"].as_u64() > Some(0), "{report}");
        for nothing in ["misses", "wrong", "refused", "lost"] {
            assert_eq!(report[nothing], 0, "{report}");
        }
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
