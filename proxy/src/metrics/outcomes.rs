//! Counters of requests to a server by outcome.

use proxima_wire::message::Outcome;

const COUNT: usize = Outcome::Touched as usize + 1;

/// Errors that servers answer.
pub(super) const ERRORS: [Outcome; 4] = [
    Outcome::Busy,
    Outcome::Shutdown,
    Outcome::TryAgain,
    Outcome::RemoteError,
];

/// Outcomes of requests to which no server has answered.
pub(super) const UNANSWERED: [Outcome; 7] = [
    Outcome::Timeout,
    Outcome::ConnectTimeout,
    Outcome::ConnectError,
    Outcome::Ejected,
    Outcome::Deadline,
    Outcome::Overloaded,
    Outcome::LocalError,
];

/// A count for each outcome.
#[derive(Clone, Debug, Default)]
pub struct Outcomes([u64; COUNT]);

impl Outcomes {
    /// Counts requests that have ended so.
    #[inline]
    pub(crate) const fn count(&mut self, outcome: Outcome, requests: u64) {
        self.0[outcome as usize] += requests;
    }

    /// Adds the counts of another server.
    pub(crate) fn add(&mut self, other: &Self) {
        self.0
            .iter_mut()
            .zip(other.0)
            .for_each(|(mine, theirs)| *mine += theirs);
    }

    /// How many have ended so.
    pub const fn of(&self, outcome: Outcome) -> u64 {
        self.0[outcome as usize]
    }

    /// How many have ended in any of these ways.
    pub fn sum(&self, outcomes: &[Outcome]) -> u64 {
        outcomes.iter().map(|&outcome| self.of(outcome)).sum()
    }

    /// How many the server has answered.
    pub fn replies(&self) -> u64 {
        self.0.iter().sum::<u64>() - self.unanswered()
    }

    /// How many the server has not answered.
    pub fn unanswered(&self) -> u64 {
        self.sum(&UNANSWERED)
    }

    /// How many the server has answered with an error of its own.
    pub fn errors(&self) -> u64 {
        self.sum(&ERRORS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_told_from_requests_without_one() {
        let mut outcomes = Outcomes::default();
        let counts = [
            (Outcome::Found, 5),
            (Outcome::Touched, 1),
            (Outcome::ClientError, 2),
            (Outcome::RemoteError, 3),
            (Outcome::Timeout, 7),
            (Outcome::Ejected, 11),
        ];
        for (outcome, requests) in counts {
            outcomes.count(outcome, requests);
        }
        assert_eq!((outcomes.replies(), outcomes.errors()), (11, 3));
        let mut sum = outcomes.clone();
        sum.add(&outcomes);
        assert_eq!((sum.of(Outcome::Found), sum.replies()), (10, 22));
    }
}
