//! The hash of a key, which finds its word and its shard, and a hasher for tables whose keys are hashes
//! already.

use std::hash::{BuildHasherDefault, Hasher};

/// The hash of a key, as the server sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyHash(pub(super) u64);

impl KeyHash {
    /// The number of its word.
    pub(super) const fn word(self) -> usize {
        (self.0 >> 48) as usize
    }

    /// The number of its shard among this number of shards.
    pub(super) const fn shard(self, shards: usize) -> usize {
        (self.0 >> 32) as usize % shards
    }
}

/// The hasher of tables whose keys are hashes already.
pub type BuildKeyHasher = BuildHasherDefault<KeyHasher>;

/// Passes a hash on as it is.
#[derive(Default)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
