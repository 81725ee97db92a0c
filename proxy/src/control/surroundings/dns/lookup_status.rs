//! The status of a look-up: its newest good answer, and counts of good and bad ones. A failure leaves the
//! newest good answer in place.

use super::LookupFailure;

/// The status of one question.
#[derive(Clone, Debug)]
pub(super) struct LookupStatus<T> {
    /// The newest good answer. `None`: there has never been one.
    pub(super) newest: Option<T>,
    pub(super) asked: LookupCounts,
}

/// Counts of answers, for operators.
#[derive(Clone, Debug, Default)]
pub struct LookupCounts {
    /// Why the newest answer was bad. `None`: it was good.
    pub failure: Option<LookupFailure>,
    /// Good answers since the question was first asked.
    pub answers: u64,
    /// Answers that were bad or did not come.
    pub failures: u64,
    /// The version of the list in use, where lists have one.
    pub version: Option<u64>,
}

/// What an answer changes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// The answer differs from the one before.
    pub(super) new: bool,
    /// To be logged: the look-up begins to fail, or fails for another reason than before.
    pub(super) fails: Option<LookupFailure>,
    /// To be logged: the look-up has failed until now.
    pub(super) again: bool,
}

impl<T> Default for LookupStatus<T> {
    fn default() -> Self {
        Self {
            newest: None,
            asked: LookupCounts::default(),
        }
    }
}

impl<T: PartialEq> LookupStatus<T> {
    pub(super) fn is_asked(&self) -> bool {
        self.asked.answers + self.asked.failures > 0
    }

    /// Records an answer.
    pub(super) fn record(&mut self, answer: Result<T, LookupFailure>) -> Change {
        let asked = &mut self.asked;
        let before = asked.failure.take();
        match answer {
            Ok(found) => {
                asked.answers += 1;
                let new = self.newest.as_ref() != Some(&found);
                self.newest = Some(found);
                Change {
                    new,
                    fails: None,
                    again: before.is_some(),
                }
            }
            Err(failure) => {
                asked.failures += 1;
                let told = before.is_some_and(|before| before.is_same_kind(&failure));
                asked.failure = Some(failure.clone());
                Change {
                    new: false,
                    fails: (!told).then_some(failure),
                    again: false,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_leaves_what_is_known_and_is_told_once() {
        let mut status = LookupStatus::default();
        // Each row: an answer, whether it is new, whether a failure is logged, whether its end is logged, and
        // the newest good answer.
        for (answer, new, fails, again, known) in [
            (Err(LookupFailure::NoName), false, true, false, None),
            (Err(LookupFailure::NoName), false, false, false, None),
            (Ok(1), true, false, true, Some(1)),
            (Ok(1), false, false, false, Some(1)),
            (Err(LookupFailure::Late), false, true, false, Some(1)),
            (Err(LookupFailure::NoRecords), false, true, false, Some(1)),
            (Ok(1), false, false, true, Some(1)),
            (Ok(2), true, false, false, Some(2)),
        ] {
            let failure = answer.clone().err();
            let change = status.record(answer);
            let expected = Change {
                new,
                fails: failure.clone().filter(|_| fails),
                again,
            };
            assert_eq!((change, status.newest), (expected, known));
            assert_eq!(status.asked.failure, failure);
        }
        assert_eq!((status.asked.answers, status.asked.failures), (4, 4));
    }
}
