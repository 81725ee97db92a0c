//! Stale reads: whether what is read is older than what was acknowledged.
//!
//! ```text
//!  fill ─▶ writers ──sets──▶ [ whatever is measured ] ◀──gets── readers
//!             └─ what was acknowledged, when ─▶ ledger ◀─ judge ──┘
//!                                                  └─▶ audit, at the end: is it there, and once?
//! ```
//!
//! One thread a client, one request at a time: the order of a client's requests is the order of its code.

mod answer;
mod audit;
mod connection;
mod history;
mod ledger;
mod link;
mod memcached;
mod mysql;
mod options;
mod pools;
mod reader;
mod report;
mod rows;
mod session;
mod shown;
mod tables;
mod tally;
pub(crate) mod value;
mod writer;

pub(crate) use options::Options;

use std::{
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use parking_lot::Mutex;

use crate::{
    process::raise_descriptor_limit,
    session::{interrupted, own_prefix},
};
use audit::Audit;
use ledger::Ledger;
use options::Connections;
use pools::Pools;
use report::Report;
use tally::{Counts, Tally};

/// Pause after a failure, so that a server that refuses at once is not asked without end.
const AFTER_FAILURE: Duration = Duration::from_millis(10);

/// The shared state of a run's clients.
struct Run<'a> {
    options: &'a Options,
    keys: Vec<String>,
    ledger: Ledger,
    tally: Mutex<Tally>,
    end: Instant,
    interrupted: Arc<AtomicBool>,
    /// The connections that all clients share, if they do.
    shared: Option<Arc<Pools<'a>>>,
}

impl<'a> Run<'a> {
    /// The connections of one client.
    fn pools(&self) -> Arc<Pools<'a>> {
        let own = || Arc::new(Pools::new(self.options, 1));
        self.shared.clone().unwrap_or_else(own)
    }

    fn is_over(&self) -> bool {
        self.interrupted.load(Relaxed) || Instant::now() >= self.end
    }

    /// Sleeps between two requests of a client.
    fn pause(&self, failed: bool) {
        let wanted = self
            .options
            .pause
            .max(if failed { AFTER_FAILURE } else { Duration::ZERO });
        thread::sleep(wanted.min(self.end.saturating_duration_since(Instant::now())));
    }
}

/// Runs `proxima-bench stale`.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    options.check()?;
    raise_descriptor_limit();
    let prefix = own_prefix(&options.prefix);
    let keys: Vec<String> = (0..options.keys)
        .map(|number| format!("{prefix}{number}"))
        .collect();
    writer::fill(options, &keys)?;

    let interrupted = interrupted()?;
    let start = Instant::now();
    let run = Run {
        options,
        keys,
        ledger: Ledger::new(options.keys),
        tally: Mutex::new(Tally::new()),
        end: start
            .checked_add(options.duration)
            .context("--duration is too long")?,
        interrupted,
        shared: options.pool.map(|size| Arc::new(Pools::new(options, size))),
    };
    thread::scope(|scope| {
        for number in 0..options.writers {
            let run = &run;
            scope.spawn(move || match options.connections {
                Connections::Own | Connections::Pool => writer::run(run, number),
                Connections::Same => session::run(run, number),
            });
        }
        for number in 0..options.readers.unwrap_or(0) {
            let run = &run;
            scope.spawn(move || reader::run(run, number));
        }
        follow(&run, start);
    });

    let took = start.elapsed();
    let audit = options.protocol.is_mysql().then(|| Audit::of(&run));
    writer::clear(options, &prefix, &run.keys);
    let mut tally = run.tally.into_inner();
    tally.longest_spell = tally
        .longest_spell
        .max(run.ledger.failing_for().unwrap_or_default());
    let report = Report::new(options, took, &tally, &audit);
    options.output.write(&report, || report.print())?;
    let counts = &tally.counts;
    let differs = audit.as_ref().is_some_and(Audit::differs);
    if counts.stale_reads + counts.wrong + counts.foreign_replies > 0 || differs {
        return Ok(ExitCode::FAILURE);
    }
    ensure!(
        counts.acknowledged_writes > 0 && counts.hits > 0,
        "nothing was shown: {} writes were acknowledged, {} reads have found a value",
        counts.acknowledged_writes,
        counts.hits
    );
    ensure!(
        audit.is_none_or(|audit| audit.unread_keys < u64::from(options.keys)),
        "no key could be read at the end: whether acknowledged writes are lost is not known"
    );
    Ok(ExitCode::SUCCESS)
}

/// Prints a line each second until the run is over.
fn follow(run: &Run<'_>, start: Instant) {
    let mut before = Counts::default();
    for second in 1.. {
        let due = start + Duration::from_secs(second);
        while Instant::now() < due {
            if run.is_over() {
                return;
            }
            thread::sleep(Duration::from_millis(50).min(due.saturating_duration_since(Instant::now())));
        }
        let (now, worst) = {
            let tally = run.tally.lock();
            (tally.counts, tally.worst.as_ref().map(|worst| worst.age))
        };
        if !run.options.output.quiet {
            let worst = worst.map_or(String::new(), |age| format!(" (worst {age:.1?})"));
            eprintln!(
                "{second:>4} s {:>7} writes/s {:>7} reads/s  stale {}{worst}  misses {}  writes refused {}, lost {}  \
                 reads refused {}, lost {}  wrong {}",
                now.acknowledged_writes - before.acknowledged_writes,
                now.hits + now.misses - before.hits - before.misses,
                now.stale_reads,
                now.misses,
                now.refused_writes,
                now.lost_writes,
                now.refused_reads,
                now.lost_reads,
                now.wrong
            );
        }
        before = now;
    }
}
