//! The results of one well-behaved client.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use serde::Serialize;

use super::noise::Stalls;
use crate::output::as_seconds;

/// Failures of each kind that are kept word for word.
const KEPT: usize = 20;

/// Slow replies that are kept to be judged at the end of a round. Further ones count as late without that.
const JUDGED: usize = 10_000;

/// The longest waits that are kept, because one of them may be the machine's rather than the target's.
const LONGEST: usize = 32;

/// The results of a round so far.
#[derive(Default)]
pub(super) struct Score {
    pub(super) replies: u64,
    pub(super) hits: u64,
    misses: u64,
    first_misses: Vec<String>,
    wrong: Vec<String>,
    wrong_count: u64,
    refused: BTreeMap<String, u64>,
    lost: BTreeMap<String, u64>,
    slow: Vec<Slow>,
    slow_count: u64,
    worst: Duration,
    longest: Vec<(Instant, Instant)>,
}

/// A reply that took longer than the time-out.
struct Slow {
    begun: Instant,
    ended: Instant,
    request: String,
    answered: bool,
}

/// The results of a client in the report.
#[derive(Serialize)]
pub(super) struct Outcome {
    pub(super) client: u32,
    pub(super) replies: u64,
    pub(super) hits: u64,
    pub(super) misses: u64,
    pub(super) first_misses: Vec<String>,
    #[serde(rename = "worst_seconds", serialize_with = "as_seconds")]
    pub(super) worst: Duration,
    /// The longest wait, less the machine's noise.
    #[serde(rename = "wait_seconds", serialize_with = "as_seconds")]
    pub(super) wait: Duration,
    /// Replies later than the time-out, less the machine's noise.
    pub(super) late: u64,
    pub(super) worst_late: Option<LateReply>,
    pub(super) refused: u64,
    pub(super) refusals: BTreeMap<String, u64>,
    pub(super) lost: u64,
    pub(super) losses: BTreeMap<String, u64>,
    pub(super) wrong: u64,
    pub(super) wrong_replies: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct LateReply {
    #[serde(rename = "seconds", serialize_with = "as_seconds")]
    pub(super) took: Duration,
    #[serde(rename = "noise_seconds", serialize_with = "as_seconds")]
    pub(super) noise: Duration,
    pub(super) request: String,
    pub(super) answered: bool,
}

impl Score {
    /// A reply to `request` came, or was given up, after this time.
    pub(super) fn timed(&mut self, begun: Instant, request: &str, answered: bool, timeout: Duration) {
        let ended = Instant::now();
        let took = ended - begun;
        self.worst = self.worst.max(took);
        self.keep_wait(begun, ended);
        if took <= timeout {
            return;
        }
        self.slow_count += 1;
        if self.slow.len() < JUDGED {
            self.slow.push(Slow {
                begun,
                ended,
                request: request.to_owned(),
                answered,
            });
        }
    }

    fn keep_wait(&mut self, begun: Instant, ended: Instant) {
        if self.longest.len() < LONGEST {
            self.longest.push((begun, ended));
        } else if let Some(least) = self.longest.iter_mut().min_by_key(|(from, to)| *to - *from)
            && least.1 - least.0 < ended - begun
        {
            *least = (begun, ended);
        }
    }

    pub(super) fn missed(&mut self, words: &str) {
        self.misses += 1;
        keep(&mut self.first_misses, words);
    }

    pub(super) fn wrong(&mut self, words: &str) {
        self.wrong_count += 1;
        keep(&mut self.wrong, words);
    }

    pub(super) fn refused(&mut self, words: &str) {
        count(&mut self.refused, words);
    }

    pub(super) fn lost(&mut self, words: &str) {
        count(&mut self.lost, words);
    }

    /// The failures for the progress line: wrong, slow, refused, lost.
    pub(super) fn failures(&self) -> [u64; 4] {
        let sum = |words: &BTreeMap<_, u64>| words.values().sum();
        [
            self.wrong_count,
            self.slow_count,
            sum(&self.refused),
            sum(&self.lost),
        ]
    }

    pub(super) fn worst(&self) -> Duration {
        self.worst
    }

    /// Judges slow replies by how long the machine stood still meanwhile.
    pub(super) fn into_outcome(self, client: u32, limit: Duration, stalls: &Stalls) -> Outcome {
        let [wrong, slow_count, refused, lost] = self.failures();
        let unjudged = slow_count - self.slow.len() as u64;
        let late: Vec<LateReply> = self
            .slow
            .into_iter()
            .map(|slow| LateReply {
                took: slow.ended - slow.begun,
                noise: stalls.within(slow.begun, slow.ended),
                request: slow.request,
                answered: slow.answered,
            })
            .filter(|late| late.took.saturating_sub(late.noise) > limit)
            .collect();
        Outcome {
            client,
            replies: self.replies,
            hits: self.hits,
            misses: self.misses,
            first_misses: self.first_misses,
            worst: self.worst,
            wait: self
                .longest
                .into_iter()
                .map(|(from, to)| (to - from).saturating_sub(stalls.within(from, to)))
                .max()
                .unwrap_or_default(),
            late: late.len() as u64 + unjudged,
            worst_late: late.into_iter().max_by_key(|late| late.took - late.noise),
            refused,
            refusals: self.refused,
            lost,
            losses: self.lost,
            wrong,
            wrong_replies: self.wrong,
        }
    }
}

fn keep(list: &mut Vec<String>, words: &str) {
    if list.len() < KEPT {
        list.push(words.to_owned());
    }
}

fn count(counts: &mut BTreeMap<String, u64>, words: &str) {
    if let Some(known) = counts.get_mut(words) {
        *known += 1;
    } else if counts.len() < KEPT {
        counts.insert(words.to_owned(), 1);
    } else {
        *counts.entry("others".to_owned()).or_default() += 1;
    }
}
