//! Counting what writers and readers have met.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use hdrhistogram::Histogram;
use serde::Serialize;

use super::answer::Failure;

/// Requests by their outcome.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Counts {
    pub(super) acknowledged_writes: u64,
    /// Answered with an error.
    pub(super) refused_writes: u64,
    /// Not answered.
    pub(super) lost_writes: u64,
    /// Reads that brought a value, stale ones included.
    pub(super) hits: u64,
    pub(super) misses: u64,
    pub(super) refused_reads: u64,
    pub(super) lost_reads: u64,
    /// Reads that brought a version older than they may.
    pub(super) stale_reads: u64,
    /// Reads that brought an older version than their connection had read or written before.
    pub(super) backward_reads: u64,
    /// Replies and values that no server sends.
    pub(super) wrong: u64,
    /// Replies to reads of other clients.
    pub(super) foreign_replies: u64,
}

/// A stale read.
#[derive(Clone, Debug, Serialize)]
pub(super) struct StaleRead {
    pub(super) key: String,
    pub(super) address: SocketAddr,
    pub(super) version: u64,
    /// The version that was acknowledged last when the read began.
    pub(super) acknowledged_version: u64,
    /// How long before the read a newer version was acknowledged.
    #[serde(rename = "age_seconds", serialize_with = "crate::output::as_seconds")]
    pub(super) age: Duration,
}

/// The whole run's.
pub(super) struct Tally {
    pub(super) counts: Counts,
    /// Ages of stale reads, microseconds.
    pub(super) ages: Histogram<u64>,
    /// The oldest of them.
    pub(super) worst: Option<StaleRead>,
    /// Stale reads by where they were read.
    pub(super) stale_at: BTreeMap<SocketAddr, u64>,
    /// The longest time in which writes to a key failed.
    pub(super) longest_spell: Duration,
    /// The first of each kind of failure, in words.
    pub(super) first_write_failure: Option<String>,
    pub(super) first_read_failure: Option<String>,
    pub(super) first_wrong: Option<String>,
    pub(super) first_foreign_reply: Option<String>,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            counts: Counts::default(),
            ages: Histogram::new(3).expect("3 digits are among those the crate allows"),
            worst: None,
            stale_at: BTreeMap::new(),
            longest_spell: Duration::ZERO,
            first_write_failure: None,
            first_read_failure: None,
            first_wrong: None,
            first_foreign_reply: None,
        }
    }

    /// A write was acknowledged; before it, writes to its key had failed for `spell`.
    pub(super) fn acknowledged(&mut self, spell: Option<Duration>) {
        self.counts.acknowledged_writes += 1;
        self.longest_spell = self.longest_spell.max(spell.unwrap_or_default());
    }

    /// A write failed at `address`.
    pub(super) fn write_failed(&mut self, address: SocketAddr, failure: Failure) {
        match failure {
            Failure::Refused(words) => {
                self.counts.refused_writes += 1;
                keep(&mut self.first_write_failure, address, &words);
            }
            Failure::Lost(words) => {
                self.counts.lost_writes += 1;
                keep(&mut self.first_write_failure, address, &words);
            }
            Failure::Wrong(words) => self.wrong(address, &words),
            Failure::Foreign(words) => self.foreign(address, &words),
        }
    }

    /// A read failed at `address`.
    pub(super) fn read_failed(&mut self, address: SocketAddr, failure: Failure) {
        match failure {
            Failure::Refused(words) => {
                self.counts.refused_reads += 1;
                keep(&mut self.first_read_failure, address, &words);
            }
            Failure::Lost(words) => {
                self.counts.lost_reads += 1;
                keep(&mut self.first_read_failure, address, &words);
            }
            Failure::Wrong(words) => self.wrong(address, &words),
            Failure::Foreign(words) => self.foreign(address, &words),
        }
    }

    /// Bytes that no server sends.
    fn wrong(&mut self, address: SocketAddr, words: &str) {
        self.counts.wrong += 1;
        keep(&mut self.first_wrong, address, words);
    }

    /// The reply to another client's read.
    fn foreign(&mut self, address: SocketAddr, words: &str) {
        self.counts.foreign_replies += 1;
        keep(&mut self.first_foreign_reply, address, words);
    }

    /// A read was stale.
    pub(super) fn stale(&mut self, read: StaleRead) {
        self.counts.stale_reads += 1;
        *self.stale_at.entry(read.address).or_default() += 1;
        // Cannot fail: the histogram grows to hold its values.
        let _ = self.ages.record(read.age.as_micros() as u64);
        if self.worst.as_ref().is_none_or(|worst| worst.age < read.age) {
            self.worst = Some(read);
        }
    }
}

fn keep(first: &mut Option<String>, address: SocketAddr, words: &str) {
    first.get_or_insert_with(|| format!("{address}: {words}"));
}
