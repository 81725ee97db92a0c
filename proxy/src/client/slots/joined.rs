//! The replies to the keys of one request, joined to one reply.

use crate::protocol::Join;

/// The role of a slot's reply in the reply to its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::client) enum ReplyRole {
    /// The whole reply to a request.
    Whole,
    /// The reply to one key of several. It is sent without its trailer.
    Body,
    /// The reply to one key of several, of which only the number counts.
    Number,
    /// The reply to one part of the request. It is buffered until all parts have theirs.
    Part,
}

/// The joined result of the parts before the slot that closes them.
#[derive(Debug, Default)]
pub(super) struct JoinedReply {
    /// The reply of the first part that failed. It stands for all parts that follow.
    failure: Vec<u8>,
    sum: i64,
}

impl JoinedReply {
    /// Returns whether a reply with this role leaves as it is.
    pub(super) fn passes(&self, role: ReplyRole) -> bool {
        match role {
            ReplyRole::Whole => true,
            ReplyRole::Body => self.failure.is_empty(),
            ReplyRole::Number | ReplyRole::Part => false,
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
            Join::Concat { end } => out.extend_from_slice(end),
            Join::Sum { total } => total(sum, out),
            Join::List | Join::Parts(_) => {}
        }
    }
}
