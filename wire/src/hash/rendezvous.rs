//! Rendezvous hashing (highest random weight, Thaler and Ravishankar 1998) with mcrouter's scores.
//!
//! Every member has a score for the key, and the highest wins. A member that leaves moves only its own keys.

use super::{furc, murmur::murmur64a};

const KEY_SEED: u64 = 2_718_281_828;

/// Members without weights.
#[derive(Debug)]
pub(super) struct Rendezvous {
    /// Hash of the name, by member.
    names: Vec<u64>,
}

impl Rendezvous {
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        Self {
            names: names.map(name_hash).collect(),
        }
    }

    /// The live member with the highest score, compared as doubles. The last of several with the same score
    /// wins.
    pub(super) fn pick_live(&self, key: &[u8], is_live: impl Fn(usize) -> bool) -> Option<usize> {
        let key = murmur64a(key, KEY_SEED);
        let mut best = None;
        let mut highest = 0.0;
        for (member, &name) in self.names.iter().enumerate() {
            let score = mix(name, key) as f64;
            if score >= highest && is_live(member) {
                (best, highest) = (Some(member), score);
            }
        }
        best
    }
}

/// Members with weights. A change of one weight moves keys only to or from that member.
#[derive(Debug)]
pub(super) struct WeightedRendezvous {
    /// Hash of the name and weight, by member.
    members: Vec<(u64, f64)>,
}

impl WeightedRendezvous {
    pub(super) fn new<'a>(members: impl Iterator<Item = (&'a str, f64)>) -> Self {
        Self {
            members: members.map(|(name, weight)| (name_hash(name), weight)).collect(),
        }
    }

    /// The live member with a weight and the highest score. The first of several with the same score wins.
    pub(super) fn pick_live(&self, key: &[u8], is_live: impl Fn(usize) -> bool) -> Option<usize> {
        const DRAWS: u64 = 1 << 53;
        let key = murmur64a(key, KEY_SEED);
        let mut best = None;
        let mut highest = -1.0;
        for (member, &(name, weight)) in self.members.iter().enumerate() {
            let draw = (mix(name, key) & (DRAWS - 1)) as f64 / DRAWS as f64;
            let score = weight / -draw.ln();
            if weight > 0.0 && score > highest && is_live(member) {
                (best, highest) = (Some(member), score);
            }
        }
        best
    }
}

fn name_hash(name: &str) -> u64 {
    murmur64a(name.as_bytes(), furc::SEED)
}

/// CityHash's mix of two 64-bit hashes.
fn mix(upper: u64, lower: u64) -> u64 {
    const K: u64 = 0x9ddf_ea08_eb38_2d69;
    let mut a = (lower ^ upper).wrapping_mul(K);
    a ^= a >> 47;
    let mut b = (upper ^ a).wrapping_mul(K);
    b ^= b >> 47;
    b.wrapping_mul(K)
}

#[cfg(test)]
mod tests {
    use super::{Rendezvous, WeightedRendezvous};

    #[test]
    fn known_answers() {
        let names = ["s0", "s1", "s2", "s3", "s4"];
        let even = Rendezvous::new(names.into_iter());
        let weighted = |weights: [f64; 5]| WeightedRendezvous::new(names.into_iter().zip(weights));
        let (ones, mixed) = (weighted([1.0; 5]), weighted([1.0, 2.0, 3.0, 0.0, 1.0]));
        let long = [b'a'; 200];
        let table: [(&[u8], usize, usize, usize); 7] = [
            (b"key0", 2, 1, 1),
            (b"key1", 1, 1, 1),
            (b"key2", 0, 3, 2),
            (b"foo", 3, 0, 0),
            (b"abc:12:def", 1, 3, 1),
            (b"user:1000", 0, 1, 1),
            (&long, 0, 0, 2),
        ];
        for (key, a, b, c) in table {
            let all = |_| true;
            assert_eq!(even.pick_live(key, all), Some(a), "{}", key.escape_ascii());
            assert_eq!(ones.pick_live(key, all), Some(b), "{}", key.escape_ascii());
            assert_eq!(mixed.pick_live(key, all), Some(c), "{}", key.escape_ascii());
        }
    }
}
