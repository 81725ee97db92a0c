//! A connection to one server that one worker has at a time.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A connection to one server that workers have in turn. A worker takes it before it opens the connection,
/// and gives it back when the connection has ended.
#[derive(Debug, Default)]
pub struct Turn {
    is_taken: AtomicBool,
    /// A worker wanted it while another one had it.
    is_wanted: AtomicBool,
}

impl Turn {
    /// Takes it. Returns `false` if a worker has it, which is told that it is wanted.
    #[must_use]
    pub fn take(&self) -> bool {
        let takes = !self.is_taken.swap(true, Relaxed);
        if !takes {
            self.is_wanted.store(true, Relaxed);
        }
        takes
    }

    /// Gives it back.
    pub fn give_back(&self) {
        self.is_taken.store(false, Relaxed);
    }

    /// Whether a worker has wanted it while another one had it, since the last call.
    pub fn take_wanted(&self) -> bool {
        self.is_wanted.load(Relaxed) && self.is_wanted.swap(false, Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::Turn;

    #[test]
    fn one_worker_has_it_at_a_time_and_a_want_is_told_once() {
        let turn = Turn::default();
        assert!(turn.take() && !turn.take());
        assert!(turn.take_wanted() && !turn.take_wanted());
        turn.give_back();
        assert!(turn.take() && !turn.take());
    }
}
