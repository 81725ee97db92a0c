//! The owners of leases' tokens that clients were given in place of a server's own.
//!
//! All workers share the table, as the client that fills a miss may be another one's. It has no lock: a slot is
//! written by whoever has made its tag [`BUSY`], and what was read from it counts only if the tag could then be
//! exchanged.
//!
//! Invariant: no two entries have one tag at a time, and an entry is taken at most once. The table has a fixed
//! size; a new entry takes the place of an older one. A lease that is forgotten is one that cannot be filled: its
//! token goes on as it is, and no server stores with it.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

/// The tag of a slot without an entry.
const FREE: u64 = 0;
/// The tag of a slot that is being written.
const BUSY: u64 = u64::MAX;

/// The number of slots. A slot takes 24 bytes.
const SLOTS: usize = 1 << 14;

/// Entries by their tags. It takes memory from the first entry on.
#[derive(Debug)]
pub struct LeaseTable {
    slots: OnceLock<Box<[Slot]>>,
    made: AtomicU64,
}

impl Default for LeaseTable {
    /// The numbers begin anywhere, so that tokens of another process, or of an earlier one, are not taken for
    /// this one's.
    fn default() -> Self {
        Self {
            slots: OnceLock::new(),
            made: RandomState::new().hash_one(SLOTS).into(),
        }
    }
}

/// What is remembered of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseToken {
    /// The token that the server has given.
    pub token: u64,
    /// What else tells whose it is; its meaning is the route's.
    pub whose: u64,
}

#[derive(Debug, Default)]
struct Slot {
    tag: AtomicU64,
    token: AtomicU64,
    whose: AtomicU64,
}

impl LeaseTable {
    /// The upper half of the tokens that are made here. A server's own tokens hardly have it; one that has is
    /// remembered like every other.
    const MADE: u64 = 0x7072_6f78 << 32;

    /// A number that no earlier token has had, unless 4 billion came between.
    pub(super) fn new_token(&self) -> u64 {
        Self::MADE | self.made.fetch_add(1, SeqCst) & u64::from(u32::MAX)
    }

    /// May this token have been made here?
    pub(super) const fn may_be_made(token: u64) -> bool {
        token & !(u32::MAX as u64) == Self::MADE
    }

    /// Remembers a lease under this tag.
    pub fn put(&self, tag: u64, lease: LeaseToken) {
        let slots = self
            .slots
            .get_or_init(|| (0..SLOTS).map(|_| Slot::default()).collect());
        let slot = &slots[tag as usize % SLOTS];
        let old = slot.tag.load(SeqCst);
        // A lease for which the slot is busy is forgotten.
        if old == BUSY
            || tag == FREE
            || tag == BUSY
            || slot.tag.compare_exchange(old, BUSY, SeqCst, SeqCst).is_err()
        {
            return;
        }
        slot.token.store(lease.token, SeqCst);
        slot.whose.store(lease.whose, SeqCst);
        slot.tag.store(tag, SeqCst);
    }

    /// Takes the lease with this tag, if `fits` says that it is the one that is meant.
    pub fn take(&self, tag: u64, fits: impl Fn(&LeaseToken) -> bool) -> Option<LeaseToken> {
        let slot = &self.slots.get()?[tag as usize % SLOTS];
        if tag == FREE || tag == BUSY || slot.tag.load(SeqCst) != tag {
            return None;
        }
        let lease = LeaseToken {
            token: slot.token.load(SeqCst),
            whose: slot.whose.load(SeqCst),
        };
        let is_taken = fits(&lease) && slot.tag.compare_exchange(tag, FREE, SeqCst, SeqCst).is_ok();
        is_taken.then_some(lease)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread};

    use super::*;

    fn lease(token: u64, whose: u64) -> LeaseToken {
        LeaseToken { token, whose }
    }

    #[test]
    fn a_lease_is_taken_once_and_by_its_route() {
        let table = LeaseTable::default();
        assert_eq!(table.take(7, |_| true), None);
        table.put(7, lease(100, 1));
        assert_eq!(table.take(7, |lease| lease.whose == 2), None);
        assert_eq!(table.take(7 + SLOTS as u64, |_| true), None);
        assert_eq!(table.take(7, |lease| lease.whose == 1), Some(lease(100, 1)));
        assert_eq!(table.take(7, |_| true), None);
        table.put(8, lease(1, 1));
        table.put(8 + SLOTS as u64, lease(2, 1));
        assert_eq!(table.take(8, |_| true), None, "the newer one has its place");
        for tag in [FREE, BUSY] {
            table.put(tag, lease(1, 1));
            assert_eq!(table.take(tag, |_| true), None);
        }
    }

    #[test]
    fn tokens_that_are_made_are_told_from_others() {
        let table = LeaseTable::default();
        let (one, two) = (table.new_token(), table.new_token());
        assert_ne!(one, two);
        assert!(LeaseTable::may_be_made(one) && LeaseTable::may_be_made(two));
        assert!(!LeaseTable::may_be_made(100) && !LeaseTable::may_be_made(u64::MAX));
    }

    #[test]
    fn threads_take_each_lease_once_and_whole() {
        let table = Arc::new(LeaseTable::default());
        let threads = (0..4_u64).map(|number| {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                let mut taken = 0;
                for round in 0..20_000_u64 {
                    // All threads write to the same few slots.
                    let tag = 1 + round % 8 + number * SLOTS as u64;
                    table.put(tag, lease(tag * 3, tag * 5));
                    for other in 0..4 {
                        let tag = 1 + round % 8 + other * SLOTS as u64;
                        if let Some(found) = table.take(tag, |_| true) {
                            assert_eq!(found, lease(tag * 3, tag * 5));
                            taken += 1;
                        }
                    }
                }
                taken
            })
        });
        let threads: Vec<_> = threads.collect();
        let taken: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert!(taken > 0 && taken <= 80_000, "{taken}");
    }
}
