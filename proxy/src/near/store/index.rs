//! Hash of a key → the place of its first reply: open addressing with linear probing, as the embedded
//! store's.
//!
//! A slot has 32 bits of the hash, so that a look-up reads one cache line here, and no entry but the right
//! one. Removal shifts the rest of the run back instead of leaving a tombstone (Knuth, The Art of Computer
//! Programming 3, §6.4, algorithm R).

use super::{KeyHash, slab_index::SlabIndex};
use crate::reactor::prefetch;

const SMALLEST: usize = 16;

/// A place, and the bits of the hash that find it.
#[derive(Clone, Copy, Default)]
struct Slot {
    home: u32,
    place: Option<SlabIndex>,
}

/// The slots, of which at most three quarters are in use. Two keys with the same bits are one key here.
#[derive(Default)]
pub(super) struct Index {
    slots: Box<[Slot]>,
    len: usize,
}

/// The bits of a hash that choose neither its word nor its shard.
#[inline]
const fn home(hash: KeyHash) -> u32 {
    hash.0 as u32
}

impl Index {
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory.
    pub(super) const fn memory(&self) -> usize {
        size_of_val(&*self.slots)
    }

    #[inline]
    const fn mask(&self) -> usize {
        self.slots.len().wrapping_sub(1)
    }

    /// Begins to load what [`get`](Self::get) will read.
    #[inline]
    pub(super) fn preload(&self, hash: KeyHash) {
        if let Some(slot) = self.slots.get(home(hash) as usize & self.mask()) {
            prefetch(slot);
        }
    }

    /// The number of this hash's slot, or of the empty one where it would be. `None`: there is no slot.
    #[inline]
    fn search(&self, home: u32) -> Option<usize> {
        let mut at = home as usize & self.mask();
        loop {
            let slot = self.slots.get(at)?;
            if slot.place.is_none() || slot.home == home {
                return Some(at);
            }
            at = (at + 1) & self.mask();
        }
    }

    /// The place that was set for a key with these bits.
    #[inline]
    pub(super) fn get(&self, hash: KeyHash) -> Option<SlabIndex> {
        self.slots.get(self.search(home(hash))?)?.place
    }

    /// Sets the place for this hash, and returns what was set before.
    pub(super) fn set(&mut self, hash: KeyHash, place: SlabIndex) -> Option<SlabIndex> {
        if self.len >= self.slots.len() / 4 * 3 {
            self.grow();
        }
        let before = self.put(Slot {
            home: home(hash),
            place: Some(place),
        });
        self.len += usize::from(before.is_none());
        before
    }

    fn put(&mut self, slot: Slot) -> Option<SlabIndex> {
        let at = self.search(slot.home)?;
        let free = self.slots.get_mut(at)?;
        std::mem::replace(free, slot).place
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(SMALLEST);
        let slots = std::mem::replace(&mut self.slots, vec![Slot::default(); size].into());
        for slot in slots.into_iter().filter(|slot| slot.place.is_some()) {
            self.put(slot);
        }
    }

    /// Forgets this hash.
    pub(super) fn remove(&mut self, hash: KeyHash) {
        let Some(mut hole) = self
            .search(home(hash))
            .filter(|&at| self.slots[at].place.is_some())
        else {
            return;
        };
        let (mask, mut at) = (self.mask(), hole);
        loop {
            at = (at + 1) & mask;
            let slot = self.slots[at];
            if slot.place.is_none() {
                break;
            }
            // A slot moves back as long as it stays at or behind its home.
            let from_home = at.wrapping_sub(slot.home as usize) & mask;
            if from_home >= at.wrapping_sub(hole) & mask {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = Slot::default();
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn it_finds_what_a_map_finds_after_any_changes() {
        let (mut index, mut map) = (Index::default(), HashMap::new());
        let mut random = crate::random::Random(7);
        assert!(index.get(KeyHash(5)).is_none());
        for round in 0..20_000 {
            // Few homes, and many of them beside each other: long runs, and runs around the end.
            let hash =
                KeyHash(u64::from(random.bits() as u32 % 300) * if round % 2 == 0 { 1 } else { 0x0101_0101 });
            let place = SlabIndex::new(round).unwrap();
            match random.below(3) {
                0 => {
                    index.remove(hash);
                    map.remove(&home(hash));
                }
                _ => assert_eq!(index.set(hash, place), map.insert(home(hash), place)),
            }
            assert_eq!(index.len(), map.len());
            if round % 100 == 0 {
                for (&home, &place) in &map {
                    assert_eq!(index.get(KeyHash(u64::from(home))), Some(place));
                }
            }
        }
        assert!(index.slots.len() >= index.len() / 3 * 4);
    }
}
