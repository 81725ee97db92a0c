//! Fowler, Noll and Vo's hashes as libmemcached and twemproxy compute them, which read bytes as C's signed
//! `char`.
//!
//! Only the low 32 bits of the 64-bit hashes are used. Neither a product nor an exclusive or carries anything
//! downwards, so the low halves of basis and prime are enough.

use super::sign_extended;

const BASIS_32: u32 = 0x811c_9dc5;
const PRIME_32: u32 = 0x0100_0193;
/// Low half of the 64-bit offset basis.
const BASIS_64: u32 = 0x8422_2325;
/// Low half of the 64-bit prime.
const PRIME_64: u32 = 0x0000_01b3;

#[inline]
fn fnv1(basis: u32, prime: u32, key: &[u8]) -> u32 {
    key.iter().fold(basis, |hash, &byte| {
        hash.wrapping_mul(prime) ^ sign_extended(byte)
    })
}

#[inline]
fn fnv1a(basis: u32, prime: u32, key: &[u8]) -> u32 {
    key.iter().fold(basis, |hash, &byte| {
        (hash ^ sign_extended(byte)).wrapping_mul(prime)
    })
}

/// Four hashes at once. Each byte waits four cycles for the product of the one before it; meanwhile the other
/// three are computed.
#[inline]
fn fnv1a_four(basis: u32, prime: u32, keys: [&[u8]; 4]) -> [u32; 4] {
    let all = keys.iter().map(|key| key.len()).min().unwrap_or(0);
    let [a, b, c, d] = keys.map(|key| &key[..all]);
    let mut hashes = [basis; 4];
    for (((a, b), c), d) in a.iter().zip(b).zip(c).zip(d) {
        for (hash, &byte) in hashes.iter_mut().zip([a, b, c, d]) {
            *hash = (*hash ^ sign_extended(byte)).wrapping_mul(prime);
        }
    }
    for (hash, key) in hashes.iter_mut().zip(keys) {
        *hash = fnv1a(*hash, prime, &key[all..]);
    }
    hashes
}

#[inline]
pub(super) fn fnv1a_64_four(keys: [&[u8]; 4]) -> [u32; 4] {
    fnv1a_four(BASIS_64, PRIME_64, keys)
}

#[inline]
pub(super) fn fnv1a_32_four(keys: [&[u8]; 4]) -> [u32; 4] {
    fnv1a_four(BASIS_32, PRIME_32, keys)
}

#[inline]
pub(super) fn fnv1_64(key: &[u8]) -> u32 {
    fnv1(BASIS_64, PRIME_64, key)
}

#[inline]
pub(super) fn fnv1a_64(key: &[u8]) -> u32 {
    fnv1a(BASIS_64, PRIME_64, key)
}

#[inline]
pub(super) fn fnv1_32(key: &[u8]) -> u32 {
    fnv1(BASIS_32, PRIME_32, key)
}

#[inline]
pub(super) fn fnv1a_32(key: &[u8]) -> u32 {
    fnv1a(BASIS_32, PRIME_32, key)
}
