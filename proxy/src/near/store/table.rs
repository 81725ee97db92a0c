//! The entries of a shard, and the index that finds them.
//!
//! Invariant: the replies of one key are a chain that begins at the place which the index has for the key's
//! hash, and no other key is found there: two keys with one hash, as far as the index tells them apart,
//! displace each other.

use slab::Slab;

use super::{KeyHash, entry::Entry, index::Index, slab_index::SlabIndex};
use crate::reactor::prefetch;

/// The divisor of the entries that gives the spare room.
const SPARE: usize = 8;

#[derive(Default)]
pub(super) struct Table {
    /// The first reply of each key.
    index: Index,
    entries: Slab<Entry>,
}

impl Table {
    /// The number of keys.
    pub(super) fn keys(&self) -> usize {
        self.index.len()
    }

    /// All entries have indices below this one.
    pub(super) fn end(&self) -> usize {
        self.entries.capacity()
    }

    /// Bytes of memory, beside what entries hold.
    pub(super) fn memory(&self) -> usize {
        self.index.memory() + self.entries.capacity() * size_of::<Entry>()
    }

    #[inline]
    pub(super) fn get(&self, place: SlabIndex) -> Option<&Entry> {
        self.entries.get(place.index())
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: SlabIndex) -> Option<&mut Entry> {
        self.entries.get_mut(place.index())
    }

    /// The first reply of the key with this hash, or of one whose hash the index takes for the same.
    #[inline]
    pub(super) fn first_with(&self, hash: KeyHash) -> Option<SlabIndex> {
        self.index.get(hash)
    }

    /// The first reply of this key.
    #[inline]
    pub(super) fn first(&self, hash: KeyHash, key: &[u8]) -> Option<SlabIndex> {
        let place = self.first_with(hash)?;
        (self.get(place)?.record.key() == key).then_some(place)
    }

    /// The replies from this one on.
    #[inline]
    pub(super) fn chain(&self, first: Option<SlabIndex>) -> impl Iterator<Item = (SlabIndex, &Entry)> {
        let at = move |place: Option<SlabIndex>| place.and_then(|place| Some((place, self.get(place)?)));
        std::iter::successors(at(first), move |(_, entry)| at(entry.next))
    }

    /// All replies of this key.
    #[inline]
    pub(super) fn of_key(&self, hash: KeyHash, key: &[u8]) -> impl Iterator<Item = (SlabIndex, &Entry)> {
        self.chain(self.first(hash, key))
    }

    /// The place of the reply that is inserted next. `None`: there are too many.
    pub(super) fn vacant(&self) -> Option<SlabIndex> {
        SlabIndex::new(self.entries.vacant_key())
    }

    /// Puts a reply before the others of its key, at the place that is [vacant](Self::vacant). There is none
    /// of another key with its hash.
    pub(super) fn insert(&mut self, place: SlabIndex, mut entry: Entry) {
        let Self { index, entries } = self;
        let hash = entry.hash;
        if entries.len() == entries.capacity() {
            entries.reserve_exact(entries.len() / SPARE + 1);
        }
        entry.next = index.set(hash, place);
        entries.insert(entry);
    }

    /// Takes a reply out. Returns it, and whether it was the last of its key.
    pub(super) fn remove(&mut self, place: SlabIndex) -> Option<(Entry, bool)> {
        let Self { index, entries } = self;
        let &Entry { hash, next, .. } = entries.get(place.index())?;
        let first = index.get(hash);
        let is_last = first == Some(place) && next.is_none();
        match (first == Some(place), next) {
            (true, None) => index.remove(hash),
            (true, Some(next)) => drop(index.set(hash, next)),
            (false, _) => {
                let mut at = first;
                while let Some(entry) = at.and_then(|at| entries.get_mut(at.index())) {
                    if entry.next == Some(place) {
                        entry.next = next;
                        break;
                    }
                    at = entry.next;
                }
            }
        }
        entries.try_remove(place.index()).map(|entry| (entry, is_last))
    }

    /// Begins to load what the index will read for this hash.
    #[inline]
    pub(super) fn preload_slot(&self, hash: KeyHash) {
        self.index.preload(hash);
    }

    /// Begins to load the first reply of a key with this hash, and returns where it is.
    pub(super) fn preload(&self, hash: KeyHash) -> Option<SlabIndex> {
        let place = self.index.get(hash)?;
        prefetch(self.get(place)?);
        Some(place)
    }

    /// Begins to load the record of this reply.
    pub(super) fn preload_record(&self, place: SlabIndex) {
        if let Some(entry) = self.get(place) {
            entry.record.preload();
        }
    }

    /// Frees its memory, if there is no entry.
    pub(super) fn shrink(&mut self) {
        if self.entries.is_empty() {
            *self = Self::default();
        }
    }
}
