//! What is remembered of the key that a request has, until its reply has come.

/// Length and checksum of a key. A reply that names a key with another fingerprint is the reply to another
/// request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    /// Bytes of the key; 0: no key is expected in the reply.
    pub(crate) len: u8,
    sum: u32,
}

impl Fingerprint {
    /// The reply may name any key, or none.
    pub const NONE: Self = Self { len: 0, sum: 0 };

    /// That of a key. A key that is longer than any of memcached's has none.
    #[inline]
    pub fn of(key: &[u8]) -> Self {
        match u8::try_from(key.len()) {
            Ok(len) => Self { len, sum: sum(key) },
            Err(_) => Self::NONE,
        }
    }

    /// Whether a key is expected.
    #[inline]
    pub const fn is_some(self) -> bool {
        self.len != 0
    }
}

/// A checksum of all bytes, eight at a time. It need not resist an attacker: a server that lies may as well
/// name the right key.
#[inline]
fn sum(key: &[u8]) -> u32 {
    // Each step is a bijection of 64 bits, so that one word that differs changes the result.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let (mut sum, mut rest) = (0_u64, key);
    while let Some((eight, behind)) = rest.split_first_chunk() {
        sum = (sum ^ u64::from_le_bytes(*eight)).wrapping_mul(FACTOR);
        rest = behind;
    }
    if !rest.is_empty() {
        sum = (sum ^ last(key)).wrapping_mul(FACTOR);
    }
    (sum ^ sum >> 32) as u32
}

/// The last eight bytes, or all that there are.
#[inline]
fn last(key: &[u8]) -> u64 {
    if let Some(eight) = key.last_chunk() {
        return u64::from_le_bytes(*eight);
    }
    match (key.first_chunk(), key.last_chunk()) {
        (Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32
        }
        _ => key.iter().fold(0, |all, &byte| all << 8 | u64::from(byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::Fingerprint;

    #[test]
    fn every_byte_of_a_key_counts() {
        for len in 1..=250_usize {
            let key: Vec<u8> = (0..len).map(|i| b'a' + (i % 26) as u8).collect();
            let own = Fingerprint::of(&key);
            assert!(own.is_some());
            for at in 0..len {
                for change in [1, 2, 0x80] {
                    let mut other = key.clone();
                    other[at] ^= change;
                    assert_ne!(Fingerprint::of(&other), own, "{len} {at} {change}");
                }
            }
            assert_ne!(Fingerprint::of(&key[1..]), own);
            assert_ne!(Fingerprint::of(&key[..len - 1]), own);
        }
        assert_eq!(Fingerprint::of(b""), Fingerprint::NONE);
        assert_eq!(Fingerprint::of(&[b'k'; 256]), Fingerprint::NONE);
    }

    #[test]
    fn similar_keys_differ() {
        let keys = (0..100_000).map(|i| format!("user:{i:08}:profile"));
        let all: std::collections::HashSet<u32> =
            keys.map(|key| Fingerprint::of(key.as_bytes()).sum).collect();
        assert!(all.len() > 99_990, "{}", all.len());
    }
}
