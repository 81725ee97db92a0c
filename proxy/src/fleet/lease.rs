//! The end of this peer's right to answer.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire},
};

/// The end of this peer's lease, which the control thread renews and the workers look at once a turn. Times are
/// those of CLOCK_BOOTTIME, which goes on while the machine is suspended, in microseconds.
#[derive(Debug, Default)]
pub struct Lease {
    until: AtomicU64,
    /// Decisions that began before this view have ended at all peers.
    settled: AtomicU64,
}

impl Lease {
    /// The lease lasts until this time. An earlier end than the one before is not taken: the earlier grant
    /// came later.
    pub fn renew(&self, until: u64) {
        self.until.fetch_max(until, AcqRel);
    }

    /// The lease has ended: this peer has left, or the machine was away.
    pub fn end(&self) {
        self.until.store(0, std::sync::atomic::Ordering::Release);
    }

    /// Is it valid at this time?
    #[inline]
    pub fn is_valid(&self, now: u64) -> bool {
        now < self.until.load(Acquire)
    }

    /// When it ends.
    pub fn until(&self) -> u64 {
        self.until.load(Acquire)
    }

    /// At all peers, decisions that began before this view have ended.
    pub fn settle(&self, view: u64) {
        self.settled.fetch_max(view, AcqRel);
    }

    /// Before which view all decisions have ended at all peers.
    pub fn settled(&self) -> u64 {
        self.settled.load(Acquire)
    }
}
