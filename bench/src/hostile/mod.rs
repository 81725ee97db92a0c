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
//! Protocols share this; what is Redis' alone is in `attack/redis.rs` and `redis_reply.rs`.
//!
//! One thread a connection, so that the order of a client's requests is the order of its code.

mod attack;
mod bait;
mod client;
mod held;
mod newcomer;
mod noise;
mod options;
mod redis_reply;
mod reply;
mod report;
mod round;
mod score;

pub(crate) use options::Options;

use std::{process::ExitCode, sync::atomic::Ordering::Relaxed, time::Instant};

use anyhow::{Result, ensure};

use crate::{
    process::raise_descriptor_limit,
    session::{interrupted, own_prefix},
};
use report::Report;

/// Runs `proxima-bench hostile`.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    options.check()?;
    raise_descriptor_limit();
    bait::lay(options.address, options.protocol)?;

    let interrupted = interrupted()?;
    let prefix = own_prefix(&options.prefix);
    let start = Instant::now();
    let mut rounds: Vec<report::Round> = Vec::new();
    for (number, attacks) in options.rounds().into_iter().enumerate() {
        if interrupted.load(Relaxed) {
            break;
        }
        let keys = format!("{prefix}{number}");
        let mut round = round::run(options, &attacks, &keys, &interrupted)?;
        if let (Some(most), Some(quiet)) = (options.most_delay, rounds.first()) {
            round.compare(quiet, most);
        }
        if !options.output.quiet {
            eprintln!("{}", round.summary());
        }
        rounds.push(round);
    }

    let report = Report::new(options, start.elapsed(), rounds);
    options.output.write(&report, || report.print())?;
    if report.has_failed() {
        return Ok(ExitCode::FAILURE);
    }
    ensure!(
        report.has_shown_something(),
        "nothing was shown: hardly a well-behaved client got a value that it had set"
    );
    Ok(ExitCode::SUCCESS)
}
