//! Replies that are removed, with the memory that this leaves.

use std::sync::atomic::Ordering::Relaxed;

use super::Shard;
use crate::near::{
    KeyHash, Words,
    store::{RemovalReason, entry::Entry, slab_index::SlabIndex},
};

impl Shard {
    /// Removes a key that a request changes. Its only reply is ended where it lies, as it will most likely be
    /// fetched again.
    pub(in crate::near::store) fn remove_changed(&mut self, hash: KeyHash, key: &[u8]) {
        let Some(first) = self.table.first(hash, key) else {
            return;
        };
        match self.table.get_mut(first) {
            Some(entry) if entry.is_vacant() => {}
            Some(entry) if entry.next.is_none() && entry.extra.is_none() => {
                self.tally.went(entry, Some(RemovalReason::Changed));
                entry.vacate();
                self.vacant += 1;
                self.words.discount(hash);
            }
            _ => {
                self.remove_chain(Some(first), RemovalReason::Changed);
                self.tell();
            }
        }
    }

    /// Removes this reply and those behind it: all of their key, if it is the first.
    pub(super) fn remove_chain(&mut self, first: Option<SlabIndex>, why: RemovalReason) {
        let mut at = first;
        while let Some((place, entry)) = at.and_then(|at| Some((at, self.table.get(at)?))) {
            at = entry.next;
            self.remove(place, Some(why));
        }
    }

    /// Removes one reply. `why`: `None` if a newer one has taken its place.
    pub(super) fn remove(&mut self, place: SlabIndex, why: Option<RemovalReason>) {
        self.queues.unlink(&mut self.table, place);
        let Some((entry, is_last)) = self.table.remove(place) else {
            return;
        };
        if entry.is_vacant() {
            self.vacant -= 1;
        } else {
            self.tally.went(&entry, why);
            if is_last {
                self.words.discount(entry.hash);
            }
        }
        let extra = entry.extra.as_ref().map_or(0, |extra| extra.memory());
        let freed = extra + self.blocks.put(entry.record.into_block());
        if freed > 0 {
            self.total.freed.fetch_add(freed, Relaxed);
        }
    }

    /// Removes the reply at this index if `goes` gives a reason. Returns whether it went.
    pub(in crate::near::store) fn remove_if(
        &mut self,
        index: usize,
        goes: impl FnOnce(&Words, &Entry) -> Option<RemovalReason>,
    ) -> bool {
        let entry = SlabIndex::new(index).and_then(|place| Some((place, self.table.get(place)?)));
        let gone = entry.and_then(|(place, entry)| Some((place, goes(&self.words, entry)?)));
        if let Some((place, why)) = gone {
            self.remove(place, Some(why));
            self.shrink();
            self.tell();
        }
        gone.is_some()
    }

    /// Removes the replies of this key for which `goes` gives a reason. Returns how many went.
    pub(in crate::near::store) fn remove_of(
        &mut self,
        hash: KeyHash,
        key: &[u8],
        goes: impl Fn(&Entry) -> Option<RemovalReason>,
    ) -> usize {
        let (mut gone, mut at) = (0, self.table.first(hash, key));
        while let Some((place, entry)) = at.and_then(|at| Some((at, self.table.get(at)?))) {
            at = entry.next;
            if let why @ Some(_) = goes(entry) {
                self.remove(place, why);
                gone += 1;
            }
        }
        self.shrink();
        self.tell();
        gone
    }

    /// Frees what finds entries, where there are none.
    pub(super) fn shrink(&mut self) {
        if self.table.keys() == 0 {
            self.table.shrink();
            self.ghosts.clear();
        }
    }

    /// Frees the free blocks.
    pub(in crate::near::store) fn clear_blocks(&mut self) {
        self.blocks.clear();
    }
}
