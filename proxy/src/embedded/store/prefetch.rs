//! Prefetches the items of keys that will be asked for soon into the processor's caches.
//!
//! A lookup waits for two accesses to far memory, one after the other: the slot, then the item to which it
//! leads. Therefore the slot of a key is prefetched when the key is first seen, and its item when the next
//! key is seen.

use super::{Store, table::Hash};

/// The key of the previous call.
#[derive(Default)]
pub struct Prefetch(Option<Hash>);

impl Store {
    /// Starts loading the memory of `key`, for which a request will come soon. This is only a hint: a key for
    /// which none comes costs nothing but time.
    pub fn prefetch(&self, key: &[u8], prefetch: &mut Prefetch) {
        let hash = self.hash(key);
        // A lock that another thread holds is not worth waiting for.
        if let Some(shard) = self.line(hash.shard()).try_lock() {
            shard.preload_slots(hash);
        }
        if let Some(last) = prefetch.0.replace(hash)
            && let Some(shard) = self.line(last.shard()).try_lock()
        {
            shard.preload_item(last);
        }
    }
}
