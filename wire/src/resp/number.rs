//! Numbers in lines.

/// The most characters of a 64-bit number with its sign.
const LONGEST: usize = 20;

/// The first bytes of a line as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// The number, and the position behind its CR LF.
    Number(i64, usize),
    /// The line has not ended.
    More,
    /// The line is no number, or does not end in CR LF.
    Bad,
}

/// Reads the number that begins at `at` and ends with CR LF. It is as strict as the servers: no blanks, no
/// `+`, no leading zeros.
#[inline]
pub(super) fn line(bytes: &[u8], at: usize) -> Line {
    let rest = bytes.get(at..).unwrap_or_default();
    let Some(&[first @ b'1'..=b'9', ..]) = rest.get(..1) else {
        return any(rest, at);
    };
    // Up to nine digits cannot overflow.
    let (mut number, mut digits) = (u32::from(first - b'0'), 1);
    while let Some(&digit @ b'0'..=b'9') = rest.get(digits)
        && digits < 9
    {
        number = number * 10 + u32::from(digit - b'0');
        digits += 1;
    }
    match rest.get(digits..digits + 2) {
        Some(b"\r\n") => Line::Number(i64::from(number), at + digits + 2),
        _ => any(rest, at),
    }
}

#[cold]
fn any(rest: &[u8], at: usize) -> Line {
    let within = &rest[..rest.len().min(LONGEST + 1)];
    let is_digit = |&byte: &u8| byte.is_ascii_digit() || byte == b'-';
    let Some(end) = within.iter().position(|byte| !is_digit(byte)) else {
        return if within.len() > LONGEST {
            Line::Bad
        } else {
            Line::More
        };
    };
    match rest[end..] {
        [b'\r'] => Line::More,
        [b'\r', b'\n', ..] => match integer(&rest[..end]) {
            Some(number) => Line::Number(number, at + end + 2),
            None => Line::Bad,
        },
        _ => Line::Bad,
    }
}

/// A number as servers read it; `None` if the text is no number, or the number does not fit 64 bits.
pub fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_plain = match digits {
        [b'0'] => text.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let text = std::str::from_utf8(text).ok()?;
    is_plain.then(|| text.parse().ok()).flatten()
}

/// Appends a line: a type's character, a number and CR LF.
pub fn append_number(kind: u8, number: i64, out: &mut Vec<u8>) {
    out.push(kind);
    let mut digits = [0; LONGEST];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    while at == digits.len() || rest > 0 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::{Line, append_number, integer, line};

    #[test]
    fn numbers_are_read_as_strictly_as_by_servers() {
        for (text, expected) in [
            ("0", Some(0)),
            ("7", Some(7)),
            ("42", Some(42)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("", None),
            ("-", None),
            ("-0", None),
            ("01", None),
            ("+1", None),
            (" 1", None),
            ("1 ", None),
            ("--1", None),
            ("1-", None),
        ] {
            assert_eq!(integer(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn lines_are_known_as_soon_as_they_can_be() {
        for (text, expected) in [
            ("$3\r\n", Line::Number(3, 4)),
            ("$13\r\nx", Line::Number(13, 5)),
            ("$100\r\n", Line::Number(100, 6)),
            ("$", Line::More),
            ("$12345", Line::More),
            ("$3\r", Line::More),
            ("$3\rx", Line::Bad),
            ("$3\n", Line::Bad),
            ("$x", Line::Bad),
            ("$\r\n", Line::Bad),
            ("$03\r\n", Line::Bad),
            ("$111111111111111111111", Line::Bad),
        ] {
            assert_eq!(line(text.as_bytes(), 1), expected, "{text:?}");
        }
    }

    #[test]
    fn appended_numbers_are_read_back() {
        for number in [0, 9, 10, -1, 12345, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            append_number(b':', number, &mut out);
            assert_eq!(out, format!(":{number}\r\n").as_bytes());
        }
    }
}
