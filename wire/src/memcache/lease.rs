//! Tokens of leases, in requests and replies.

use std::io::Write;

use memchr::memchr;

use super::line::{self, Words};
use super::number;
use crate::message::Span;

/// The token in `message`, which is a `lease-set` or a reply to a `lease-get` that was a miss, with its
/// position. `None` if it has no token.
#[must_use]
pub fn token(message: &[u8]) -> Option<(u64, Span)> {
    let line = line::text(&message[..=memchr(b'\n', message)?]);
    let mut words = Words::from(line, 0);
    let word = words.next()?;
    if !matches!(word.of(line), b"lease-set" | b"LVALUE") {
        return None;
    }
    let token = words.nth(1)?;
    Some((number::plain(token.of(line))?, token))
}

/// Appends `message`, or its beginning, with another token at that place.
pub fn with_token(message: &[u8], place: Span, token: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&message[..place.start as usize]);
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{token}");
    out.extend_from_slice(&message[place.end()..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_and_exchanged() {
        for (message, expected, changed) in [
            (
                "lease-set k 7 0 60 1\r\nx\r\n",
                7,
                "lease-set k 5 0 60 1\r\nx\r\n",
            ),
            (
                "lease-set k 18446744073709551615 0 0 1\r\n",
                u64::MAX,
                "lease-set k 5 0 0 1\r\n",
            ),
            (
                "LVALUE k 7 0 0\r\n\r\nEND\r\n",
                7,
                "LVALUE k 5 0 0\r\n\r\nEND\r\n",
            ),
        ] {
            let (token, place) = token(message.as_bytes()).unwrap();
            assert_eq!(token, expected, "{message:?}");
            let mut out = Vec::new();
            with_token(message.as_bytes(), place, 5, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), changed);
        }
        for message in [
            "VALUE k 7 0\r\n",
            "NOT_FOUND_HOT k\r\nEND\r\n",
            "lease-set k\r\n",
            "set k 7 0 1\r\n",
            "LVALUE",
        ] {
            assert_eq!(token(message.as_bytes()), None, "{message:?}");
        }
    }
}
