//! The replies to the keys of one request, joined to one reply.

use crate::protocol::Join;

/// The part that the reply of a slot has in the reply to its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::client) enum Part {
    /// The whole reply to a request.
    Whole,
    /// The reply to one key of several. It leaves without what closes it.
    Link,
    /// The reply to one key of several. Only the number in it counts.
    Number,
    /// The reply of one of several members. It is held until all have come.
    Share,
}

/// The result of the parts before the slot that closes them.
#[derive(Debug, Default)]
pub(super) struct Joined {
    /// The reply of the first part that failed. It stands for all parts that follow.
    failure: Vec<u8>,
    sum: i64,
}

impl Joined {
    /// Returns whether the reply of such a part leaves as it is.
    pub(super) fn passes(&self, part: Part) -> bool {
        match part {
            Part::Whole => true,
            Part::Link => self.failure.is_empty(),
            Part::Number | Part::Share => false,
        }
    }

    /// Returns whether a part has failed.
    pub(super) fn has_failed(&self) -> bool {
        !self.failure.is_empty()
    }

    pub(super) fn fail(&mut self, error: &[u8]) {
        if self.failure.is_empty() {
            self.failure.extend_from_slice(error);
        }
    }

    pub(super) fn add(&mut self, number: i64) {
        self.sum = self.sum.saturating_add(number);
    }

    /// Closes the parts: all of them have come.
    pub(super) fn close(&mut self, join: &Join, out: &mut Vec<u8>) {
        let sum = std::mem::take(&mut self.sum);
        if !self.failure.is_empty() {
            return out.append(&mut self.failure);
        }
        match join {
            Join::Chain { end } => out.extend_from_slice(end),
            Join::Sum { total } => total(sum, out),
            Join::List | Join::Shares(_) => {}
        }
    }
}
