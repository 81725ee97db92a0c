//! Versions of values ("cas unique"), which each server counts for itself.
//!
//! Where several servers hold a value, a version from one means nothing at another, and may by chance be that
//! of another change there. Clients therefore see each version with the mark of its server: both XORed, which
//! undoes itself. A version of 0 means "none" to memcached and stays unchanged.

use super::Command;
use super::command::Form;
use super::line::{self, Words};
use super::number::digits;
use crate::message::{Request, Span};
use std::io::Write;

/// Appends the head of `request`, which begins `bytes`, to `out` with each of its versions marked. Returns
/// false and appends nothing if it has none.
#[must_use]
pub fn mark_request(request: &Request, bytes: &[u8], mark: u64, out: &mut Vec<u8>) -> bool {
    let Some(head) = bytes.get(..request.head as usize) else {
        return false;
    };
    let line = line::text(head);
    let Some(command) = Command::from_number(request.command) else {
        return false;
    };
    match command.form() {
        Form::Flags => marked(head, flags(line, request.key.end(), b"CE"), mark, out),
        // cas key flags exptime bytes version
        Form::Text if command == Command::Cas => {
            marked(head, Words::from(line, 0).skip(5).take(1), mark, out)
        }
        Form::Text | Form::Retrieval | Form::Metadata | Form::Meta => false,
    }
}

/// Appends `reply`, which was sent to `command`, to `out` with its version marked. Returns false and appends
/// nothing if it has none. `reply` may be the head alone or more.
#[must_use]
pub fn mark_reply(command: Command, reply: &[u8], mark: u64, out: &mut Vec<u8>) -> bool {
    let Some(end) = memchr::memchr(b'\n', reply) else {
        return false;
    };
    let line = line::text(&reply[..=end]);
    match command.form() {
        // VALUE key flags bytes version
        Form::Retrieval => {
            line.starts_with(b"VALUE ") && marked(reply, Words::from(line, 0).skip(4).take(1), mark, out)
        }
        Form::Flags => {
            matches!(
                line.first_chunk(),
                Some(b"HD" | b"VA" | b"EN" | b"NF" | b"NS" | b"EX")
            ) && marked(reply, flags(line, 2, b"c"), mark, out)
        }
        Form::Text | Form::Metadata | Form::Meta => false,
    }
}

/// The arguments of the flags with these letters, in the words of `line` from `at` on.
fn flags<'a>(line: &'a [u8], at: usize, letters: &'a [u8]) -> impl Iterator<Item = Span> + 'a {
    Words::from(line, at)
        .filter(|word| letters.contains(&line[word.start as usize]))
        .map(|word| Span::new(word.start as usize + 1, word.end()))
}

fn marked(bytes: &[u8], versions: impl Iterator<Item = Span>, mark: u64, out: &mut Vec<u8>) -> bool {
    let mut at = 0;
    for span in versions {
        if let Some(version) = digits(span.of(bytes)).filter(|&version| version > 0) {
            out.extend_from_slice(&bytes[at..span.start as usize]);
            // Writing to a Vec cannot fail.
            let _ = write!(out, "{}", version ^ mark);
            at = span.end();
        }
    }
    if at > 0 {
        out.extend_from_slice(&bytes[at..]);
    }
    at > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        memcache::{Limits, request},
        message::Parsed,
    };

    const MARK: u64 = 0xff << 56;

    fn both(text: &str) -> (String, String) {
        let Parsed::Head(request) = request(text.as_bytes(), &Limits::default()) else {
            panic!("{text:?}")
        };
        let (mut once, mut twice) = (Vec::new(), Vec::new());
        if mark_request(&request, text.as_bytes(), MARK, &mut once) {
            let head = Request {
                head: once.len() as u32,
                ..request
            };
            assert!(mark_request(&head, &once, MARK, &mut twice));
        }
        (
            String::from_utf8(once).unwrap(),
            String::from_utf8(twice).unwrap(),
        )
    }

    #[test]
    fn requests_that_name_a_version() {
        let version = 7 ^ MARK;
        let table = [
            ("cas k 0 0 1 7\r\n", format!("cas k 0 0 1 {version}\r\n")),
            (
                "cas 7 7 7 7 7 noreply\r\n",
                format!("cas 7 7 7 7 {version} noreply\r\n"),
            ),
            ("ms C7 1 C7 T7 q\r\n", format!("ms C7 1 C{version} T7 q\r\n")),
            (
                "ms k 1 OC7 E7 C7\r\n",
                format!("ms k 1 OC7 E{version} C{version}\r\n"),
            ),
            ("md k C7\r\n", format!("md k C{version}\r\n")),
            ("ma k N0 C7\r\n", format!("ma k N0 C{version}\r\n")),
        ];
        for (text, expected) in table {
            let (once, twice) = both(text);
            assert_eq!(once, expected);
            assert_eq!(twice, text, "marked twice it is what it was");
        }
        for text in [
            "set k 0 0 7\r\n",
            "get 7\r\n",
            "mg k c s v\r\n",
            "ms k 1 T7\r\n",
            "incr k 7\r\n",
            "ma k C0\r\n",
        ] {
            assert_eq!(both(text), Default::default(), "{text:?} names none");
        }
    }

    #[test]
    fn replies_that_name_a_version() {
        let version = 7 ^ MARK;
        let table = [
            (
                Command::Gets,
                "VALUE 7 7 7 7\r\nVALUE 7",
                format!("VALUE 7 7 7 {version}\r\nVALUE 7"),
            ),
            (
                Command::Gats,
                "VALUE k 0 1 7\r\nx\r\nEND\r\n",
                format!("VALUE k 0 1 {version}\r\nx\r\nEND\r\n"),
            ),
            (
                Command::MetaGet,
                "VA 7 kc7 c7 Oc7\r\nc7",
                format!("VA 7 kc7 c{version} Oc7\r\nc7"),
            ),
            (Command::MetaSet, "HD c7\r\n", format!("HD c{version}\r\n")),
        ];
        for (command, text, expected) in table {
            let (mut once, mut twice) = (Vec::new(), Vec::new());
            assert!(mark_reply(command, text.as_bytes(), MARK, &mut once));
            assert_eq!(String::from_utf8_lossy(&once), expected);
            assert!(mark_reply(command, &once, MARK, &mut twice));
            assert_eq!(String::from_utf8_lossy(&twice), text);
        }
        for (command, text) in [
            (Command::Get, "VALUE k 0 7\r\n"),
            (Command::Gets, "END\r\n"),
            (Command::Gets, "SERVER_ERROR 2 3 4 7\r\n"),
            (Command::MetaGet, "EN\r\n"),
            (Command::MetaGet, "HD kc7 s7\r\n"),
            (Command::MetaSet, "NF c0\r\n"),
            (Command::Incr, "7\r\n"),
        ] {
            let mut out = Vec::new();
            assert!(
                !mark_reply(command, text.as_bytes(), MARK, &mut out) && out.is_empty(),
                "{text:?}"
            );
        }
    }
}
