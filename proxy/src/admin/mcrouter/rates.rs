//! Rates: how fast counters have grown of late.

use std::collections::{BTreeMap, VecDeque};

use tokio::time::Instant;

/// Samples that are kept: a rate is that of the last minute.
const KEPT: usize = 12;

/// Counters by name.
pub(super) type Counters = BTreeMap<String, u64>;

/// The counters as they were some seconds ago, and before.
#[derive(Debug, Default)]
pub(super) struct Rates(VecDeque<(Instant, Counters)>);

impl Rates {
    /// Remembers the counters as they are now.
    pub(super) fn sample(&mut self, counters: Counters) {
        self.remember(Instant::now(), counters);
    }

    fn remember(&mut self, at: Instant, counters: Counters) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back((at, counters));
    }

    /// How much the counter of this name, which is `now`, has grown in a second.
    pub(super) fn of(&self, name: &str, now: u64) -> f64 {
        self.at(Instant::now(), name, now)
    }

    fn at(&self, at: Instant, name: &str, now: u64) -> f64 {
        let Some((then, counters)) = self.0.front() else {
            return 0.0;
        };
        let before = counters.get(name).copied().unwrap_or(now);
        now.saturating_sub(before) as f64 / (at - *then).as_secs_f64().max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_rate_is_that_of_the_last_minute() {
        let begin = Instant::now();
        let after = |seconds| begin + Duration::from_secs(seconds);
        let mut rates = Rates::default();
        assert_eq!(rates.at(begin, "a", 7), 0.0, "before the first sample");
        for second in (0..100).step_by(5) {
            // Ten in a second, and no more after the first 30 seconds.
            rates.remember(after(second), [("a".to_owned(), second.min(30) * 10)].into());
        }
        let now = after(100);
        assert_eq!(rates.at(now, "a", 300), 0.0);
        assert_eq!(rates.at(now, "a", 360), 1.0, "60 in 60 seconds");
        assert_eq!(rates.at(now, "a", 0), 0.0, "a counter that was forgotten");
        assert_eq!(rates.at(now, "b", 9), 0.0, "a counter that nobody has sampled");
    }
}
