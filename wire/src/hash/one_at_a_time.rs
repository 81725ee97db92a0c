//! Bob Jenkins's one-at-a-time hash.

use super::sign_extended;

/// One-at-a-time from 0, bytes taken as C's signed `char`.
pub(super) fn one_at_a_time(key: &[u8]) -> u32 {
    let mut hash = 0u32;
    for &byte in key {
        hash = hash.wrapping_add(sign_extended(byte));
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}
