//! The newest stamp of each key: a table of fixed size that all workers of a process share.
//!
//! A worker that reads or raises a key's stamp holds the key's lock, so that no other worker raises the same
//! entry. Another worker may push the entry out for a key of the same set at the same time. Each step is one
//! atomic operation, and no order of them loses a stamp: the set's floor is raised to a stamp before its
//! entry goes, and by a worker that raised an entry which went meanwhile.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, SeqCst},
};

use crate::fleet::Stamp;

/// Sets of the table.
const SETS: usize = 1 << 16;
/// Entries of a set. With 24 bytes for each and the floors, the table takes 6.5 MiB.
const WAYS: usize = 4;
/// A stamp older than this needs no floor when its entry goes, in microseconds. A change that is still under
/// way after so long belongs to a coordinator that has left the view: a lease lasts up to 10 s, and one
/// peer's clock may take all others up to a minute ahead at once.
const YOUNG: u64 = 90_000_000;

/// An entry that holds no key.
const EMPTY: u64 = 0;
/// An entry whose key is being changed.
const BUSY: u64 = 1;

#[derive(Default)]
struct Way {
    key: AtomicU64,
    stamp: AtomicU64,
    /// The newest stamp of a decided change of the key; 0: none is known.
    decided: AtomicU64,
}

#[derive(Default)]
struct Set {
    ways: [Way; WAYS],
    /// It is marked as decided if any of the stamps that it was raised to belonged to a key with a decided
    /// change.
    floor: AtomicU64,
}

impl Set {
    /// Raises the floor, which stays marked once it is.
    fn raise_floor(&self, stamp: Stamp) {
        let raised = |old: u64| Some(old.max(stamp.bits()) | (old & 1));
        // The closure always gives a value.
        let _ = self.floor.fetch_update(SeqCst, SeqCst, raised);
    }
}

/// Waits a moment for another worker, which changes an entry in a handful of steps.
fn pause(tries: &mut u32) {
    *tries += 1;
    // It may have been stopped in the middle of them, for this worker to run.
    match *tries % 64 {
        0 => std::thread::yield_now(),
        _ => std::hint::spin_loop(),
    }
}

/// The stamps of a key, as far as they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyStamp {
    /// The newest stamp of its changes, and that of its decided changes.
    Newest(Stamp, Stamp),
    /// It is not in the table. A change up to this stamp may be older than one that was forgotten.
    Forgotten(Stamp),
}

/// The newest stamp of each key.
pub(super) struct Stamps {
    sets: Box<[Set]>,
}

impl Stamps {
    pub(super) fn new(sets: usize) -> Self {
        Self {
            sets: std::iter::repeat_with(Set::default).take(sets).collect(),
        }
    }

    /// A table with the same entries, for a model.
    pub(super) fn fork(&self) -> Self {
        let copy = |from: &AtomicU64| AtomicU64::new(from.load(Acquire));
        let set = |set: &Set| Set {
            ways: set.ways.each_ref().map(|way| Way {
                key: copy(&way.key),
                stamp: copy(&way.stamp),
                decided: copy(&way.decided),
            }),
            floor: copy(&set.floor),
        };
        Self {
            sets: self.sets.iter().map(set).collect(),
        }
    }

    /// All words of the table, for a model.
    pub(super) fn words(&self) -> impl Iterator<Item = u64> {
        self.sets.iter().flat_map(|set| {
            let ways = set
                .ways
                .iter()
                .flat_map(|way| [&way.key, &way.stamp, &way.decided]);
            ways.chain([&set.floor]).map(|word| word.load(Acquire))
        })
    }

    /// The table of a process.
    pub(super) fn full() -> Self {
        Self::new(SETS)
    }

    fn find(&self, hash: u64) -> (&Set, u64) {
        let set = &self.sets[(hash as usize) & (self.sets.len() - 1)];
        // The two least values are no keys.
        (set, hash.max(2))
    }

    /// The stamps of the key with this hash.
    pub(super) fn get(&self, hash: u64) -> KeyStamp {
        let (set, key) = self.find(hash);
        let mut tries = 0;
        loop {
            let mut is_busy = false;
            for way in &set.ways {
                let found = way.key.load(SeqCst);
                is_busy |= found == BUSY;
                if found == key {
                    let (stamp, decided) = (way.stamp.load(SeqCst), way.decided.load(SeqCst));
                    if way.key.load(SeqCst) == key {
                        return KeyStamp::Newest(Stamp::from_bits(stamp), Stamp::from_bits(decided));
                    }
                    is_busy = true;
                }
            }
            // An entry that is being changed may have been this key's, and the floor is not raised to its
            // stamp yet.
            if !is_busy {
                return KeyStamp::Forgotten(Stamp::from_bits(set.floor.load(SeqCst)));
            }
            pause(&mut tries);
        }
    }

