//! Which workers count their changes.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The workers that count their changes. A worker that did not could send a change that goes uncounted.
#[derive(Debug, Default)]
pub struct Ready {
    counting: AtomicUsize,
}

impl Ready {
    /// One more worker counts its changes.
    pub fn join(&self) {
        self.counting.fetch_add(1, SeqCst);
    }

    /// A worker no longer counts its changes.
    pub fn leave(&self) {
        self.counting.fetch_sub(1, SeqCst);
    }

    /// Do all of `workers` workers count theirs?
    #[inline]
    pub fn is_complete(&self, workers: usize) -> bool {
        self.counting.load(SeqCst) >= workers
    }
}
