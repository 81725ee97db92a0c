//! Lockstep: processor time per request that repeats on a noisy machine.
//!
//! ```text
//!  this process, one thread, SCHED_BATCH          the proxy, on the same processor, SCHED_BATCH, nice 10
//!  ───────────────────────────────────────        ─────────────────────────────────────────────
//!  every client writes its requests               (ready, but does not interrupt)
//!  sleeps until all have reached the servers ───▶ wakes once, sees the whole batch, forwards it
//!  the servers write all replies             ◀─── sleeps
//!  sleeps on the first client's reply        ───▶ wakes once, sees all replies, passes them on
//!  reads and judges every reply              ◀─── sleeps
//! ```
//!
//! The proxy runs at a low priority: SCHED_BATCH keeps a wake-up from interrupting, the priority keeps the
//! scheduler's clock from giving the proxy a turn while a thousand clients are still writing. Without it the
//! proxy saw six batches in place of two at 1,000 clients.
//!
//! Free-running figures swing with how many requests happen to be ready at each wake-up. Here that number is
//! chosen. What counts is the proxy's own time on the processor, so that a neighbour who delays a round does
//! not enter its figure. A neighbour who slows the processor itself (its caches, its other hyperthread, its
//! clock) does: hence many short bursts, of which a low quantile is taken, and all contenders in turn, burst
//! by burst, so that each state of the machine meets all of them.

mod backends;
mod clients;
mod options;
mod report;
mod rounds;
mod target;
mod trial;

pub(crate) use backends::{Backends, STUCK};
pub(crate) use options::{Case, Connections, Options, Shape, Subject};
pub(crate) use report::{Figures, Report};

use anyhow::{Result, ensure};

use crate::process::{become_batch_on, least_busy, raise_descriptor_limit};
use options::Settings;
use trial::Trial;

/// Runs `proxima-bench lockstep`.
pub(crate) fn run(options: &Options) -> Result<()> {
    let cases = options.cases()?;
    let cpu = options.settings.cpu.map_or_else(least_busy, Ok)?;
    become_batch_on(cpu)?;
    raise_descriptor_limit();
    let reports = measure(&cases, &options.settings, cpu)?;
    if options.json.as_deref() != Some(std::path::Path::new("-")) {
        reports.iter().for_each(Report::print);
    }
    if let Some(file) = &options.json {
        crate::output::write_json(file, &reports)?;
    }
    ensure!(
        reports.iter().any(|report| report.figures.is_some()),
        "nothing could be measured"
    );
    Ok(())
}

/// Measures every case, burst by burst in turn. If one fails, the others go on.
fn measure(cases: &[Case], settings: &Settings, cpu: usize) -> Result<Vec<Report>> {
    let directory = tempfile::Builder::new().prefix("proxima-bench-").tempdir()?;
    let mut trials: Vec<Trial<'_>> = Vec::with_capacity(cases.len());
    for (number, case) in cases.iter().enumerate() {
        let place = directory.path().join(number.to_string());
        std::fs::create_dir(&place)?;
        trials.push(Trial::start(case, settings, cpu, place));
    }
    for _ in 0..settings.bursts {
        trials.iter_mut().for_each(Trial::burst);
    }
    trials.iter_mut().for_each(|trial| trial.afterwards(settings));
    Ok(trials.into_iter().map(|trial| trial.report(cpu)).collect())
}
