//! How a question stands: its newest good answer, and how often it was answered well and badly. A failure changes nothing but
//! what is told about it.

use super::LookupFailure;

/// What is known about one question.
#[derive(Clone, Debug)]
pub(super) struct LookupStatus<T> {
    /// None: there never was a good answer.
    pub(super) newest: Option<T>,
    pub(super) asked: Asked,
}

/// How often it was asked, and what came of it.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Why the newest answer was none.
    pub failure: Option<LookupFailure>,
    /// Good answers since it was first asked.
    pub answers: u64,
    /// Questions without a good answer.
    pub failures: u64,
}

/// What an answer changes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// It is another one than before.
    pub(super) new: bool,
    /// To be told: from now on it fails, or for another reason than before.
    pub(super) fails: Option<LookupFailure>,
    /// To be told: it failed until now.
    pub(super) again: bool,
}

impl<T> Default for LookupStatus<T> {
    fn default() -> Self {
        Self {
            newest: None,
            asked: Asked::default(),
        }
    }
}

impl<T: PartialEq> LookupStatus<T> {
    pub(super) fn is_asked(&self) -> bool {
        self.asked.answers + self.asked.failures > 0
    }

    /// Takes an answer to the record.
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
        // What comes, whether it is new, whether a failure is told, whether its end is, and what is known then.
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