    /// Notes a stamp, which is newer than all that are known of the key.
    pub(super) fn raise(&self, hash: u64, stamp: Stamp) {
        let (set, key) = self.find(hash);
        let mut tries = 0;
        loop {
            if let Some(way) = set.ways.iter().find(|way| way.key.load(Acquire) == key) {
                let old = way.stamp.load(SeqCst);
                if way.key.load(SeqCst) != key {
                    continue;
                }
                // `old` is the key's own stamp, and no two keys ever have the same one: if the entry is given
                // to another key from here on, its stamp is not replaced.
                let raised = way.stamp.compare_exchange(old, stamp.bits(), SeqCst, Acquire);
                if raised.is_ok() {
                    if stamp.is_decided() && way.key.load(SeqCst) == key {
                        way.decided.fetch_max(stamp.bits(), SeqCst);
                    }
                    if way.key.load(SeqCst) != key {
                        // It was pushed out between two of the steps. Another key may be marked as decided
                        // now without need. Some of its changes are then drawn again.
                        set.raise_floor(stamp);
                    }
                    return;
                }
                continue;
            }
            if self.insert(set, key, stamp) {
                return;
            }
            pause(&mut tries);
        }
    }

    /// Puts a key in the place of an empty entry, or of the oldest one; `false`: another worker was faster.
    fn insert(&self, set: &Set, key: u64, stamp: Stamp) -> bool {
        let age = |way: &&Way| match way.key.load(Acquire) {
            EMPTY => 0,
            BUSY => u64::MAX,
            _ => way.stamp.load(Acquire),
        };
        let Some(way) = set.ways.iter().min_by_key(age) else {
            return false;
        };
        let old = way.key.load(Acquire);
        if old == BUSY {
            return false;
        }
        let is_young = |bits: u64| Stamp::from_bits(bits).micros() + YOUNG > stamp.micros();
        let raise_floor = |bits: u64| {
            if old != EMPTY && is_young(bits) {
                let stamp = Stamp::from_bits(bits);
                set.raise_floor(match way.decided.load(Acquire) {
                    0 => stamp,
                    _ => stamp.decided(),
                });
            }
        };
        raise_floor(way.stamp.load(Acquire));
        if way.key.compare_exchange(old, BUSY, AcqRel, Acquire).is_err() {
            return false;
        }
        raise_floor(way.stamp.swap(stamp.bits(), SeqCst));
        way.decided
            .store(if stamp.is_decided() { stamp.bits() } else { 0 }, SeqCst);
        way.key.store(key, SeqCst);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread};

    use super::*;
    use crate::fleet::Slot;

    fn stamp(micros: u64) -> Stamp {
        Stamp::new(micros, Slot(1))
    }

    #[test]
    fn newest_stamp_of_a_key_is_found() {
        let stamps = Stamps::new(4);
        assert_eq!(stamps.get(7), KeyStamp::Forgotten(Stamp::ZERO));
        stamps.raise(7, stamp(10));
        stamps.raise(7, stamp(20));
        assert_eq!(stamps.get(7), KeyStamp::Newest(stamp(20), Stamp::ZERO));
    }

    #[test]
    fn decided_stamp_of_a_key_is_known_after_a_plain_one_and_marks_the_floor() {
        let stamps = Stamps::new(1);
        stamps.raise(7, stamp(10).decided());
        stamps.raise(7, stamp(20));
        assert_eq!(stamps.get(7), KeyStamp::Newest(stamp(20), stamp(10).decided()));
        for key in 0..5 {
            stamps.raise(10 + key, stamp(30 + key));
        }
        assert_eq!(stamps.get(7), KeyStamp::Forgotten(stamp(30).decided()));
    }

    #[test]
    fn young_stamp_that_is_pushed_out_raises_the_floor_and_an_old_one_does_not() {
        let stamps = Stamps::new(1);
        for key in 0..4 {
            stamps.raise(10 + key, stamp(1 + key));
        }
        stamps.raise(20, stamp(YOUNG * 3));
        assert_eq!(stamps.get(10), KeyStamp::Forgotten(Stamp::ZERO));
        for key in 0..4 {
            stamps.raise(30 + key, stamp(YOUNG * 3 + 1 + key));
        }
        assert_eq!(stamps.get(20), KeyStamp::Forgotten(stamp(YOUNG * 3)));
    }

    #[test]
    fn no_stamp_is_lost_when_workers_push_each_others_keys_out() {
        let stamps = Arc::new(Stamps::new(1));
        let workers: Vec<_> = (0..3_u64)
            .map(|worker| {
                let stamps = Arc::clone(&stamps);
                thread::spawn(move || {
                    for round in 1..20_000_u64 {
                        let key = 2 + worker * 100 + round % 5;
                        let mine = Stamp::new(1_000 + round, Slot(worker as u16));
                        let before = match stamps.get(key) {
                            KeyStamp::Newest(stamp, _) | KeyStamp::Forgotten(stamp) => stamp,
                        };
                        // The key's own last stamp, five rounds ago, may not have been forgotten.
                        if round > 5 {
                            let last = Stamp::new(1_000 + round - 5, Slot(worker as u16));
                            assert!(before >= last, "{before:?} is older than {last:?}");
                        }
                        stamps.raise(key, mine);
                    }
                })
            })
            .collect();
        for worker in workers {
            assert!(worker.join().is_ok());
        }
    }
}
