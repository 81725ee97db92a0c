//! The keys that changed since a peer left. It has to delete them when it joins again.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

/// Keys remembered for one peer; beyond that, every key counts as changed.
const KEYS: usize = 10_000;
/// Bytes of keys remembered for one peer.
const BYTES: usize = 1 << 20;

/// The keys that a peer has missed changes of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissedByPeer {
    /// The hash of the pool's name, and the key; an empty key: all keys of the pool.
    keys: HashSet<(u64, Box<[u8]>)>,
    bytes: usize,
    everything: bool,
}

impl MissedByPeer {
    /// Every key that there is.
    pub fn everything() -> Self {
        Self {
            everything: true,
            ..Self::default()
        }
    }

    /// Adds a key of this pool; an empty key: all of them.
    pub fn add(&mut self, pool: u64, key: &[u8]) {
        if self.everything {
            return;
        }
        if self.keys.insert((pool, key.into())) {
            self.bytes += key.len();
        }
        if self.keys.len() > KEYS || self.bytes > BYTES {
            *self = Self::everything();
        }
    }

    /// Adds all keys of another one.
    pub fn merge(&mut self, other: &Self) {
        if other.everything {
            *self = Self::everything();
        }
        other.keys.iter().for_each(|(pool, key)| self.add(*pool, key));
    }

    /// The keys with their pools; `None`: everything.
    pub fn keys(&self) -> Option<impl Iterator<Item = (u64, &[u8])>> {
        (!self.everything).then(|| self.keys.iter().map(|(pool, key)| (*pool, &**key)))
    }

    /// The number of keys; `None`: everything.
    pub fn count(&self) -> Option<usize> {
        (!self.everything).then_some(self.keys.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_keys_than_are_remembered_are_everything() {
        let mut missed = MissedByPeer::default();
        for number in 0..KEYS {
            missed.add(1, number.to_string().as_bytes());
            missed.add(1, number.to_string().as_bytes());
        }
        assert_eq!(missed.count(), Some(KEYS));
        missed.add(1, b"one more");
        assert_eq!(missed.count(), None);
        let mut other = MissedByPeer::default();
        other.merge(&missed);
        assert_eq!(other, MissedByPeer::everything());
    }
}
