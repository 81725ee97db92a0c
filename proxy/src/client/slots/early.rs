//! Replies that wait for their turn, one behind the other in one buffer.

use std::ops::Range;

/// In a buffer larger than this, gaps are worth closing; in bytes.
const COMPACT: usize = 64 * 1024;

/// The replies of one client that have come before their turn.
#[derive(Debug, Default)]
pub(super) struct EarlyReplies {
    bytes: Vec<u8>,
    /// Bytes that still wait; the others of the buffer are gaps.
    live: usize,
}

impl EarlyReplies {
    /// Bytes of memory in use, gaps included.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of memory, used or not.
    pub(super) fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    /// Keeps a reply and returns its range.
    #[inline]
    pub(super) fn keep(&mut self, reply: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(reply);
        self.live += reply.len();
        start..self.bytes.len()
    }

    /// A reply that waits.
    pub(super) fn get(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// Takes a reply that leaves now. Its bytes stay where they are until [`settle`](Self::settle).
    #[inline]
    pub(super) fn take(&mut self, range: Range<usize>) -> &[u8] {
        let reply = self.bytes.get(range).unwrap_or_default();
        self.live -= reply.len();
        reply
    }

    /// Gives memory back when nothing waits.
    #[inline]
    pub(super) fn settle(&mut self) {
        if self.live == 0 && !self.bytes.is_empty() {
            self.bytes.clear();
            if self.bytes.capacity() > COMPACT {
                self.bytes = Vec::new();
            }
        }
    }

    /// Returns whether the buffer is large and mostly gaps.
    #[inline]
    pub(super) fn is_sparse(&self) -> bool {
        self.bytes.len() > COMPACT && self.live < self.bytes.len() / 2
    }

    /// Closes the gaps between `ranges`, which are those of all replies that wait.
    pub(super) fn compact<'a>(&mut self, ranges: impl Iterator<Item = &'a mut Range<usize>>) {
        let mut kept = Vec::with_capacity(self.live);
        for range in ranges {
            let start = kept.len();
            kept.extend_from_slice(&self.bytes[range.clone()]);
            *range = start..kept.len();
        }
        self.bytes = kept;
    }
}
