//! Searches eight bytes at a time. Keys and words are short, and for them a call to `memchr` costs more than
//! it saves.

/// The first byte from `start` on that `mark` marks, or the length of `text`. For eight bytes, `mark` sets
/// the highest bit of each marked byte, and must be exact up to the first one. The first byte is the lowest.
#[inline]
pub(crate) fn find(text: &[u8], start: usize, mark: impl Fn(u64) -> u64) -> usize {
    let mut at = start;
    while let Some(eight) = text.get(at..).and_then(|rest| rest.first_chunk()) {
        let marks = mark(u64::from_le_bytes(*eight));
        if marks != 0 {
            return at + (marks.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    // Less than eight bytes are left. The last eight of the text are examined, without those that were
    // examined already.
    let left = text.len() - at;
    match text.last_chunk() {
        Some(eight) if left > 0 => {
            let unseen = u64::from_le_bytes(*eight) >> (8 * (8 - left));
            at + left.min((mark(unseen).trailing_zeros() / 8) as usize)
        }
        Some(_) => at,
        None => {
            let marked = |&byte: &u8| mark(u64::from(byte)) & 0x80 != 0;
            at + text[at..].iter().position(marked).unwrap_or(left)
        }
    }
}

/// Marks bytes that equal `byte`, exactly up to the first one (the well-known test for a zero byte in a
/// word).
#[inline]
pub(crate) fn equal(eight: u64, byte: u8) -> u64 {
    below(eight ^ u64::from_le_bytes([byte; 8]), 1)
}

/// Marks bytes below `limit`, which is at most 0x80, exactly up to the first one.
#[inline]
pub(crate) fn below(eight: u64, limit: u8) -> u64 {
    eight.wrapping_sub(u64::from_le_bytes([limit; 8])) & !eight & u64::from_le_bytes([0x80; 8])
}
