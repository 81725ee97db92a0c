//! The key of a request, guessed before the request is parsed.

use proxima_wire::memcache::KEY;

/// The second word, which is the key of nearly every command.
pub(in crate::embedded) fn likely_key(bytes: &[u8]) -> Option<&[u8]> {
    // A line without a second word is not searched to its end.
    const LINE: usize = "replace ".len() + KEY + 1;
    let line = &bytes[..bytes.len().min(LINE)];
    let (_, rest) = line.split_at(memchr::memchr(b' ', line)? + 1);
    Some(&rest[..memchr::memchr2(b' ', b'\r', rest)?])
}

/// Is a request that begins with these bytes `get` or one of its kin?
pub(in crate::embedded) fn is_likely_read(bytes: &[u8]) -> bool {
    matches!(bytes, [b'g', ..] | [b'm', b'g', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_gets_are_reads() {
        for (line, is_read) in [
            ("get a\r\n", true),
            ("gets a\r\n", true),
            ("mg a v\r\n", true),
            ("set a 0 0 1\r\nx\r\n", false),
            ("ms a 1\r\nx\r\n", false),
            ("delete a\r\n", false),
        ] {
            assert_eq!(is_likely_read(line.as_bytes()), is_read, "{line}");
        }
    }

    #[test]
    fn the_second_word_is_the_key() {
        let guess =
            |line: &str| likely_key(line.as_bytes()).map(|key| String::from_utf8_lossy(key).into_owned());
        let longest = "k".repeat(KEY);
        for (line, key) in [
            ("get a\r\n", Some("a")),
            ("get a b\r\n", Some("a")),
            ("set b 0 0 1\r\nx\r\n", Some("b")),
            (&format!("replace {longest} 0 0 1\r\n"), Some(&*longest)),
            ("version\r\n", None),
            ("get half", None),
            ("get ", None),
            ("", None),
            (&format!("get {longest}kkkkkk\r\n"), None),
        ] {
            assert_eq!(guess(line).as_deref(), key, "{line}");
        }
    }
}
