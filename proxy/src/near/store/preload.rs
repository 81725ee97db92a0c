//! Prefetches the entries and words of keys that will be asked for soon into the processor's caches.
//!
//! A hit waits for three accesses to far memory, one after the other: the slot of the index, the entry, and
//! its record. Therefore the slot of a key is prefetched when the key is first seen, its entry when the next
//! key is seen, and its record when the one after that is seen.

use super::{KeyHash, slab_index::SlabIndex};
use crate::near::Near;

/// The keys of the last calls.
#[derive(Default)]
pub struct Preload {
    seen: Option<KeyHash>,
    found: Option<(KeyHash, SlabIndex)>,
}

impl Near {
    /// Begins to load the word and the slot of `key`, for which a request will come soon, and goes on with
    /// those before it. This is only a hint: a key for which none comes, or for which a route asks under
    /// another name, costs nothing but time.
    pub fn preload(&self, key: &[u8], preload: &mut Preload) {
        let hash = self.store.hash(key);
        self.words.preload(hash);
        // A lock that another thread holds is not worth waiting for.
        if let Some(shard) = self.store.try_shard(hash) {
            shard.table().preload_slot(hash);
        }
        self.preload_record(preload);
        if let Some(seen) = preload.seen.replace(hash) {
            self.preload_entry(seen, preload);
        }
    }

    /// The same for the next request of a pipeline: its slot is read at once.
    pub fn preload_next(&self, key: &[u8], preload: &mut Preload) {
        let hash = self.store.hash(key);
        self.words.preload(hash);
        self.preload_entry(hash, preload);
    }

    /// Begins to load the word of `key`, which a request will change soon. Most keys that are changed are not
    /// kept: to look for the reply ahead would cost more than it saves.
    pub fn preload_word(&self, key: &[u8]) {
        self.words.preload(self.store.hash(key));
    }

    fn preload_entry(&self, hash: KeyHash, preload: &mut Preload) {
        let shard = self.store.try_shard(hash);
        let place = shard.and_then(|shard| shard.table().preload(hash));
        preload.found = place.map(|place| (hash, place));
    }

    /// Begins to load the record of the entry that was asked for last.
    pub fn preload_record(&self, preload: &mut Preload) {
        if let Some((hash, place)) = preload.found.take()
            && let Some(shard) = self.store.try_shard(hash)
        {
            shard.table().preload_record(place);
        }
    }
}
