//! The key of a request, guessed before the request is parsed.

/// The second argument of an array, which is the key of nearly every command.
pub(in crate::embedded) fn likely_key(bytes: &[u8]) -> Option<&[u8]> {
    Some(name_and_key(bytes)?.1)
}

/// Is a request that begins with these bytes none of `SET` and its kin? No read of a key begins as they do.
pub(in crate::embedded) fn is_likely_read(bytes: &[u8]) -> bool {
    let begin = name_and_key(bytes).and_then(|(name, _)| name.get(..2));
    begin.is_some_and(|begin| !begin.eq_ignore_ascii_case(b"SE"))
}

fn name_and_key(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_, rest) = length(bytes.strip_prefix(b"*")?)?;
    let (name, rest) = length(rest.strip_prefix(b"$")?)?;
    let (name, rest) = rest.split_at_checked(name)?;
    let (key, rest) = length(rest.strip_prefix(b"\r\n$")?)?;
    Some((name, rest.get(..key)?))
}

/// A number of one or two digits and its line end. A longer key is not worth a guess.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| usize::from(byte - b'0'));
    match bytes {
        [one, b'\r', b'\n', rest @ ..] => Some((digit(one)?, rest)),
        [ten, one, b'\r', b'\n', rest @ ..] => Some((digit(ten)? * 10 + digit(one)?, rest)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{is_likely_read, likely_key};

    #[test]
    fn the_second_argument_is_the_key() {
        for (bytes, key) in [
            ("*2\r\n$3\r\nGET\r\n$1\r\na\r\n", Some("a")),
            (
                "*3\r\n$3\r\nSET\r\n$12\r\nabcdefghijkl\r\n$1\r\n",
                Some("abcdefghijkl"),
            ),
            ("*1\r\n$4\r\nPING\r\n", None),
            ("*2\r\n$3\r\nGET\r\n$9\r\na", None),
            ("*2\r\n$3\r\nGET\r\n$123\r\na", None),
            ("get a\r\n", None),
            ("*", None),
            ("", None),
        ] {
            assert_eq!(likely_key(bytes.as_bytes()), key.map(str::as_bytes), "{bytes:?}");
        }
    }

    #[test]
    fn sets_are_no_reads() {
        for (bytes, is_read) in [
            ("*2\r\n$3\r\nGET\r\n$1\r\na\r\n", true),
            ("*2\r\n$8\r\nSMEMBERS\r\n$1\r\na\r\n", true),
            ("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n", false),
            ("*4\r\n$5\r\nsetex\r\n$1\r\na\r\n$1\r\n9\r\n$1\r\nb\r\n", false),
        ] {
            assert_eq!(is_likely_read(bytes.as_bytes()), is_read, "{bytes}");
        }
    }
}
