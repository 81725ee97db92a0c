//! The key of a request, guessed before the request is parsed.

/// The second argument of an array, which is the key of nearly every command.
pub(in crate::embedded) fn likely_key(bytes: &[u8]) -> Option<&[u8]> {
    let (_, rest) = length(bytes.strip_prefix(b"*")?)?;
    let (name, rest) = length(rest.strip_prefix(b"$")?)?;
    let (key, rest) = length(rest.get(name..)?.strip_prefix(b"\r\n$")?)?;
    rest.get(..key)
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
    use super::likely_key;

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
}
