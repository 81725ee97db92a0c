//! What the replies to the keys of one request have come to.

use crate::dialect::Join;

/// What the reply of a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::client) enum Part {
    /// A reply like any other.
    Whole,
    /// To one key of several: it leaves without what closes it.
    Link,
    /// To one key of several: only the number in it counts.
    Number,
}

/// Of the parts before the slot that closes them.
#[derive(Debug, Default)]
pub(super) struct Joined {
    /// The first that failed stands for all that follow.
    failure: Vec<u8>,
    sum: i64,
}

impl Joined {
    /// Does the reply of such a part leave as it is?
    pub(super) fn passes(&self, part: Part) -> bool {
        match part {
            Part::Whole => true,
            Part::Link => self.failure.is_empty(),
            Part::Number => false,
        }
    }

    pub(super) fn fail(&mut self, error: &[u8]) {
        if self.failure.is_empty() {
            self.failure.extend_from_slice(error);
        }
    }

    pub(super) fn add(&mut self, number: i64) {
        self.sum = self.sum.saturating_add(number);
    }

    /// They have all come.
    pub(super) fn close(&mut self, join: &Join, out: &mut Vec<u8>) {
        let sum = std::mem::take(&mut self.sum);
        if !self.failure.is_empty() {
            return out.append(&mut self.failure);
        }
        match join {
            Join::Chain { end } => out.extend_from_slice(end),
            Join::Sum { total } => total(sum, out),
            Join::List => {}
        }
    }
}
