//! Austin Appleby's MurmurHash2, the 32-bit one and the 64-bit one for 64-bit machines (MurmurHash64A).

/// MurmurHash2 from the start value of libmemcached and twemproxy.
pub(super) fn murmur(key: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let length = key.len() as u32;
    let mut hash = 0xdead_beefu32.wrapping_mul(length) ^ length;
    let (words, tail) = key.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !tail.is_empty() {
        let mut word = [0; 4];
        word[..tail.len()].copy_from_slice(tail);
        hash = (hash ^ u32::from_le_bytes(word)).wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

/// MurmurHash64A of `message`.
pub fn murmur64a(message: &[u8], seed: u64) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let mut hash = seed ^ (message.len() as u64).wrapping_mul(M);
    let (words, tail) = message.as_chunks::<8>();
    for word in words {
        let mut k = u64::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 47;
        hash = (hash ^ k.wrapping_mul(M)).wrapping_mul(M);
    }
    if !tail.is_empty() {
        let mut word = [0; 8];
        word[..tail.len()].copy_from_slice(tail);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(M);
    }
    hash ^= hash >> 47;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 47)
}

#[cfg(test)]
mod tests {
    use super::murmur64a;

    #[test]
    fn known_answers() {
        let long = [b'a'; 200];
        let table: [(&[u8], u64, u64); 7] = [
            (b"key0", 17383349132741910200, 5876781416630073111),
            (b"key1", 3661943519051023364, 5667305792322193726),
            (b"key2", 7805944843728985948, 10608816964140752155),
            (b"foo", 7249769543815350787, 5821391046973631997),
            (b"abc:12:def", 16986517722772915360, 4839890247261845786),
            (b"user:1000", 10828450446182123623, 11113527151205626977),
            (&long, 17072416604135868825, 16502097483921884666),
        ];
        for (key, first, second) in table {
            assert_eq!(murmur64a(key, 4193360111), first, "{}", key.escape_ascii());
            assert_eq!(murmur64a(key, 2718281828), second, "{}", key.escape_ascii());
        }
    }
}
