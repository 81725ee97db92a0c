//! Paul Hsieh's SuperFastHash.

/// SuperFastHash from 0 (not from the length). The third byte of a tail of three is read as C's signed
/// `char`, the single byte of a tail of one is not.
pub(super) fn hsieh(key: &[u8]) -> u32 {
    let (words, tail) = key.as_chunks::<4>();
    let mut hash = 0u32;
    for &[a, b, c, d] in words {
        hash = hash.wrapping_add(half(a, b));
        hash = (hash << 16) ^ (half(c, d) << 11) ^ hash;
        hash = hash.wrapping_add(hash >> 11);
    }
    match *tail {
        [a, b, c] => {
            hash = hash.wrapping_add(half(a, b));
            hash ^= hash << 16;
            hash ^= super::sign_extended(c) << 18;
            hash = hash.wrapping_add(hash >> 11);
        }
        [a, b] => {
            hash = hash.wrapping_add(half(a, b));
            hash ^= hash << 11;
            hash = hash.wrapping_add(hash >> 17);
        }
        [a] => {
            hash = hash.wrapping_add(u32::from(a));
            hash ^= hash << 10;
            hash = hash.wrapping_add(hash >> 1);
        }
        _ => {}
    }
    hash ^= hash << 3;
    hash = hash.wrapping_add(hash >> 5);
    hash ^= hash << 4;
    hash = hash.wrapping_add(hash >> 17);
    hash ^= hash << 25;
    hash.wrapping_add(hash >> 6)
}

fn half(low: u8, high: u8) -> u32 {
    u32::from(u16::from_le_bytes([low, high]))
}
