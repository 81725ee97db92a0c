//! Hostile clients: what those of a server that behave well notice of those that do not.
//!
//! ```text
//!  attackers ──slow, endless, senseless──▶ ┌───────────────────┐
//!                                          │ what is attacked  │
//!  well-behaved clients ─────requests────▶ │                   │
//!        ▲  right? in time?                └───────────────────┘
//!        └──────replies─────────────────────────┘
//!  noise: how long the machine itself stood still meanwhile
//! ```
//!
//! One thread a connection, so that the order of a client's requests is the order of its code.

mod attack;
mod bait;
mod client;
mod held;
mod newcomer;
mod noise;
mod options;
mod reply;
mod report;
mod round;
mod score;

pub(crate) use options::Options;

use std::{
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Instant, UNIX_EPOCH},
};

use anyhow::{Result, ensure};
use signal_hook::{consts::SIGINT, flag};

use crate::{output::write_json, process::raise_descriptor_limit};
use report::Report;

/// Runs `proxima-bench hostile`.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    options.check()?;
    raise_descriptor_limit();
    bait::lay(options.address)?;

    let interrupted = Arc::new(AtomicBool::new(false));
    // The second Ctrl-C ends the process as it would without this: the order of the two lines matters.
    flag::register_conditional_default(SIGINT, Arc::clone(&interrupted))?;
    flag::register(SIGINT, Arc::clone(&interrupted))?;
    // Values of an earlier run must not be met.
    let run_name = UNIX_EPOCH.elapsed().map_or(0, |age| age.as_nanos()) as u64;
    let start = Instant::now();
    let mut rounds = Vec::new();
    for (number, attacks) in options.rounds().into_iter().enumerate() {
        if interrupted.load(Relaxed) {
            break;
        }
        let keys = format!("{}{run_name:x}:{number}", options.prefix);
        let round = round::run(options, &attacks, &keys, &interrupted)?;
        if !options.quiet {
            eprintln!("{}", round.summary());
        }
        rounds.push(round);
    }

    let report = Report::new(options, start.elapsed(), rounds);
    if let Some(file) = &options.json {
        write_json(file, &report)?;
    }
    if options.json.as_ref().is_none_or(|file| file.as_os_str() != "-") {
        report.print();
    }
    if report.has_failed() {
        return Ok(ExitCode::FAILURE);
    }
    ensure!(
        report.has_shown_something(),
        "nothing was shown: hardly a well-behaved client got a value that it had set"
    );
    Ok(ExitCode::SUCCESS)
}
