//! A value goes from one server to another, with its flags and the time that is left of it.

use super::effect::{named, put};
use super::held::HeldValue;

/// Appends the request that reads the value of `key`, which may have any bytes, with all that another server
/// needs to hold it.
///
/// The first client that asks for a value which a meta client has marked as stale wins it (`W`). Such a
/// client has asked before, as the read for which the value is fetched was its own.
#[must_use]
pub fn fetch(key: &[u8], out: &mut Vec<u8>) -> bool {
    let begin = out.len();
    out.extend_from_slice(b"mg");
    match named(key, out) {
        Some(flag) => {
            out.extend_from_slice(flag);
            out.extend_from_slice(b" v f t\r\n");
        }
        None => out.truncate(begin),
    }
    out.len() > begin
}

/// Appends the request that stores what `reply` to [`fetch`] has, unless the server has a value of the key.
/// `unix` is the time in seconds since 1970. Returns false, and appends nothing, if the reply is no fresh
/// value.
#[must_use]
pub fn store_fetched(key: &[u8], reply: &[u8], unix: u64, out: &mut Vec<u8>) -> bool {
    let begin = out.len();
    out.extend_from_slice(b"ms");
    match (HeldValue::of(reply), named(key, out)) {
        (Some(held), Some(flag)) => {
            let mut flags = flag.to_vec();
            put(&mut flags, b"ME");
            held.put(&flags, unix, out);
        }
        _ => out.truncate(begin),
    }
    out.len() > begin
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000;

    fn stored(key: &[u8], reply: &str) -> String {
        let mut out = Vec::new();
        assert_eq!(
            store_fetched(key, reply.as_bytes(), NOW, &mut out),
            !out.is_empty()
        );
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn value_is_read_and_added_with_its_flags_and_the_time_that_is_left() {
        let mut out = Vec::new();
        assert!(fetch(b"k", &mut out));
        assert_eq!(out, b"mg k v f t\r\n");
        assert_eq!(stored(b"k", "VA 2 f5 t-1\r\nab\r\n"), "ms k 2 ME F5\r\nab\r\n");
        assert_eq!(
            stored(b"k", "VA 2 f0 t60\r\nab\r\n"),
            "ms k 2 ME F0 T60\r\nab\r\n"
        );
        let beyond_a_span = "VA 1 f0 t5000000\r\na\r\n";
        assert_eq!(stored(b"k", beyond_a_span), "ms k 1 ME F0 T1705000000\r\na\r\n");
    }

    #[test]
    fn key_of_any_bytes_goes_in_base64() {
        let mut out = Vec::new();
        assert!(fetch(b"a b", &mut out));
        assert_eq!(out, b"mg YSBi b v f t\r\n");
        assert_eq!(
            stored(b"a b", "VA 1 b f0 t-1\r\na\r\n"),
            "ms YSBi 1 b ME F0\r\na\r\n"
        );
    }

    #[test]
    fn misses_errors_and_stale_values_are_not_stored() {
        for reply in [
            "EN\r\n",
            "SERVER_ERROR out of memory\r\n",
            "VA 1 f0 t-1 X W\r\na\r\n",
            "VA 1 f0 t-1 Z\r\na\r\n",
            "VA 2 f0 t-1\r\na\r\n",
            "",
        ] {
            assert_eq!(stored(b"k", reply), "", "{reply:?}");
        }
    }
}
