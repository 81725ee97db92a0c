//! The quota of dedicated connections that all workers together may have to one server.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// The connections to one server that workers share. Each worker takes one before it opens a connection, and
/// gives it back when the connection has ended.
#[derive(Debug, Default)]
pub struct Quota {
    taken: AtomicU32,
    /// A worker wanted one and found none.
    wanted: AtomicBool,
}

impl Quota {
    /// Takes one, if there are fewer than `most`. Returns `false` if all are taken, and asks other workers to
    /// close those that they do not use.
    #[must_use]
    pub fn take(&self, most: u32) -> bool {
        let one_more = |taken: u32| (taken < most).then_some(taken + 1);
        let takes = self.taken.fetch_update(Relaxed, Relaxed, one_more).is_ok();
        if !takes {
            self.wanted.store(true, Relaxed);
        }
        takes
    }

    /// Gives one back.
    pub fn give_back(&self) {
        let _ = self
            .taken
            .fetch_update(Relaxed, Relaxed, |taken| taken.checked_sub(1));
    }

    /// Whether a worker has wanted one and found none, since the last call.
    pub fn take_wanted(&self) -> bool {
        self.wanted.load(Relaxed) && self.wanted.swap(false, Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::Quota;

    #[test]
    fn no_more_are_taken_than_there_are_and_a_want_is_told_once() {
        let quota = Quota::default();
        assert!(quota.take(2) && quota.take(2) && !quota.take(2));
        assert!(quota.take_wanted() && !quota.take_wanted());
        quota.give_back();
        assert!(quota.take(2) && !quota.take(2));
        assert!(quota.take(3), "the limit was raised");
        (0..5).for_each(|_| quota.give_back());
        assert!(quota.take(1) && !quota.take(1));
    }
}
