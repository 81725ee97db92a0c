//! shadow: one child answers, and copies of some requests go to other routes, as mcrouter shadows. Child 0
//! answers; child `n` gets the copies of shadow `n - 1`.

use std::{collections::HashSet, sync::Arc};

use proxima_wire::hash::{routing_key, spooky32};

use super::Random;
use crate::route::tree::{Fan, Query};

/// The requests that one shadow gets.
#[derive(Debug)]
pub(in crate::route) struct Sample {
    /// The keys.
    pub(in crate::route) keys: Sampled,
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
pub(in crate::route) enum Sampled {
    /// Those whose hash lies between these, which count.
    Hashes(u32, u32),
    /// These.
    Listed(HashSet<Vec<u8>>),
}

impl Sampled {
    /// The keys in this part of all keys; 0 and 1 are the ends.
    pub(in crate::route) fn between(from: f64, to: f64) -> Self {
        let bound = |share: f64| (share * f64::from(u32::MAX)) as u32;
        Self::Hashes(bound(from), bound(to))
    }

    fn has(&self, key: &[u8]) -> bool {
        match self {
            Self::Hashes(0, u32::MAX) => true,
            Self::Hashes(from, to) => (*from..=*to).contains(&spooky32(key, 0)),
            Self::Listed(keys) => keys.contains(key),
        }
    }
}

/// The route `shadow`.
#[derive(Debug)]
pub(in crate::route) struct Shadow {
    /// What each shadow gets.
    pub(in crate::route) samples: Arc<[Sample]>,
    /// The numbers of the commands about leases, which the last child serves; `None`: the protocol has none.
    pub(in crate::route) leases: Option<[u16; 2]>,
}

impl Fan for Shadow {
    fn name(&self) -> &'static str {
        "shadow"
    }

    fn choose(&self, query: &Query<'_>, random: &mut Random, others: &mut Vec<u32>) -> usize {
        if self.leases.is_some_and(|leases| leases.contains(&query.command)) {
            return 1 + self.samples.len();
        }
        let key = routing_key(query.key, true);
        for (sample, child) in self.samples.iter().zip(1..) {
            if sample.keys.has(key) && (sample.share >= 1.0 || random.fraction() < sample.share) {
                others.push(child);
            }
        }
        0
    }

    fn shadows(&self) -> bool {
        true
    }

    fn why(&self, query: &Query<'_>) -> String {
        let key = routing_key(query.key, true);
        let samples = self.samples.iter().filter(|sample| sample.keys.has(key));
        format!(
            "{} of {} shadows have this key",
            samples.count(),
            self.samples.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_all_keys_are_exact() {
        let keys = |sampled: &Sampled| -> Vec<u32> {
            (0..100)
                .filter(|number| sampled.has(format!("f{number}").as_bytes()))
                .collect()
        };
        let tenth = [5, 7, 13, 33, 43, 46, 58, 71, 83, 85, 89, 91, 93];
        assert_eq!(keys(&Sampled::between(0.0, 0.1)), tenth);
        let middle = [9, 10, 20, 26, 32, 34, 42, 47, 54, 63, 64, 98];
        assert_eq!(keys(&Sampled::between(0.4, 0.5)), middle);
        assert_eq!(keys(&Sampled::between(0.0, 1.0)).len(), 100);
        assert_eq!(keys(&Sampled::between(0.0, 0.0)).len(), 0);
        let listed = Sampled::Listed([b"f7".to_vec()].into());
        assert_eq!(keys(&listed), [7]);
    }
}
