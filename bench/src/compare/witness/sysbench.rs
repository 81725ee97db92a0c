//! sysbench: updates of a row by an index, and reads of a row, each prepared once for a connection.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Test, WitnessReport, output};
use crate::{
    compare::free::Arena,
    mysql::account::{PASSWORD, SCHEMA, USER},
};

/// Rows of the table.
const ROWS: &str = "--table-size=10000";

/// The scripts that write and that read.
const SCRIPTS: [&str; 2] = ["oltp_update_index", "oltp_point_select"];

/// Makes the table at each server of the arena, and returns the only test.
pub(super) fn tests<'a>(program: PathBuf, arena: &'a Arena<'_>) -> Result<Vec<Test<'a>>> {
    for port in arena.ports {
        run(&program, SCRIPTS[0], "prepare", *port, arena)?;
    }
    Ok(vec![Test {
        requests: format!("{}, a real server", SCRIPTS.join(" and ")),
        ask: Box::new(move |port| {
            let mut said = WitnessReport {
                per_second: [0.0; 2],
                p99_ms: [0.0; 2],
            };
            for (place, script) in SCRIPTS.into_iter().enumerate() {
                let text = run(&program, script, "run", port, arena)?;
                let read = read(&text).with_context(|| format!("sysbench said: {}", text.trim()))?;
                (said.per_second[place], said.p99_ms[place]) = read;
            }
            Ok(said)
        }),
    }])
}

/// Lets a script do this at a port of 127.0.0.1.
fn run(program: &Path, script: &str, verb: &str, port: u16, arena: &Arena<'_>) -> Result<String> {
    let port = format!("--mysql-port={port}");
    let account = [
        format!("--mysql-user={USER}"),
        format!("--mysql-password={PASSWORD}"),
        format!("--mysql-db={SCHEMA}"),
    ];
    let time = format!("--time={}", arena.options.run().as_secs());
    let mut words = vec![script, "--mysql-host=127.0.0.1", &port, ROWS, "--tables=1"];
    words.extend(account.iter().map(String::as_str));
    words.extend(["--threads=50", "--percentile=99", &time, verb]);
    output(program, &words, arena)
}

/// Reads queries a second, and the 99 % quantile of their latencies.
fn read(text: &str) -> Option<(f64, f64)> {
    let value = |name: &str| text.lines().find_map(|line| line.trim().strip_prefix(name));
    let (_, rate) = value("queries:")?.split_once('(')?;
    let rate = rate.split(' ').next()?.parse().ok()?;
    Some((rate, value("99th percentile:")?.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn the_rate_is_that_of_queries_and_the_latency_the_99_percent_quantile() {
        let text = "    transactions:                        42282  (999.84 per sec.)\n    \
                    queries:                             42282  (42155.84 per sec.)\n\
                    Latency (ms):\n         avg:                                    0.24\n         \
                    99th percentile:                        0.77\n";
        assert_eq!(read(text), Some((42155.84, 0.77)));
        assert_eq!(read("FATAL: nonsense"), None);
    }
}
