//! The line of progress that a run prints each second.

use std::{collections::BTreeMap, sync::mpsc::Receiver};

use super::{options::Options, report::Percentiles, tally::Tally, worker::Interval};

/// Adds up the counters of the threads.
pub(super) struct Progress<'a> {
    options: &'a Options,
    total: Tally,
    /// Seconds that some threads have reported and others have not.
    open: BTreeMap<u64, (usize, Tally)>,
}

impl<'a> Progress<'a> {
    pub(super) fn new(options: &'a Options) -> Self {
        Self {
            options,
            total: Tally::new(),
            open: BTreeMap::new(),
        }
    }

    /// Follows the run until the last thread ends; returns the sum.
    pub(super) fn follow(mut self, intervals: &Receiver<Interval>) -> Tally {
        for Interval { second, tally } in intervals {
            let (reported, sum) = self.open.entry(second).or_insert_with(|| (0, Tally::new()));
            sum.add(tally);
            *reported += 1;
            if *reported == self.options.threads
                && let Some((_, sum)) = self.open.remove(&second)
            {
                self.finish(second, sum);
            }
        }
        for (_, sum) in self.open.into_values() {
            self.total.add(sum);
        }
        self.total
    }

    fn finish(&mut self, second: u64, sum: Tally) {
        // The counters of the last moments do not cover a whole second.
        if !self.options.output.quiet && second < self.options.duration.as_secs() {
            let Percentiles {
                p50, p99, p999, max, ..
            } = Percentiles::of(&sum.all());
            eprintln!(
                "{:>4} s {:>9} replies/s  p50 {p50:.0} µs  p99 {p99:.0}  p99.9 {p999:.0}  max {max:.0}  misses {}  \
                 refused {}  lost {}  wrong {}",
                second + 1,
                sum.replies(),
                sum.misses,
                sum.refused,
                sum.lost,
                sum.wrong
            );
        }
        self.total.add(sum);
    }
}
