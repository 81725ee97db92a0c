//! A kept reply that leaves in pieces, as its reader takes them.

use std::sync::Arc;

use crate::{client::HIGH_WATER, stream::append};

/// A large reply whose bytes others have as well: they live until its last reader has taken them.
#[derive(Debug)]
pub(in crate::client) struct Lent {
    /// The head as this reader's own; empty: that of the bytes.
    head: Box<[u8]>,
    bytes: Arc<[u8]>,
    /// What is still to leave.
    next: usize,
    end: usize,
    /// The part of the bytes that this reader is charged for.
    charged: usize,
}

impl Lent {
    /// A reply whose last `trailer` bytes are not for the client. `own`: a head that stands for so many of the
    /// first bytes.
    pub(in crate::client) fn new(bytes: &Arc<[u8]>, own: Option<(&[u8], usize)>, trailer: usize) -> Self {
        let (head, next) = own.unwrap_or_default();
        Self {
            head: head.into(),
            bytes: Arc::clone(bytes),
            next,
            end: bytes.len().saturating_sub(trailer),
            // Those who have the same bytes pay for them together.
            charged: bytes.len() / Arc::strong_count(bytes),
        }
    }

    /// Bytes that its reader is charged for.
    pub(in crate::client) fn charged(&self) -> usize {
        self.head.len() + self.charged
    }

    /// Lets bytes leave until enough of them wait for the client. Returns `true` if the last has left.
    pub(super) fn leave(&mut self, out: &mut Vec<u8>) -> bool {
        append(&std::mem::take(&mut self.head), out);
        let room = HIGH_WATER.saturating_sub(out.len());
        let now = self.end.min(self.next + room);
        append(self.bytes.get(self.next..now).unwrap_or_default(), out);
        self.next = now;
        now == self.end
    }
}
