//! An outside witness, which shares nothing with this program, through every proxy: redis-benchmark, or
//! sysbench for MySQL.

mod redis_benchmark;
mod sysbench;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::{
    free::{Arena, DIRECT},
    options::{Entrant, Options},
};
use crate::{figures::Spread, process::find_program};

/// The figures of the witness with one kind of requests on its 50 connections.
#[derive(Serialize, Deserialize)]
pub(super) struct Witness {
    /// The name of its program.
    pub(super) program: String,
    /// The requests.
    pub(super) requests: String,
    pub(super) entries: Vec<ContenderRuns>,
}

/// The runs through one contender.
#[derive(Serialize, Deserialize)]
pub(super) struct ContenderRuns {
    pub(super) label: String,
    pub(super) runs: Vec<WitnessReport>,
    pub(super) failure: Option<String>,
}

/// The witness' results of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct WitnessReport {
    /// Requests per second: writes, reads.
    pub(super) per_second: [f64; 2],
    /// The 99 % quantile of latencies in milliseconds: of writes, of reads.
    pub(super) p99_ms: [f64; 2],
}

/// One kind of requests: what they are, and how a port of 127.0.0.1 is asked them.
struct Test<'a> {
    requests: String,
    ask: Box<dyn Fn(u16) -> Result<WitnessReport> + 'a>,
}

/// Runs the witness directly to a server and through all contenders in turn, in several rounds. `found` gets
/// each result as it is made.
pub(super) fn measure(
    arena: &Arena<'_>,
    field: &[Entrant],
    options: &Options,
    mut found: impl FnMut(Witness) -> Result<()>,
) -> Result<()> {
    let name = if options.protocol.is_mysql() {
        "sysbench"
    } else {
        "redis-benchmark"
    };
    let Some(program) = find_program(name) else {
        eprintln!("no {name}: no outside witness");
        return Ok(());
    };
    let tests = match options.protocol.is_mysql() {
        true => sysbench::tests(program, arena)?,
        false => redis_benchmark::tests(program, arena),
    };
    let present = field.iter().filter(|entrant| !entrant.contender.is_server());
    let present: Vec<_> = present
        .filter_map(|entrant| Some((entrant.contender, entrant.program.as_ref().ok()?)))
        .collect();
    for Test { requests, ask } in tests {
        eprintln!("{name}, {requests}");
        let labels = std::iter::once(DIRECT).chain(present.iter().map(|(contender, _)| contender.name()));
        let mut entries: Vec<ContenderRuns> = labels
            .map(|label| ContenderRuns {
                label: label.into(),
                runs: Vec::new(),
                failure: None,
            })
            .collect();
        for _ in 0..options.rounds() {
            for (number, entry) in entries.iter_mut().enumerate() {
                let said = match number.checked_sub(1).map(|number| present[number]) {
                    None => ask(arena.ports[0]),
                    Some((contender, program)) => arena.behind(contender, program, &ask),
                };
                match said {
                    Ok(said) => entry.runs.push(said),
                    Err(error) => _ = entry.failure.get_or_insert(format!("{error:#}")),
                }
            }
        }
        found(Witness {
            program: name.into(),
            requests,
            entries,
        })?;
    }
    Ok(())
}

/// Runs the witness with these arguments, on the processors of the others, and returns its output.
fn output(program: &Path, arguments: &[&str], arena: &Arena<'_>) -> Result<String> {
    let prefix = arena.processor_sets.others.prefix();
    let mut words = prefix.into_iter().map(PathBuf::from).chain([program.to_owned()]);
    let mut command = Command::new(words.next().context("no program")?);
    let output = command
        .args(words)
        .args(arguments)
        .output()
        .with_context(|| format!("{} cannot be started", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{}: {}", program.display(), text.trim());
    Ok(text)
}

impl ContenderRuns {
    /// The spread of one figure over the runs.
    pub(super) fn spread(&self, figure: impl Fn(&WitnessReport) -> f64) -> Option<Spread> {
        Spread::of(self.runs.iter().map(figure))
    }
}
