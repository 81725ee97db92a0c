//! Decimal numbers as every memcached reads them.

/// The largest length of a value in bytes. memcached refuses a line with a larger one and reads the following
/// bytes as commands.
pub(super) const LENGTH: u64 = i32::MAX as u64 - 2;

/// A value's length: only digits, and no more of them than the largest one has. Servers differ in what else
/// they take for a number, and here that matters.
#[inline]
pub(super) fn length(word: &[u8]) -> Option<u64> {
    digits(word).filter(|&length| length <= LENGTH && word.len() <= 10)
}

/// A value's length as the newest server reads it, which also accepts a minus before zeros, and one more
/// digit. For a line that is refused, this is the number of bytes after it that belong to it.
pub(super) fn lenient_length(word: &[u8]) -> Option<u64> {
    let number = word.strip_prefix(b"-").unwrap_or(word);
    let is_read = word.len() <= 11 && number.iter().all(u8::is_ascii_digit);
    let length = leading(number).map_or(0, |(length, _)| length);
    (is_read && length <= LENGTH && (length == 0 || number.len() == word.len())).then_some(length)
}

/// The number at the beginning of `bytes` and the number of its digits. `None`: there are no digits, or it
/// exceeds 64 bits.
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

/// A number of up to 64 bits: only digits.
#[inline]
pub(super) fn digits(word: &[u8]) -> Option<u64> {
    leading(word)
        .filter(|&(_, len)| len == word.len())
        .map(|(number, _)| number)
}

/// A number of up to 64 bits, where newer servers take neither a plus nor more than 22 digits.
#[inline]
pub(super) fn plain(word: &[u8]) -> Option<u64> {
    digits(word).filter(|_| word.len() <= 22)
}

/// A number of seconds, where newer servers take no plus and refuse more than 32 bits.
#[inline]
pub(super) fn seconds(word: &[u8]) -> Option<i32> {
    let (magnitude, is_negative) = match word {
        [b'-', rest @ ..] => (rest, true),
        _ => (word, false),
    };
    let seconds = i64::try_from(digits(magnitude)?).ok()?;
    let seconds = if is_negative { -seconds } else { seconds };
    i32::try_from(seconds).ok().filter(|_| word.len() <= 11)
}

/// A number of up to 64 bits, perhaps with a plus.
#[inline]
pub fn number(word: &[u8]) -> Option<u64> {
    digits(word.strip_prefix(b"+").unwrap_or(word))
}

/// The longest expiry time that counts from now: 30 days in seconds. Longer ones count from 1970.
pub const LONGEST_TTL: i64 = 60 * 60 * 24 * 30;

/// An expiry time: a number of up to 64 bits, perhaps with a sign. Times have 32 bits, and memcached drops
/// the higher bits of a larger number instead of refusing it.
#[inline]
pub fn time(word: &[u8]) -> Option<i32> {
    let seconds = match word {
        [b'-', rest @ ..] => 0_i64.checked_sub_unsigned(digits(rest)?)?,
        _ => i64::try_from(number(word)?).ok()?,
    };
    Some(seconds as i32)
}

#[cfg(test)]
mod tests {
    use super::{LENGTH, digits, length, lenient_length, number, plain, seconds, time};

    #[test]
    fn edges() {
        assert_eq!(digits(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(digits(b"18446744073709551616"), None);
        assert_eq!(digits(b"00000000000000000000000000007"), Some(7));
        assert_eq!(
            (length(b"2147483645"), length(b"2147483646")),
            (Some(LENGTH), None)
        );
        assert_eq!((length(b"0000000007"), length(b"00000000007")), (Some(7), None));
        assert_eq!(number(b"+18446744073709551615"), Some(u64::MAX));
        assert_eq!(number(b"+18446744073709551616"), None);
        assert_eq!(
            (time(b"-9223372036854775808"), time(b"-9223372036854775809")),
            (Some(0), None)
        );
        assert_eq!(
            (time(b"9223372036854775807"), time(b"+9223372036854775808")),
            (Some(-1), None)
        );
    }

    #[test]
    fn a_time_has_a_sign_and_32_bits() {
        for (word, seconds) in [
            (&b"30"[..], 30),
            (b"+30", 30),
            (b"-1", -1),
            (b"4294967295", -1),
            (b"99999999999", 1_215_752_191),
        ] {
            assert_eq!(time(word), Some(seconds), "{word:?}");
        }
    }

    #[test]
    fn newer_servers_read_other_numbers_than_older_ones() {
        for (word, expected) in [
            (&b"0"[..], Some(0)),
            (b"-", Some(0)),
            (b"-0", Some(0)),
            (b"-1", None),
            (b"+1", None),
            (b"00000000007", Some(7)),
            (b"000000000007", None),
            (b"2147483645", Some(LENGTH)),
            (b"2147483646", None),
            (b"1x", None),
        ] {
            assert_eq!(lenient_length(word), expected, "{word:?}");
        }
        assert_eq!(
            (seconds(b"-2147483648"), seconds(b"2147483647")),
            (Some(i32::MIN), Some(i32::MAX))
        );
        for word in [
            &b"2147483648"[..],
            b"-2147483649",
            b"+1",
            b"-",
            b"",
            b"000000000001",
            b"1\t",
        ] {
            assert_eq!(seconds(word), None, "{word:?}");
        }
        assert_eq!(plain(b"0000000000000000000007"), Some(7));
        assert_eq!(plain(b"00000000000000000000007"), None);
        assert_eq!(plain(b"+7"), None);
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
            assert_eq!((length(word), digits(word)), (None, None), "{word:?}");
            assert_eq!((number(word), time(word)), (None, None), "{word:?}");
        }
        assert_eq!(length(b"+1"), None);
        assert_eq!(number(b"-1"), None);
    }
}
