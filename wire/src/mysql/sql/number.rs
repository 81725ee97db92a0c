//! Finds the end of a number. Servers go on with the next word at once: `1e5FOR` is a number and a keyword,
//! and `5FOR` is a name.

/// The end of what begins at `at` with a digit, or with a point before one; and whether it is a number. Else
/// it is a name, which ends where the caller says.
pub(super) fn number(bytes: &[u8], at: usize) -> (usize, bool) {
    let mut end = digits(bytes, at);
    match bytes.get(end) {
        Some(b'.') => {
            end = digits(bytes, end + 1);
            (exponent(bytes, end).unwrap_or(end), true)
        }
        Some(&byte) if is_name(byte) => match exponent(bytes, end) {
            Some(end) => (end, true),
            None => (end, false),
        },
        _ => (end, true),
    }
}

/// The bytes that a name without quotes may have.
const NAMES: [bool; 256] = {
    let mut names = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        names[byte] =
            byte >= 0x80 || (byte as u8).is_ascii_alphanumeric() || matches!(byte as u8, b'_' | b'$');
        byte += 1;
    }
    names
};

/// May the byte be part of a name that has no quotes?
#[inline]
pub(super) const fn is_name(byte: u8) -> bool {
    NAMES[byte as usize]
}

fn digits(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// The end of an exponent that begins here. `None` without a digit.
fn exponent(bytes: &[u8], at: usize) -> Option<usize> {
    if !matches!(bytes.get(at)?, b'e' | b'E') {
        return None;
    }
    let sign = usize::from(matches!(bytes.get(at + 1)?, b'+' | b'-'));
    let begin = at + 1 + sign;
    let end = digits(bytes, begin);
    (end > begin).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn a_number_ends_where_servers_end_it() {
        for (text, end, is_number) in [
            ("15 x", 2, true),
            ("1e5FOR", 3, true),
            ("1e+5FOR", 4, true),
            ("1.FOR", 2, true),
            ("1.5e3FOR", 5, true),
            ("1.e5FOR", 4, true),
            (".5FOR", 2, true),
            ("5FOR", 1, false),
            ("1eFOR", 1, false),
            ("0x1f", 1, false),
            ("7", 1, true),
        ] {
            assert_eq!(number(text.as_bytes(), 0), (end, is_number), "{text}");
        }
    }
}
