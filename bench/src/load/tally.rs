//! Counters of replies, and their latencies.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::verdict::Verdict;

/// The counters of a stretch of time.
pub(super) struct Tally {
    /// Nanoseconds from due (or sent, in the closed loop) to reply, of gets.
    pub(super) gets: Histogram<u64>,
    /// The same of sets.
    pub(super) sets: Histogram<u64>,
    pub(super) hits: u64,
    pub(super) misses: u64,
    pub(super) stored: u64,
    /// Error replies.
    pub(super) refused: u64,
    /// Replies with a wrong byte.
    pub(super) wrong: u64,
    /// Requests whose connection broke, or that got no reply until the end.
    pub(super) lost: u64,
    /// Connections made after the start.
    pub(super) connects: u64,
    /// Connections that could not be made.
    pub(super) failed_connects: u64,
    /// The first wrong reply in words.
    pub(super) first_wrong: Option<String>,
    /// The first error reply, or the first reason for a lost request.
    pub(super) first_error: Option<String>,
}

impl Tally {
    pub(super) fn new() -> Self {
        // Three digits: every value is known to 0.1 %.
        let histogram = || Histogram::new(3).expect("3 digits are among those the crate allows");
        Self {
            gets: histogram(),
            sets: histogram(),
            hits: 0,
            misses: 0,
            stored: 0,
            refused: 0,
            wrong: 0,
            lost: 0,
            connects: 0,
            failed_connects: 0,
            first_wrong: None,
            first_error: None,
        }
    }

    /// A reply came.
    pub(super) fn reply(&mut self, verdict: Verdict, set: bool, latency: Duration) {
        self.record(set, latency);
        match verdict {
            Verdict::Hit => self.hits += 1,
            Verdict::Miss => self.misses += 1,
            Verdict::Stored => self.stored += 1,
            Verdict::Refused(words) => {
                self.refused += 1;
                self.first_error.get_or_insert(words);
            }
            Verdict::Wrong(words) => {
                self.wrong += 1;
                self.first_wrong.get_or_insert(words);
            }
        }
    }

    /// A request will get no reply; it has waited for `age`.
    ///
    /// It counts as a latency too: leaving out the requests that waited longest would flatter the server.
    pub(super) fn lose(&mut self, set: bool, age: Duration, why: &str) {
        self.record(set, age);
        self.lost += 1;
        self.first_error.get_or_insert_with(|| why.to_owned());
    }

    fn record(&mut self, set: bool, latency: Duration) {
        let histogram = if set { &mut self.sets } else { &mut self.gets };
        // This cannot fail: the histogram grows to hold its values, and no run lasts 500 years.
        let _ = histogram.record(latency.as_nanos() as u64);
    }

    /// Adds what another thread or an earlier stretch has counted.
    pub(super) fn add(&mut self, other: Self) {
        // Both have three digits and resize: nothing to fail.
        let _ = self.gets.add(&other.gets);
        let _ = self.sets.add(&other.sets);
        self.hits += other.hits;
        self.misses += other.misses;
        self.stored += other.stored;
        self.refused += other.refused;
        self.wrong += other.wrong;
        self.lost += other.lost;
        self.connects += other.connects;
        self.failed_connects += other.failed_connects;
        self.first_wrong = self.first_wrong.take().or(other.first_wrong);
        self.first_error = self.first_error.take().or(other.first_error);
    }

    /// Latencies of gets and sets together.
    pub(super) fn all(&self) -> Histogram<u64> {
        let mut all = self.gets.clone();
        let _ = all.add(&self.sets);
        all
    }

    /// Replies that came.
    pub(super) fn replies(&self) -> u64 {
        self.hits + self.misses + self.stored + self.refused + self.wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_exact_to_a_thousandth() {
        let mut tally = Tally::new();
        for micros in 1..=10_000 {
            tally.reply(Verdict::Hit, false, Duration::from_micros(micros));
        }
        for (share, expected) in [(0.5, 5_000_000.0), (0.99, 9_900_000.0), (0.999, 9_990_000.0)] {
            let value = tally.gets.value_at_quantile(share) as f64;
            assert!((value / expected - 1.0).abs() < 0.001, "{share}: {value}");
        }
    }

    #[test]
    fn sums_hold_everything_and_the_first_reasons() {
        let mut total = Tally::new();
        for (number, reason) in ["first", "second"].into_iter().enumerate() {
            let mut part = Tally::new();
            part.reply(Verdict::Stored, true, Duration::from_millis(1));
            part.reply(Verdict::Wrong(reason.into()), false, Duration::from_millis(1));
            part.lose(true, Duration::from_secs(number as u64 + 1), reason);
            total.add(part);
        }
        assert_eq!(
            (total.stored, total.wrong, total.lost, total.replies()),
            (2, 2, 2, 4)
        );
        assert_eq!((total.gets.len(), total.sets.len(), total.all().len()), (2, 4, 6));
        assert_eq!(total.first_wrong.as_deref(), Some("first"));
        assert_eq!(total.first_error.as_deref(), Some("first"));
        assert!(total.sets.max() >= 2_000_000_000);
    }
}
