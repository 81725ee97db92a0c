//! Counts that clients may ask for, in the names of their protocols. Each worker tells the others its counts
//! now and then: a client must not see them fall because its next connection is served by another worker.

use std::{
    array,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use proxima_wire::memcache::Command;

use super::{memcache::ENDINGS, redis};
use crate::{metrics::Metrics, protocol::ProcessCounters};

/// memcached's names of counts that do not depend on the command.
const OTHERS: [&str; 3] = ["rejected_connections", "bytes_read", "bytes_written"];

/// The counts that memcached has names for come first.
const NAMED: usize = ENDINGS.len() + OTHERS.len();
/// Behind them come all requests, and the hits and misses of Redis' look-ups.
const COUNT: usize = NAMED + 3;

/// A count for each name.
type Counts = [u64; COUNT];

/// The counts in these metrics. memcached is the first protocol of a process, so its commands have their own
/// numbers in the metrics.
fn counts(metrics: &Metrics) -> Counts {
    let mut counts = [0; COUNT];
    for (count, (_, commands, outcomes)) in counts.iter_mut().zip(ENDINGS) {
        let ends = |command: &Command| -> u64 {
            let ended = |&outcome| metrics.replies.of(*command as usize, outcome);
            outcomes.iter().map(ended).sum()
        };
        *count = commands.iter().map(ends).sum();
    }
    let traffic = metrics.client_traffic;
    let others = [metrics.clients.over_limit, traffic.received, traffic.sent];
    counts[ENDINGS.len()..NAMED].copy_from_slice(&others);
    let [hits, misses] = redis::lookups(metrics);
    counts[NAMED..].copy_from_slice(&[metrics.requests.iter().sum(), hits, misses]);
    counts
}

/// The counts of all workers.
#[derive(Debug)]
pub(in crate::client) struct Tally {
    workers: Vec<[AtomicU64; COUNT]>,
    /// The sums of the counts at the last `stats reset`.
    begun: [AtomicU64; COUNT],
}

impl Tally {
    pub(in crate::client) fn new(workers: usize) -> Self {
        let zeros = || array::from_fn(|_| AtomicU64::new(0));
        Self {
            workers: std::iter::repeat_with(zeros).take(workers).collect(),
            begun: zeros(),
        }
    }

    /// Takes the counts of this worker.
    pub(in crate::client) fn tell(&self, worker: usize, metrics: &Metrics) {
        if let Some(told) = self.workers.get(worker) {
            let each = told.iter().zip(counts(metrics));
            each.for_each(|(told, count)| told.store(count, Relaxed));
        }
    }

    /// Fills in what is counted here, since the start of the process.
    pub(super) fn fill_in(&self, counters: &mut ProcessCounters) {
        let sums = self.sums();
        let others = &sums[ENDINGS.len()..];
        if let &[rejected, received, sent, requests, hits, misses] = others {
            *counters = ProcessCounters {
                rejected,
                received,
                sent,
                requests,
                hits,
                misses,
                ..*counters
            };
        }
    }

    fn sums(&self) -> Counts {
        let sum = |number: usize| self.workers.iter().map(|told| told[number].load(Relaxed)).sum();
        array::from_fn(sum)
    }

    /// Every name and its count since the last reset.
    pub(in crate::client) fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let names = ENDINGS.iter().map(|(name, ..)| *name).chain(OTHERS);
        let since = |(now, then): (u64, &AtomicU64)| now.saturating_sub(then.load(Relaxed));
        names.zip(self.sums().into_iter().zip(&self.begun).map(since))
    }

    /// Lets `stats` alone count from 0 again: metrics never fall.
    pub(in crate::client) fn reset(&self) {
        let each = self.begun.iter().zip(self.sums());
        each.for_each(|(begun, count)| begun.store(count, Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use proxima_wire::message::Outcome;

    use super::*;

    fn told(tally: &Tally, name: &str) -> u64 {
        tally.rows().find(|(row, _)| *row == name).unwrap().1
    }

    #[test]
    fn counts_of_all_workers_are_summed_and_begin_anew_after_a_reset() {
        let tally = Tally::new(2);
        let mut metrics = Metrics::default();
        for (command, outcome) in [
            (Command::Get, Outcome::Found),
            (Command::MetaGet, Outcome::NotFound),
            (Command::Cas, Outcome::Exists),
            (Command::Set, Outcome::Timeout),
        ] {
            metrics.replied(command as usize, outcome, 1, 0);
        }
        metrics.client_traffic.received = 7;
        tally.tell(0, &metrics);
        tally.tell(1, &metrics);
        for (name, count) in [
            ("cmd_get", 4),
            ("get_hits", 2),
            ("get_misses", 2),
            ("cmd_set", 2),
            ("cas_badval", 2),
            ("bytes_read", 14),
        ] {
            assert_eq!(told(&tally, name), count, "{name}");
        }
        let mut counters = ProcessCounters::default();
        tally.fill_in(&mut counters);
        assert_eq!((counters.received, counters.hits), (14, 0));
        tally.reset();
        assert_eq!(tally.rows().map(|(_, count)| count).sum::<u64>(), 0);
        metrics.replied(Command::Get as usize, Outcome::Found, 1, 0);
        tally.tell(1, &metrics);
        assert_eq!(told(&tally, "get_hits"), 1);
    }
}
