//! An outside witness: redis-benchmark, which shares nothing with this program, through every proxy.

use std::{path::Path, process::Command};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::{
    free::{Arena, DIRECT},
    options::{Entrant, Options},
};
use crate::{figures::Spread, process::find_program};

/// Requests of one run.
const REQUESTS: &str = "100000";

/// The figures of the witness with so many requests at a time on each of its 50 connections.
#[derive(Serialize, Deserialize)]
pub(super) struct Witness {
    pub(super) pipeline: usize,
    pub(super) entries: Vec<Heard>,
}

/// The runs through one contender.
#[derive(Serialize, Deserialize)]
pub(super) struct Heard {
    pub(super) label: String,
    pub(super) runs: Vec<Said>,
    pub(super) failure: Option<String>,
}

/// What the witness says of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Said {
    /// Requests per second: SET, GET.
    pub(super) per_second: [f64; 2],
    /// The 99 % quantile of latencies in milliseconds: SET, GET.
    pub(super) p99_ms: [f64; 2],
}

/// Runs the witness directly to a server and through all contenders in turn, in several rounds. `found` gets
/// each result as it is made.
pub(super) fn measure(
    arena: &Arena<'_>,
    field: &[Entrant],
    options: &Options,
    mut found: impl FnMut(Witness) -> Result<()>,
) -> Result<()> {
    let Some(program) = find_program("redis-benchmark") else {
        eprintln!("no redis-benchmark: no outside witness");
        return Ok(());
    };
    let present = field.iter().filter(|entrant| !entrant.contender.is_server());
    let present: Vec<_> = present
        .filter_map(|entrant| Some((entrant.contender, entrant.program.as_ref().ok()?)))
        .collect();
    for pipeline in [1, 16] {
        eprintln!("redis-benchmark, pipeline {pipeline}");
        let ask = |port: u16| say(&program, port, pipeline, arena);
        let labels = std::iter::once(DIRECT).chain(present.iter().map(|(contender, _)| contender.name()));
        let mut entries: Vec<Heard> = labels
            .map(|label| Heard {
                label: label.into(),
                runs: Vec::new(),
                failure: None,
            })
            .collect();
        for _ in 0..options.rounds() {
            for (number, entry) in entries.iter_mut().enumerate() {
                let said = match number.checked_sub(1).map(|number| present[number]) {
                    None => ask(arena.ports[0]),
                    Some((contender, program)) => arena.behind(contender, program, ask),
                };
                match said {
                    Ok(said) => entry.runs.push(said),
                    Err(error) => _ = entry.failure.get_or_insert(format!("{error:#}")),
                }
            }
        }
        found(Witness { pipeline, entries })?;
    }
    Ok(())
}

/// One run against a port of 127.0.0.1.
fn say(program: &Path, port: u16, pipeline: usize, arena: &Arena<'_>) -> Result<Said> {
    let prefix = arena.places.others.prefix();
    let mut words = prefix.iter().map(String::as_str).map(std::ffi::OsString::from);
    let first = words.next();
    let mut command = Command::new(first.clone().unwrap_or_else(|| program.into()));
    command.args(words);
    if first.is_some() {
        command.arg(program);
    }
    let (port, pipeline) = (port.to_string(), pipeline.to_string());
    let output = command
        .args(["-p", &port, "-P", &pipeline, "-n", REQUESTS, "-r", "100000"])
        .args(["-c", "50", "-d", "400", "-t", "set,get", "--csv"])
        .output()
        .context("redis-benchmark cannot be started")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "redis-benchmark: {}", text.trim());
    read(&text).with_context(|| format!("redis-benchmark said: {}", text.trim()))
}

/// Reads the lines of `--csv`.
fn read(text: &str) -> Option<Said> {
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
    Some(Said {
        per_second: [cell("SET", "rps")?, cell("GET", "rps")?],
        p99_ms: [cell("SET", "p99_latency_ms")?, cell("GET", "p99_latency_ms")?],
    })
}

impl Heard {
    /// The spread of one figure over the runs.
    pub(super) fn spread(&self, figure: impl Fn(&Said) -> f64) -> Option<Spread> {
        Spread::of(self.runs.iter().map(figure))
    }
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
        let said = Said {
            per_second: [1000.5, 2000.0],
            p99_ms: [5.5, 0.7],
        };
        assert_eq!(read(text), Some(said));
        assert_eq!(read("nonsense"), None);
    }
}
