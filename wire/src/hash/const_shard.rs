//! mcrouter's ConstShard: the key names its member.

use std::ops::Range;

/// The position of the text between the first two colons of `key`; `None` without two colons.
#[inline]
pub fn shard(key: &[u8]) -> Option<Range<usize>> {
    let mut colons = memchr::memchr_iter(b':', key);
    Some(colons.next()? + 1..colons.next()?)
}

/// The number between the first two colons of `key` (`x:12:y` → 12), if it is one in digits below `members`.
pub(super) fn const_shard(key: &[u8], members: usize) -> Option<usize> {
    let shard = &key[shard(key)?];
    if shard.is_empty() {
        return None;
    }
    let shard = shard.iter().try_fold(0usize, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| usize::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })?;
    (shard < members).then_some(shard)
}

#[cfg(test)]
mod tests {
    use super::const_shard;

    #[test]
    fn only_a_number_in_range_between_two_colons() {
        assert_eq!(const_shard(b"abc:12:def", 16), Some(12));
        assert_eq!(const_shard(b"abc:012:def:7:", 16), Some(12));
        assert_eq!(const_shard(b":0:", 1), Some(0));
        for key in [
            "abc:16:x",
            "abc:1",
            "abc::x",
            "abc:x:1:",
            "abc:-1:x",
            "abc:+1:x",
            "",
            ":",
            "a:99999999999999999999:",
        ] {
            assert_eq!(const_shard(key.as_bytes(), 16), None, "{key}");
        }
    }
}
