//! The counters of the last minute, of which rates and quantiles are made.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use crate::metrics::{Latency, Metrics};

/// The windows for which quantiles are told, with their names.
pub(super) const WINDOWS: [(&str, Duration); 2] =
    [("10s", Duration::from_secs(10)), ("1m", Duration::from_secs(60))];

/// What the metrics had counted at one look.
pub(super) struct Counts {
    pub(super) at: Instant,
    /// All that is a sum of the process.
    pub(super) totals: Totals,
    /// By the number of the listener.
    pub(super) listeners: Vec<Latency>,
    /// Clients' errors by the number of the listener.
    pub(super) failed: Vec<u64>,
    /// By the number of the pool: at the servers, held for the pool's state, queued for a connection.
    pub(super) pools: [Vec<Latency>; 3],
    /// By the number of the member.
    pub(super) members: Vec<MemberCounts>,
}

/// Sums of the process.
#[derive(Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) requests: u64,
    pub(super) hits: u64,
    pub(super) misses: u64,
    pub(super) errors: u64,
    pub(super) received: u64,
    pub(super) sent: u64,
    pub(super) asked: u64,
    pub(super) accepted: u64,
    /// Processor time, in s.
    pub(super) cpu: f64,
}

/// Counts of one member.
#[derive(Clone, Copy, Default)]
pub(super) struct MemberCounts {
    pub(super) replies: u64,
    pub(super) errors: u64,
    pub(super) micros: u64,
}

impl Counts {
    pub(super) fn of(metrics: &Metrics, totals: Totals, at: Instant) -> Self {
        let members = metrics.members.iter().map(|member| MemberCounts {
            replies: member.outcomes.replies(),
            errors: member.outcomes.errors(),
            micros: member.micros,
        });
        Self {
            at,
            totals,
            listeners: metrics.latency.clone(),
            failed: metrics.listeners.iter().map(|listener| listener.failed).collect(),
            pools: [&metrics.pools, &metrics.held, &metrics.queued].map(Clone::clone),
            members: members.collect(),
        }
    }
}

/// The looks of the last minute, the newest last.
#[derive(Default)]
pub(super) struct Minute(VecDeque<Counts>);

impl Minute {
    pub(super) fn add(&mut self, counts: Counts) {
        let [.., (_, longest)] = WINDOWS;
        // One look that is as old as the longest window is needed, and nothing before it.
        while self
            .0
            .get(1)
            .is_some_and(|second| counts.at - second.at >= longest)
        {
            self.0.pop_front();
        }
        self.0.push_back(counts);
    }

    /// Forgets what is too old to be compared with anything.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The newest look, and the one before it.
    pub(super) fn last(&self) -> Option<(&Counts, Option<&Counts>)> {
        let mut looks = self.0.iter().rev();
        Some((looks.next()?, looks.next()))
    }

    /// The oldest look of this window. `None`: there is only the newest.
    pub(super) fn begin(&self, window: Duration) -> Option<&Counts> {
        let newest = self.0.back()?.at;
        let mut looks = self.0.iter().take(self.0.len() - 1);
        // Looks come a little late: half a second more belongs to the window.
        looks.find(|look| newest - look.at <= window + Duration::from_millis(500))
    }
}
