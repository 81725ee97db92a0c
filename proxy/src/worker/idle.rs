//! A worker that has become idle gives back what it has freed.
//!
//! The allocator gives memory back to the system while its thread allocates and frees. A thread that waits
//! does neither: the buffers of its last burst would stay with it until the next one.

/// What clients have made a worker do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Work {
    /// Bytes that clients have sent and taken.
    pub(super) bytes: u64,
    /// Clients that are connected.
    pub(super) clients: usize,
}

/// Whether a worker has become idle.
#[derive(Default)]
pub(super) struct Idle {
    /// The work at the last look.
    seen: Work,
    /// Something was done since memory was given back.
    has_worked: bool,
}

impl Idle {
    /// Looks again, at the work until now. Returns whether the worker has become idle: nothing was done since
    /// the last look, and something was done before it.
    pub(super) fn begins(&mut self, work: Work) -> bool {
        let is_quiet = work == self.seen;
        self.seen = work;
        let begins = is_quiet && self.has_worked;
        self.has_worked = !is_quiet;
        begins
    }

    /// Will it become idle, if no more is done than this work?
    #[inline]
    pub(super) fn is_ahead(&self, work: Work) -> bool {
        self.has_worked || work != self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::{Idle, Work};

    #[test]
    fn it_begins_once_behind_each_time_of_work() {
        let mut idle = Idle::default();
        let work = |bytes, clients| Work { bytes, clients };
        assert!(
            !idle.is_ahead(work(0, 0)) && !idle.begins(work(0, 0)),
            "nothing was done"
        );
        assert!(idle.is_ahead(work(5, 1)) && !idle.begins(work(5, 1)), "it works");
        assert!(
            idle.is_ahead(work(5, 1)) && !idle.begins(work(7, 1)),
            "it still does"
        );
        assert!(idle.begins(work(7, 1)));
        assert!(
            !idle.is_ahead(work(7, 1)) && !idle.begins(work(7, 1)),
            "it was idle already"
        );
        assert!(
            idle.is_ahead(work(7, 0)) && !idle.begins(work(7, 0)),
            "a client has left"
        );
        assert!(idle.begins(work(7, 0)));
    }
}
