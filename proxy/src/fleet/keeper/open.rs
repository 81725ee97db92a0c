//! The number of open changes of a key: those under way from here, and unconfirmed ones of peers. While no
//! change is open, every readable copy of the fleet has all changes of the key that this copy has.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// Counts, by the low bits of the hash. Keys that share one are taken to be open together.
const COUNTS: usize = 1 << 16;

/// Open changes, which all workers of a process count together.
pub(super) struct Open(Box<[AtomicU32]>);

impl Open {
    pub(super) fn full() -> Self {
        Self::new(COUNTS)
    }

    /// `counts` is a power of two.
    pub(super) fn new(counts: usize) -> Self {
        Self(std::iter::repeat_with(AtomicU32::default).take(counts).collect())
    }

    fn count(&self, hash: u64) -> &AtomicU32 {
        &self.0[hash as usize & (self.0.len() - 1)]
    }

    /// A change of the key with this hash is open.
    pub(super) fn begin(&self, hash: u64) {
        self.count(hash).fetch_add(1, SeqCst);
    }

    /// A change that was open is complete, or void.
    pub(super) fn end(&self, hash: u64) {
        self.count(hash).fetch_sub(1, SeqCst);
    }

    /// Is a change of the key open?
    pub(super) fn has(&self, hash: u64) -> bool {
        self.count(hash).load(SeqCst) > 0
    }

    /// The same counts once more, for a model.
    pub(super) fn fork(&self) -> Self {
        Self(
            self.0
                .iter()
                .map(|count| AtomicU32::new(count.load(SeqCst)))
                .collect(),
        )
    }
}
