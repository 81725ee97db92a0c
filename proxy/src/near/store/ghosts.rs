//! Keys of replies that went before anybody asked for them again.

use super::KeyHash;
use crate::reactor::prefetch;

/// The fewest keys that are remembered.
const LEAST: usize = 16;

/// Two bytes of the hash of each key, at the place that other bits of the hash say: a later key takes the
/// place of an earlier one. There are about as many places as the shard has entries.
#[derive(Default)]
pub(super) struct Ghosts(Box<[u16]>);

impl Ghosts {
    /// Bytes of memory.
    pub(super) const fn memory(&self) -> usize {
        size_of_val(&*self.0)
    }

    /// The bits of a hash that no other part of the store has used for this shard. Zero is nobody.
    const fn mark(hash: KeyHash) -> u16 {
        (hash.0 >> 38) as u16 | 1
    }

    fn place(&mut self, hash: KeyHash) -> Option<&mut u16> {
        let mask = self.0.len().wrapping_sub(1);
        self.0.get_mut(hash.0 as usize & mask)
    }

    /// Remembers a key of a shard with so many entries.
    pub(super) fn add(&mut self, hash: KeyHash, entries: usize) {
        let count = entries.next_power_of_two().max(LEAST);
        if self.0.len() < count {
            self.0 = vec![0; count].into();
        }
        if let Some(place) = self.place(hash) {
            *place = Self::mark(hash);
        }
    }

    /// Begins to load what tells whether this key is remembered.
    pub(super) fn preload(&self, hash: KeyHash) {
        let mask = self.0.len().wrapping_sub(1);
        if let Some(place) = self.0.get(hash.0 as usize & mask) {
            prefetch(place);
        }
    }

    /// Is this key remembered?
    pub(super) fn has(&self, hash: KeyHash) -> bool {
        let mask = self.0.len().wrapping_sub(1);
        let place = self.0.get(hash.0 as usize & mask);
        place.is_some_and(|&place| place == Self::mark(hash))
    }

    /// Is this key remembered? It is not any more, then.
    pub(super) fn take(&mut self, hash: KeyHash) -> bool {
        let place = self.place(hash).filter(|place| **place == Self::mark(hash));
        place.map(|place| *place = 0).is_some()
    }

    /// Frees its memory.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
