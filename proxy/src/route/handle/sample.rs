//! The requests that one shadow gets: a share of those for some keys.

use std::collections::HashSet;

use proxima_wire::hash::{routing_key, spooky32};

/// The requests that one shadow gets.
#[derive(Debug)]
pub(in crate::route) struct Sample {
    /// The keys.
    pub(in crate::route) keys: SampledKeys,
    /// The share of the requests for these keys, from 0 to 1.
    pub(in crate::route) share: f64,
}

impl Sample {
    /// Does the shadow get a request for this key? `chance`: a random number, for one that gets a share.
    pub(super) fn takes(&self, key: &[u8], chance: u64) -> bool {
        let drawn = || (chance >> 11) as f64 / ((1_u64 << 53) as f64);
        self.keys.has(routing_key(key, true)) && (self.share >= 1.0 || drawn() < self.share)
    }
}

/// The keys that one shadow gets.
#[derive(Debug)]
pub(in crate::route) enum SampledKeys {
    /// Those whose hash lies between these, which count.
    Hashes(u32, u32),
    /// These.
    Listed(HashSet<Vec<u8>>),
}

impl SampledKeys {
    /// The keys in this part of all keys; 0 and 1 are the ends.
    pub(in crate::route) fn between(from: f64, to: f64) -> Self {
        let bound = |share: f64| (share * f64::from(u32::MAX)) as u32;
        Self::Hashes(bound(from), bound(to))
    }

    pub(super) fn has(&self, key: &[u8]) -> bool {
        match self {
            Self::Hashes(0, u32::MAX) => true,
            Self::Hashes(from, to) => (*from..=*to).contains(&spooky32(key, 0)),
            Self::Listed(keys) => keys.contains(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_all_keys_are_exact() {
        let keys = |sampled: &SampledKeys| -> Vec<u32> {
            (0..100)
                .filter(|number| sampled.has(format!("f{number}").as_bytes()))
                .collect()
        };
        let tenth = [5, 7, 13, 33, 43, 46, 58, 71, 83, 85, 89, 91, 93];
        assert_eq!(keys(&SampledKeys::between(0.0, 0.1)), tenth);
        let middle = [9, 10, 20, 26, 32, 34, 42, 47, 54, 63, 64, 98];
        assert_eq!(keys(&SampledKeys::between(0.4, 0.5)), middle);
        assert_eq!(keys(&SampledKeys::between(0.0, 1.0)).len(), 100);
        assert_eq!(keys(&SampledKeys::between(0.0, 0.0)).len(), 0);
        let listed = SampledKeys::Listed([b"f7".to_vec()].into());
        assert_eq!(keys(&listed), [7]);
    }
}
