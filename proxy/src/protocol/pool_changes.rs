//! The notice to workers that a pool's state has changed.
#![allow(
    clippy::disallowed_types,
    reason = "the lock is taken when a pool's state changes, and not on the way of a request"
)]

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Counts the changes of one pool's state, and wakes the workers at each.
#[derive(Clone, Debug, Default)]
pub struct PoolChanges {
    count: Arc<AtomicU64>,
    wakers: Wakers,
}

impl PoolChanges {
    /// No change yet. These are woken.
    pub fn new(wakers: Wakers) -> Self {
        Self {
            count: Arc::default(),
            wakers,
        }
    }

    /// The state has changed: requests that wait are looked at again, in this moment.
    pub fn note(&self) {
        self.count.fetch_add(1, Ordering::Release);
        self.wakers.wake();
    }

    /// The number of changes so far.
    #[inline]
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }
}

/// The wakers of all workers.
#[derive(Clone, Default)]
pub struct Wakers(Arc<Mutex<Vec<Waker>>>);

type Waker = Box<dyn Fn() + Send>;

impl Wakers {
    /// Adds one that lives as long as the process.
    pub fn add(&self, wake: impl Fn() + Send + 'static) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Box::new(wake));
    }

    fn wake(&self) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().for_each(|wake| wake());
    }
}

impl fmt::Debug for Wakers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wakers")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn each_change_counts_and_wakes_everybody() {
        let (wakers, woken) = (Wakers::default(), Arc::new(AtomicU32::new(0)));
        let changes = PoolChanges::new(wakers.clone());
        changes.note();
        for _ in 0..2 {
            let woken = Arc::clone(&woken);
            wakers.add(move || {
                woken.fetch_add(1, Ordering::Relaxed);
            });
        }
        changes.clone().note();
        assert_eq!((changes.count(), woken.load(Ordering::Relaxed)), (2, 2));
    }
}
