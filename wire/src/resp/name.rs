//! The hash of a command's name. The build script uses this file too: it finds the seed with which no two
//! names share a slot.

/// Bits of a place in the table of names.
pub(crate) const BITS: u32 = 13;

/// The place of this name, in any case. Names that differ in their first and last bytes and in length have
/// different hashes for almost every seed.
#[inline]
pub(crate) fn place(name: &[u8], seed: u64) -> usize {
    let (first, last) = match (name.first_chunk::<8>(), name.last_chunk::<8>()) {
        (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
        _ => match (name.first_chunk::<4>(), name.last_chunk::<4>()) {
            (Some(first), Some(last)) => (
                u64::from(u32::from_le_bytes(*first)),
                u64::from(u32::from_le_bytes(*last)),
            ),
            _ => short(name),
        },
    };
    // This bit tells capital letters from small ones.
    const CASE: u64 = 0x2020_2020_2020_2020;
    let mixed = (first | CASE) ^ (last | CASE).rotate_left(29) ^ name.len() as u64;
    (mixed.wrapping_mul(seed) >> (64 - BITS)) as usize
}

/// The bytes of a name of up to three.
fn short(name: &[u8]) -> (u64, u64) {
    let byte = |at: usize| name.get(at).map_or(0, |&byte| u64::from(byte));
    (byte(0) | byte(1) << 8, byte(2))
}
