//! Routing keys: the part of a key that is hashed.

use crate::eight;

/// The end of a key for hashing (mcrouter's "hash stop").
const STOP: &[u8] = b"|#|";

/// The key up to the first `|#|`, if `stop` is asked for and the key has one; otherwise the whole key.
#[inline]
pub fn routing_key(key: &[u8], stop: bool) -> &[u8] {
    if !stop {
        return key;
    }
    let mut bar = next_bar(key, 0);
    while bar < key.len() && !key[bar..].starts_with(STOP) {
        bar = next_bar(key, bar + 1);
    }
    &key[..bar]
}

#[inline]
fn next_bar(key: &[u8], start: usize) -> usize {
    eight::find(key, start, |bytes| eight::equal(bytes, STOP[0]))
}

/// The text between the first `tag[0]` of the key and the next `tag[1]` after it, if both are there and not
/// adjacent; otherwise the whole key. This is twemproxy's `hash_tag`, and Redis Cluster's with `{}`.
#[inline]
pub fn hash_tag(key: &[u8], [open, close]: [u8; 2]) -> &[u8] {
    let Some(start) = memchr::memchr(open, key) else {
        return key;
    };
    let inside = &key[start + 1..];
    match memchr::memchr(close, inside) {
        None | Some(0) => key,
        Some(end) => &inside[..end],
    }
}

#[cfg(test)]
mod tests {
    use super::{hash_tag, routing_key};

    #[test]
    fn routing_key_ends_before_the_first_stop() {
        let table = [
            ("key", "key"),
            ("key|#|rest", "key"),
            ("a|b|#|c|#|d", "a|b"),
            ("a||#|b", "a|"),
            ("|#|rest", ""),
            ("key|#", "key|#"),
            ("key|", "key|"),
            ("", ""),
        ];
        for (key, expected) in table {
            assert_eq!(routing_key(key.as_bytes(), true), expected.as_bytes(), "{key}");
            assert_eq!(routing_key(key.as_bytes(), false), key.as_bytes(), "{key}");
        }
    }

    #[test]
    fn hash_tag_is_the_first_that_holds_something() {
        let table = [
            ("{tag}suffix", "tag"),
            ("a{tag}{other}", "tag"),
            ("{}suffix", "{}suffix"),
            ("{}{tag}", "{}{tag}"),
            ("a}b{c}", "c"),
            ("{a{b}c}", "a{b"),
            ("{tag", "{tag"),
            ("tag}", "tag}"),
            ("{", "{"),
            ("", ""),
        ];
        for (key, expected) in table {
            assert_eq!(hash_tag(key.as_bytes(), *b"{}"), expected.as_bytes(), "{key}");
        }
        assert_eq!(hash_tag(b"a$$b$c", *b"$$"), b"a$$b$c");
        assert_eq!(hash_tag(b"a$b$c", *b"$$"), b"b");
    }
}
