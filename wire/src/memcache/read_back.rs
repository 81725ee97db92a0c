//! Reads back the value that a command has computed, so that the other copies can store the same.

use super::Command;
use super::effect::{put, remove};
use super::held::{HeldValue, head, words};
use crate::message::Request;

/// Appends a request that reads what the one in `bytes` will leave. It is to be sent right after that one on
/// the same connection, so that nothing comes between. Returns false and appends nothing if the command
/// computes no value.
#[must_use]
pub fn read_back(request: &Request, bytes: &[u8], out: &mut Vec<u8>) -> bool {
    let computes = matches!(
        Command::from_number(request.command),
        Some(Command::Incr | Command::Decr | Command::MetaArithmetic)
    );
    if computes {
        out.extend_from_slice(b"mg");
        put(out, request.key.of(bytes));
        out.extend_from_slice(if request.base64_key { b" b" } else { b"" });
        out.extend_from_slice(b" v f t\r\n");
    }
    computes
}

/// Appends the requests for the other copies after `reply` to [`read_back`]: to store the same bytes, flags
/// and expiry time. `unix` is the time in seconds since 1970. If the reply is no value that a copy may hold
/// as fresh, a removal is appended.
pub fn store_read_back(request: &Request, bytes: &[u8], reply: &[u8], unix: u64, out: &mut Vec<u8>) {
    let Some(read) = HeldValue::of(reply) else {
        return remove(request, bytes, out);
    };
    out.extend_from_slice(b"ms");
    put(out, request.key.of(bytes));
    read.put(if request.base64_key { b" b" } else { b"" }, unix, out);
}

/// Appends a request that gives back the right to refill a stale item, which `reply` to [`read_back`] has
/// won. Returns false and appends nothing if it has won nothing.
#[must_use]
pub fn undo_read_back(request: &Request, bytes: &[u8], reply: &[u8], out: &mut Vec<u8>) -> bool {
    let won = head(reply).is_some_and(|line| words(line).any(|word| word == b"W"));
    if won {
        out.extend_from_slice(b"md");
        put(out, request.key.of(bytes));
        out.extend_from_slice(if request.base64_key { b" b" } else { b"" });
        out.extend_from_slice(b" I\r\n");
    }
    won
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        memcache::{Limits, request},
        message::Parsed,
    };

    const NOW: u64 = 1_700_000_000;

    fn parsed(text: &str) -> Request {
        match request(text.as_bytes(), &Limits::default()) {
            Parsed::Head(request) => request,
            other => panic!("{text:?}: {other:?}"),
        }
    }

    fn told(text: &str, reply: &str) -> String {
        let mut out = Vec::new();
        store_read_back(&parsed(text), text.as_bytes(), reply.as_bytes(), NOW, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_commands_that_compute_are_read_back() {
        for (text, asked) in [
            ("incr k 1 noreply\r\n", "mg k v f t\r\n"),
            ("decr noreply 1\r\n", "mg noreply v f t\r\n"),
            ("ma a2V5 b N0 J5\r\n", "mg a2V5 b v f t\r\n"),
            ("append k 0 0 1\r\n", ""),
            ("touch k 5\r\n", ""),
        ] {
            let mut out = Vec::new();
            assert_eq!(
                read_back(&parsed(text), text.as_bytes(), &mut out),
                !asked.is_empty()
            );
            assert_eq!(String::from_utf8(out).unwrap(), asked);
        }
    }

    #[test]
    fn the_others_get_the_same_bytes_flags_and_expiry() {
        for (reply, expected) in [
            ("VA 1 f7 t-1\r\n6\r\n", "ms k 1 F7\r\n6\r\n"),
            ("VA 3 f0 t60\r\n99 \r\n", "ms k 3 F0 T60\r\n99 \r\n"),
            ("VA 1 f0 t2592000\r\n6\r\n", "ms k 1 F0 T2592000\r\n6\r\n"),
            ("VA 1 f0 t2592001\r\n6\r\n", "ms k 1 F0 T1702592001\r\n6\r\n"),
        ] {
            assert_eq!(told("incr k 1\r\n", reply), expected);
        }
        assert_eq!(
            told("ma a2V5 b\r\n", "VA 1 f1 t9\r\n6\r\n"),
            "ms a2V5 1 b F1 T9\r\n6\r\n"
        );
    }

    #[test]
    fn what_no_copy_may_hold_as_fresh_is_removed() {
        for reply in [
            "EN\r\n",
            "SERVER_ERROR out of memory\r\n",
            "VA 1 f0 t0\r\n6\r\n",
            "VA 1 f0 t60 X W\r\n6\r\n",
            "VA 1 f0 t60 Z X\r\n6\r\n",
            "VA 1 t60\r\n6\r\n",
            "VA 2 f0 t60\r\n6\r\n",
            "",
        ] {
            assert_eq!(told("incr k 1\r\n", reply), "md k\r\n", "{reply:?}");
        }
        assert_eq!(told("ma a2V5 b\r\n", "EN\r\n"), "md a2V5 b\r\n");
    }

    #[test]
    fn the_right_to_refill_is_given_back() {
        let text = "incr k 1\r\n";
        let mut out = Vec::new();
        assert!(undo_read_back(
            &parsed(text),
            text.as_bytes(),
            b"VA 1 f0 t60 X W\r\n6\r\n",
            &mut out
        ));
        assert_eq!(out, b"md k I\r\n");
        for reply in [
            &b"VA 1 f0 t60 Z X\r\n6\r\n"[..],
            b"VA 1 f0 t-1\r\nW\r\n",
            b"EN\r\n",
        ] {
            assert!(!undo_read_back(&parsed(text), text.as_bytes(), reply, &mut out));
        }
    }
}
