//! furc, mcrouter's consistent hash without a table ("Ch3").
//!
//! A key's hash is an endless row of bits. The tree of buckets is walked from the root down. A clear bit
//! leaves the key in the smaller half, so that growing from m to m + 1 buckets moves only the keys that go to
//! the new one.

use super::murmur::murmur64a;

/// Seed of the row of bits, and of mcrouter's rendezvous tags.
pub(super) const SEED: u64 = 4_193_360_111;
/// Distance in the row between the bits of one number.
const STRIDE: usize = 23;
/// Numbers at or beyond the count of buckets that are drawn before giving up.
const TRIES: usize = 32;

/// The bucket of `key` among `buckets`. Up to 2^23 buckets the tree's bits do not overlap; zero or one
/// bucket: 0.
pub fn furc(key: &[u8], buckets: usize) -> usize {
    let mut depth = (usize::BITS - buckets.saturating_sub(1).leading_zeros()) as usize;
    if depth == 0 {
        return 0;
    }
    let mut bits = Bits::of(key);
    let mut at = depth;
    for _ in 0..TRIES {
        while bits.get(at) == 0 {
            depth -= 1;
            if depth == 0 {
                return 0;
            }
            at = depth;
        }
        at += STRIDE;
        let mut bucket = 1;
        for _ in 1..depth {
            bucket = 2 * bucket + bits.get(at);
            at += STRIDE;
        }
        if bucket < buckets {
            return bucket;
        }
    }
    0
}

/// The row of bits. The first word is a hash of the key, each further one a hash of its predecessor.
struct Bits {
    first: u64,
    word: u64,
    /// The position of `word` in the row.
    index: usize,
}

impl Bits {
    fn of(key: &[u8]) -> Self {
        let first = murmur64a(key, SEED);
        Self {
            first,
            word: first,
            index: 0,
        }
    }

    fn get(&mut self, at: usize) -> usize {
        let wanted = at / 64;
        if wanted < self.index {
            self.word = self.first;
            self.index = 0;
        }
        while self.index < wanted {
            self.word = murmur64a(&self.word.to_le_bytes(), SEED);
            self.index += 1;
        }
        (self.word >> (at % 64)) as usize & 1
    }
}

#[cfg(test)]
mod tests {
    use super::furc;

    #[test]
    fn known_answers() {
        let long = [b'a'; 200];
        let buckets = [2, 3, 5, 10, 16, 100, 1000];
        let table: [(&[u8], [usize; 7]); 7] = [
            (b"key0", [0, 0, 4, 7, 14, 22, 950]),
            (b"key1", [0, 2, 2, 2, 2, 2, 808]),
            (b"key2", [0, 0, 4, 4, 14, 40, 794]),
            (b"foo", [1, 1, 1, 1, 1, 1, 478]),
            (b"abc:12:def", [0, 0, 0, 0, 0, 94, 914]),
            (b"user:1000", [1, 2, 2, 2, 2, 54, 54]),
            (&long, [0, 0, 4, 4, 14, 94, 240]),
        ];
        for (key, answers) in table {
            for (buckets, answer) in buckets.into_iter().zip(answers) {
                assert_eq!(furc(key, buckets), answer, "{} of {buckets}", key.escape_ascii());
            }
            assert_eq!((furc(key, 0), furc(key, 1)), (0, 0));
        }
    }
}
