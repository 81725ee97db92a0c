//! The pauses between two tries.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::random::Random;

/// The first pause, and the longest. Each is twice the one before.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);

/// The pauses of one who tries again and again. No two do so in step. Invariant: whatever is well for less than
/// [`LONGEST`] and fails again begins no shorter pauses.
#[derive(Debug)]
pub(in crate::control) struct Pauses {
    next: Duration,
    /// When it began to be well. `None`: it is not.
    well_since: Option<Instant>,
    random: Random,
}

impl Default for Pauses {
    fn default() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            next: FIRST,
            well_since: None,
            random: Random(now.as_nanos() as u64 ^ u64::from(std::process::id()) << 32),
        }
    }
}

impl Pauses {
    /// It is well now.
    pub(in crate::control) fn end(&mut self, now: Instant) {
        self.well_since.get_or_insert(now);
    }

    /// It has failed. Returns the pause before the next try.
    pub(in crate::control) fn next(&mut self, now: Instant) -> Duration {
        let well = self.well_since.take();
        if well.is_some_and(|since| now.duration_since(since) >= LONGEST) {
            self.next = FIRST;
        }
        let whole = self.next;
        self.next = (whole * 2).min(LONGEST);
        let half = whole / 2;
        half + half * self.random.below(1_000) as u32 / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_longest_and_begin_anew_behind_a_time_in_which_all_is_well() {
        let (mut pauses, mut now) = (Pauses::default(), Instant::now());
        let mut whole = FIRST;
        let fails = |pauses: &mut Pauses, now, whole| {
            let pause = pauses.next(now);
            assert!(whole / 2 <= pause && pause <= whole, "{pause:?} of {whole:?}");
        };
        for _ in 0..12 {
            fails(&mut pauses, now, whole);
            whole = (whole * 2).min(LONGEST);
            pauses.end(now);
            now += LONGEST / 2;
        }
        assert_eq!(whole, LONGEST);
        pauses.end(now);
        now += LONGEST / 2;
        pauses.end(now);
        now += LONGEST / 2;
        fails(&mut pauses, now, FIRST);
        fails(&mut pauses, now, 2 * FIRST);
    }
}
