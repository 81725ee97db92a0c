//! Keys of replies that went before they were asked for again.

use super::KeyHash;
use crate::reactor::prefetch;

/// The fewest keys that are remembered.
const LEAST: usize = 16;

/// Two bytes of the hash of each key, at the slot that other bits of the hash say: a later key takes the
/// slot of an earlier one. There are about as many places as the shard has entries.
#[derive(Default)]
pub(super) struct Ghosts(Box<[u16]>);

impl Ghosts {
    /// Bytes of memory.
    pub(super) const fn memory(&self) -> usize {
        size_of_val(&*self.0)
    }

    /// The bits of a hash that no other part of the store has used for this shard. Zero stands for no key.
    const fn mark(hash: KeyHash) -> u16 {
        (hash.0 >> 38) as u16 | 1
    }

    fn slot(&mut self, hash: KeyHash) -> Option<&mut u16> {
        let mask = self.0.len().wrapping_sub(1);
        self.0.get_mut(hash.0 as usize & mask)
    }

    /// Remembers a key of a shard with this number of entries.
    pub(super) fn add(&mut self, hash: KeyHash, entries: usize) {
        let count = entries.next_power_of_two().max(LEAST);
        if self.0.len() < count {
            self.0 = vec![0; count].into();
        }
        if let Some(slot) = self.slot(hash) {
            *slot = Self::mark(hash);
        }
    }

    /// Begins to load what tells whether this key is remembered.
    pub(super) fn preload(&self, hash: KeyHash) {
        let mask = self.0.len().wrapping_sub(1);
        if let Some(slot) = self.0.get(hash.0 as usize & mask) {
            prefetch(slot);
        }
    }

    /// Is this key remembered?
    pub(super) fn has(&self, hash: KeyHash) -> bool {
        let mask = self.0.len().wrapping_sub(1);
        let slot = self.0.get(hash.0 as usize & mask);
        slot.is_some_and(|&place| place == Self::mark(hash))
    }

    /// Is this key remembered? It is forgotten by the call.
    pub(super) fn take(&mut self, hash: KeyHash) -> bool {
        let slot = self.slot(hash).filter(|place| **place == Self::mark(hash));
        slot.map(|place| *place = 0).is_some()
    }

    /// Frees its memory.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
