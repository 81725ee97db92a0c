//! The hash of a key, which finds its word and its shard.

/// The hash of a key, as the server sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyHash(pub(super) u64);

impl KeyHash {
    /// The number of its word.
    pub(super) const fn word(self) -> usize {
        (self.0 >> 48) as usize
    }

    /// The number of its shard, of so many.
    pub(super) const fn shard(self, shards: usize) -> usize {
        (self.0 >> 32) as usize % shards
    }
}
