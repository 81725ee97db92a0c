//! Decimal numbers, as every memcached reads them.

/// The largest length of a value, in bytes, that memcached reads as such. It refuses a line with a larger one and takes
/// what follows for commands.
pub(super) const LENGTH: u64 = i32::MAX as u64 - 2;

/// A value's length: digits only, and no more of them than the largest one has. Servers differ in what else they take
/// for a number, and here that matters.
#[inline]
pub(super) fn length(word: &[u8]) -> Option<u64> {
    unsigned(word).filter(|&length| length <= LENGTH && word.len() <= 10)
}

/// The number at the beginning of `bytes` and how many digits it has; none if there are none, or it exceeds 64 bits.
#[inline]
pub(super) fn leading(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0_u64;
    let mut len = 0;
    while let Some(digit @ 0..=9) = bytes.get(len).map(|byte| byte.wrapping_sub(b'0')) {
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
        len += 1;
    }
    match len {
        0 => None,
        // Nineteen digits cannot exceed 64 bits.
        1..20 => Some((number, len)),
        _ => Some((checked(&bytes[..len])?, len)),
    }
}

#[cold]
fn checked(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |number, byte| {
        number.checked_mul(10)?.checked_add(u64::from(byte - b'0'))
    })
}

/// A number of up to 64 bits: digits and nothing else.
#[inline]
pub(super) fn unsigned(word: &[u8]) -> Option<u64> {
    leading(word)
        .filter(|&(_, len)| len == word.len())
        .map(|(number, _)| number)
}

/// Is this a number of up to 64 bits, maybe with a plus?
#[inline]
pub(super) fn is_unsigned(word: &[u8]) -> bool {
    unsigned(word.strip_prefix(b"+").unwrap_or(word)).is_some()
}

/// Is this a number of up to 64 bits with its sign, if any? Expiry times are 32 bits wide, but memcached drops the higher
/// ones of a larger number instead of refusing it.
#[inline]
pub(super) fn is_signed(word: &[u8]) -> bool {
    let (digits, limit) = match word {
        [b'-', digits @ ..] => (digits, i64::MIN.unsigned_abs()),
        [b'+', digits @ ..] => (digits, i64::MAX as u64),
        digits => (digits, i64::MAX as u64),
    };
    unsigned(digits).is_some_and(|number| number <= limit)
}

#[cfg(test)]
mod tests {
    use super::{LENGTH, is_signed, is_unsigned, length, unsigned};

    #[test]
    fn edges() {
        assert_eq!(unsigned(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(unsigned(b"18446744073709551616"), None);
        assert_eq!(unsigned(b"00000000000000000000000000007"), Some(7));
        assert_eq!(
            (length(b"2147483645"), length(b"2147483646")),
            (Some(LENGTH), None)
        );
        assert_eq!((length(b"0000000007"), length(b"00000000007")), (Some(7), None));
        assert!(is_unsigned(b"+18446744073709551615") && !is_unsigned(b"+18446744073709551616"));
        assert!(is_signed(b"-9223372036854775808") && !is_signed(b"-9223372036854775809"));
        assert!(is_signed(b"9223372036854775807") && !is_signed(b"+9223372036854775808"));
    }

    #[test]
    fn nothing_but_digits() {
        for word in [
            &b""[..],
            b"-",
            b"+",
            b"1 ",
            b"1\t",
            b"\t1",
            b"--1",
            b"+-1",
            b"0x1",
            b"1e3",
            b"\xb21",
        ] {
            assert_eq!((length(word), unsigned(word)), (None, None), "{word:?}");
            assert!(!is_unsigned(word) && !is_signed(word), "{word:?}");
        }
        assert_eq!(length(b"+1"), None);
        assert!(!is_unsigned(b"-1"));
    }
}
