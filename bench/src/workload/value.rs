//! The value that belongs to a key: derived from the key alone, so that a reader recognises every wrong byte.
//!
//! A value is the key itself, then bytes of one fixed pseudo-random table, entered at a place that the key's
//! hash names. Every 256 bytes the table reads like the end of a reply: a codec that looks for the end of a
//! value instead of counting is found out.

use std::sync::LazyLock;

/// Length of the table; a prime, so that the repeats of a long value do not fall on powers of two.
const PERIOD: usize = 65_521;

/// The end of the reply to a get.
const FALSE_END: &[u8] = b"\r\nEND\r\n";

static TABLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    // SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
    let mut state = 0u64;
    let random = std::iter::repeat_with(|| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as u8
    })
    .take(PERIOD);
    let mut table: Vec<u8> = random.collect();
    table
        .chunks_exact_mut(256)
        .for_each(|part| part[..FALSE_END.len()].copy_from_slice(FALSE_END));
    table
});

/// Appends the value of `key`, `size` bytes long, to `out`.
pub(crate) fn append(key: &[u8], size: usize, out: &mut Vec<u8>) {
    pieces(key, size).for_each(|piece| out.extend_from_slice(piece));
}

/// Whether `bytes` are the value of `key`, whole.
pub(crate) fn matches(key: &[u8], bytes: &[u8]) -> bool {
    let mut rest = bytes;
    pieces(key, bytes.len()).all(|piece| match rest.split_at_checked(piece.len()) {
        Some((head, tail)) => {
            rest = tail;
            head == piece
        }
        None => false,
    })
}

/// The value as slices that exist already: the key, the table from the key's place on, the table again and
/// again.
fn pieces(key: &[u8], size: usize) -> impl Iterator<Item = &[u8]> {
    let place = fnv1a(key) as usize % PERIOD;
    let mut left = size;
    std::iter::once(key)
        .chain(std::iter::once(&TABLE[place..]))
        .chain(std::iter::repeat_with(|| &TABLE[..]))
        .map_while(move |source| {
            let taken = source.len().min(left);
            left -= taken;
            (taken > 0).then(|| &source[..taken])
        })
}

/// FNV-1a, 64 bits.
fn fnv1a(key: &[u8]) -> u64 {
    key.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(key: &[u8], size: usize) -> Vec<u8> {
        let mut out = Vec::new();
        append(key, size, &mut out);
        out
    }

    #[test]
    fn a_value_matches_its_key_at_every_size() {
        for size in [0, 1, 3, 4, 400, PERIOD, PERIOD + 4, 3 * PERIOD + 17] {
            let bytes = value(b"key1", size);
            assert_eq!(bytes.len(), size);
            assert!(matches(b"key1", &bytes), "size {size}");
        }
    }

    #[test]
    fn one_wrong_byte_anywhere_is_seen() {
        let good = value(b"key1", 400);
        for place in 0..good.len() {
            let mut bad = good.clone();
            bad[place] ^= 1;
            assert!(!matches(b"key1", &bad), "byte {place}");
        }
    }

    #[test]
    fn another_keys_value_is_seen_even_without_the_key_in_it() {
        assert_ne!(value(b"key1", 400)[4..], value(b"key2", 400)[4..]);
    }

    #[test]
    fn values_hold_what_ends_a_reply() {
        for key in [&b"key1"[..], b"key2", b"another"] {
            let value = value(key, 400);
            assert!(value.windows(FALSE_END.len()).any(|part| part == FALSE_END));
        }
    }
}
