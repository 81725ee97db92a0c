//! The times at which each version of a key was acknowledged, in bounded memory.

use std::time::Instant;

/// Acknowledgements kept of a key.
const KEPT: usize = 256;

/// The acknowledgements of one key, oldest first.
///
/// The newest half is complete. Older ones thin out, the more the older they are: what is said about those is
/// later than the truth, so that an age reckoned from it is never too great.
pub(super) struct History(Vec<(u64, Instant)>);

impl History {
    pub(super) fn new(version: u64, at: Instant) -> Self {
        Self(vec![(version, at)])
    }

    /// The newest, which is never dropped.
    pub(super) fn last(&self) -> (u64, Instant) {
        self.0[self.0.len() - 1]
    }

    pub(super) fn push(&mut self, version: u64, at: Instant) {
        self.0.push((version, at));
        if self.0.len() > KEPT {
            let mut place = 0;
            self.0.retain(|_| {
                place += 1;
                place > KEPT / 2 || place % 2 == 0
            });
        }
    }

    /// The time at which the first version above `version` was acknowledged, as far as that is still known.
    pub(super) fn first_above(&self, version: u64) -> Option<Instant> {
        let place = self.0.partition_point(|(kept, _)| *kept <= version);
        self.0.get(place).map(|(_, at)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn recent_acknowledgements_are_exact_and_old_ones_never_too_early() {
        let start = Instant::now();
        let at = |version: u64| start + Duration::from_millis(version);
        let mut history = History::new(1, at(1));
        for version in 2..=100_000 {
            history.push(version, at(version));
            assert!(history.0.len() <= KEPT);
        }
        assert_eq!(history.last(), (100_000, at(100_000)));
        assert_eq!(history.first_above(100_000), None);
        for version in 99_900..100_000 {
            assert_eq!(history.first_above(version), Some(at(version + 1)));
        }
        for version in [1, 50_000, 90_000, 99_000] {
            let said = history.first_above(version).expect("some are kept");
            assert!((at(version + 1)..=at(100_000)).contains(&said));
        }
    }
}
