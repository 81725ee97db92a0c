//! The load generator: many connections, an open or a closed loop, and every byte that is read compared.
//!
//! ```text
//!  options ─▶ keys, fill ─▶ one worker a thread ── a tally each second ──▶ progress line, report
//!                             │ pace: when requests are due (open loop)
//!                             └ connections: what was sent and not answered yet
//! ```

mod connection;
mod connection_state;
mod options;
mod pace;
mod progress;
mod report;
mod tally;
mod worker;

pub(crate) use options::Options;
pub(crate) use report::Report;

use std::{
    process::ExitCode,
    sync::mpsc::channel,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use serde::Serialize;

use crate::{
    fill::fill,
    process::raise_descriptor_limit,
    workload::{Keys, Operations},
};
use pace::Pace;
use progress::Progress;
use worker::Worker;

/// Runs `proxima-bench load`.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    options.check()?;
    raise_descriptor_limit();
    let keys = Keys::new(options.keys, options.key_size)?;
    if options.fill {
        for address in &options.address {
            fill(options.protocol, *address, &keys, options.value_size)?;
        }
    }
    if options.duration == Duration::ZERO {
        return Ok(ExitCode::SUCCESS);
    }
    let addresses: Vec<_> = options
        .address
        .iter()
        .copied()
        .cycle()
        .take(options.connections)
        .collect();
    let mut workers = Vec::with_capacity(options.threads);
    for thread in 0..options.threads {
        let share = options.connections * thread / options.threads
            ..options.connections * (thread + 1) / options.threads;
        let seed = options.seed.wrapping_add(thread as u64);
        let operations = Operations::new(options.keys, options.popularity, options.mix, seed)?;
        workers.push((
            share.len(),
            Worker::connect(options, &keys, operations, &addresses[share])?,
        ));
    }

    let (reports, intervals) = channel();
    let start = Instant::now();
    let total = thread::scope(|scope| {
        let threads: Vec<_> = workers
            .into_iter()
            .enumerate()
            .map(|(number, (connections, worker))| {
                let pace = options.rate.map(|rate| {
                    let share = rate * connections as f64 / options.connections as f64;
                    // The threads' requests fall between each other's.
                    Pace::new(
                        start + Duration::from_secs_f64(number as f64 / rate),
                        share,
                        connections,
                    )
                });
                let reports = reports.clone();
                scope.spawn(move || worker.run(start, pace, &reports))
            })
            .collect();
        drop(reports);
        let total = Progress::new(options).follow(&intervals);
        for thread in threads {
            thread
                .join()
                .map_err(|_| anyhow!("a thread of the load panicked"))??;
        }
        anyhow::Ok(total)
    })?;

    let report = Report::new(options, start.elapsed(), &total);
    let with_options = ReportWithOptions {
        options,
        report: &report,
    };
    options.output.write(&with_options, || report.print())?;
    let failed = total.wrong > 0 || (options.strict && total.refused + total.lost > 0);
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// The contents of the file: the report and the options.
#[derive(Serialize)]
struct ReportWithOptions<'a> {
    options: &'a Options,
    #[serde(flatten)]
    report: &'a Report,
}
