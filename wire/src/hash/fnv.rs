//! Fowler, Noll and Vo's hashes as libmemcached and twemproxy compute them: bytes taken as C's signed `char`.
//!
//! The 64-bit ones are only ever used by their low 32 bits. Neither a product nor an exclusive or carries anything
//! downwards, so the low halves of basis and prime are all that is needed.

use super::sign_extended;

const BASIS_32: u32 = 0x811c_9dc5;
const PRIME_32: u32 = 0x0100_0193;
/// Low half of the 64-bit offset basis.
const BASIS_64: u32 = 0x8422_2325;
/// Low half of the 64-bit prime.
const PRIME_64: u32 = 0x0000_01b3;

fn fnv1(basis: u32, prime: u32, key: &[u8]) -> u32 {
    key.iter().fold(basis, |hash, &byte| {
        hash.wrapping_mul(prime) ^ sign_extended(byte)
    })
}

fn fnv1a(basis: u32, prime: u32, key: &[u8]) -> u32 {
    key.iter().fold(basis, |hash, &byte| {
        (hash ^ sign_extended(byte)).wrapping_mul(prime)
    })
}

pub(super) fn fnv1_64(key: &[u8]) -> u32 {
    fnv1(BASIS_64, PRIME_64, key)
}

pub(super) fn fnv1a_64(key: &[u8]) -> u32 {
    fnv1a(BASIS_64, PRIME_64, key)
}

pub(super) fn fnv1_32(key: &[u8]) -> u32 {
    fnv1(BASIS_32, PRIME_32, key)
}

pub(super) fn fnv1a_32(key: &[u8]) -> u32 {
    fnv1a(BASIS_32, PRIME_32, key)
}
