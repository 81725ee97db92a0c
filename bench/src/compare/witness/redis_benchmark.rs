//! redis-benchmark: SET and GET of 100,000 keys, one or many at a time.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Test, WitnessReport, output};
use crate::compare::free::Arena;

/// Requests of one run.
const REQUESTS: &str = "100000";

/// Requests one at a time, and many.
pub(super) fn tests<'a>(program: PathBuf, arena: &'a Arena<'_>) -> Vec<Test<'a>> {
    let test = |pipeline: usize| {
        let program = program.clone();
        Test {
            requests: format!("pipeline {pipeline}, 400 B, four real servers"),
            ask: Box::new(move |port| say(&program, port, pipeline, arena)),
        }
    };
    [1, 16].map(test).into()
}

/// One run against a port of 127.0.0.1.
fn say(program: &Path, port: u16, pipeline: usize, arena: &Arena<'_>) -> Result<WitnessReport> {
    let (port, pipeline) = (port.to_string(), pipeline.to_string());
    let what = ["-p", &port, "-P", &pipeline, "-n", REQUESTS, "-r", "100000"];
    let how = ["-c", "50", "-d", "400", "-t", "set,get", "--csv"];
    let text = output(program, &[&what[..], &how].concat(), arena)?;
    read(&text).with_context(|| format!("redis-benchmark said: {}", text.trim()))
}

/// Reads the lines of `--csv`.
fn read(text: &str) -> Option<WitnessReport> {
    let rows = text.lines().map(|line| {
        line.split(',')
            .map(|cell| cell.trim_matches('"'))
            .collect::<Vec<_>>()
    });
    let mut rows = rows.skip_while(|row| row.first() != Some(&"test"));
    let head = rows.next()?;
    let rows: Vec<_> = rows.collect();
    let cell = |test: &str, name: &str| -> Option<f64> {
        let row = rows.iter().find(|row| row.first() == Some(&test))?;
        row.get(head.iter().position(|cell| *cell == name)?)?.parse().ok()
    };
    Some(WitnessReport {
        per_second: [cell("SET", "rps")?, cell("GET", "rps")?],
        p99_ms: [cell("SET", "p99_latency_ms")?, cell("GET", "p99_latency_ms")?],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_witness_is_read_by_the_names_of_its_columns() {
        let text = "WARNING: no config\n\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
                    \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\
                    \"SET\",\"1000.50\",\"1\",\"2\",\"3\",\"4\",\"5.5\",\"6\"\n\
                    \"GET\",\"2000\",\"1\",\"2\",\"3\",\"4\",\"0.7\",\"6\"\n";
        let said = WitnessReport {
            per_second: [1000.5, 2000.0],
            p99_ms: [5.5, 0.7],
        };
        assert_eq!(read(text), Some(said));
        assert_eq!(read("nonsense"), None);
    }
}
