//! A reply from the near cache that leaves in pieces, as its reader takes them.

use std::sync::Arc;

use crate::{client::HIGH_WATER, stream::append};

/// Bytes that others have as well, and what makes them this reader's reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedReply<'a> {
    /// A head of its own, which stands for so many of the first bytes.
    pub(crate) own: Option<(&'a [u8], usize)>,
    /// The bytes.
    pub(crate) bytes: &'a Arc<[u8]>,
    /// The bytes that follow them.
    pub(crate) tail: &'static [u8],
}

/// A large reply whose bytes others have as well: they live until its last reader has taken them.
#[derive(Debug)]
pub(in crate::client) struct SharedReplyRest {
    /// The head as this reader's own; empty: that of the bytes.
    head: Box<[u8]>,
    bytes: Arc<[u8]>,
    /// The position of the next byte to leave.
    next: usize,
    end: usize,
    /// The bytes that leave last.
    tail: &'static [u8],
    /// The part of the bytes that this reader is charged for.
    charged: usize,
}

impl SharedReplyRest {
    /// A reply whose last `trailer` bytes are not for the client.
    pub(in crate::client) fn new(SharedReply { own, bytes, tail }: SharedReply<'_>, trailer: usize) -> Self {
        let (head, next) = own.unwrap_or_default();
        let of_tail = trailer.min(tail.len());
        Self {
            head: head.into(),
            bytes: Arc::clone(bytes),
            next,
            end: bytes.len().saturating_sub(trailer - of_tail),
            tail: tail.get(..tail.len() - of_tail).unwrap_or_default(),
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
        let is_last = now == self.end;
        if is_last {
            append(self.tail, out);
        }
        is_last
    }
}
