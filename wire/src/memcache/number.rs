//! Decimal numbers, as strictly as any memcached reads them: digits, for signed ones after an optional minus, nothing else.

/// A number of up to 64 bits.
#[inline]
pub(super) fn unsigned64(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    let mut number = 0_u64;
    for &byte in word {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(number)
}

/// A number of up to 32 bits.
#[inline]
pub(super) fn unsigned32(word: &[u8]) -> Option<u32> {
    unsigned64(word)?.try_into().ok()
}

/// A number of up to 31 bits, maybe negative.
#[inline]
pub(super) fn signed32(word: &[u8]) -> Option<i32> {
    match word {
        [b'-', digits @ ..] => 0_i64.checked_sub_unsigned(unsigned64(digits)?)?.try_into().ok(),
        digits => unsigned64(digits)?.try_into().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::{signed32, unsigned32, unsigned64};

    #[test]
    fn edges() {
        assert_eq!(unsigned64(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(unsigned64(b"18446744073709551616"), None);
        assert_eq!(unsigned64(b"00000000000000000000000000007"), Some(7));
        assert_eq!(unsigned32(b"4294967295"), Some(u32::MAX));
        assert_eq!(unsigned32(b"4294967296"), None);
        assert_eq!(signed32(b"-2147483648"), Some(i32::MIN));
        assert_eq!(signed32(b"-2147483649"), None);
        assert_eq!(signed32(b"2147483647"), Some(i32::MAX));
        assert_eq!(signed32(b"2147483648"), None);
        assert_eq!(signed32(b"-18446744073709551615"), None);
        for word in [
            &b""[..],
            b"-",
            b"+1",
            b"1 ",
            b"1\t",
            b"--1",
            b"0x1",
            b"1e3",
            b"\xb21",
        ] {
            assert_eq!(signed32(word), None, "{word:?}");
            assert_eq!(unsigned64(word), None, "{word:?}");
        }
    }
}
