//! The effect of a request on a value that has several copies.

use super::command::CopyEffect;
use super::key::{KEY, is_word};
use super::{Command, base64, line};
use crate::message::{Effect, Request};

/// The effect of the request that begins `bytes`.
#[must_use]
pub fn effect(request: &Request, bytes: &[u8]) -> Effect {
    let flag = |wanted: &[u8]| flags(request, bytes).any(|word| wanted.contains(&word[0]));
    let Some(command) = Command::from_number(request.command) else {
        // An unknown request may not be read from one copy, nor leave two copies different.
        return Effect::Decide;
    };
    match command {
        Command::MetaGet if flag(b"NTER") => Effect::Decide,
        Command::MetaGet if flag(b"cC") => Effect::LookAtHome,
        Command::MetaSet if decided_set(request, bytes) => Effect::Decide,
        Command::MetaDelete if flag(b"CITx") => Effect::Decide,
        _ => match command.copied() {
            CopyEffect::Look => Effect::Look,
            CopyEffect::LookAtHome => Effect::LookAtHome,
            CopyEffect::Everywhere => Effect::Everywhere,
            CopyEffect::Value | CopyEffect::Expiry | CopyEffect::Gone => Effect::Decide,
        },
    }
}

/// Appends the request for the other copies after the deciding one has done `request`: the value itself if
/// the request has it, else a removal.
pub fn follow_up(request: &Request, bytes: &[u8], out: &mut Vec<u8>) {
    let key = request.key.of(bytes);
    let mut words = line::text(head(request, bytes))
        .split(|&byte| byte == b' ')
        .filter(|word| !word.is_empty());
    let body = bytes.get(request.head as usize..).unwrap_or_default();
    let copied = match Command::from_number(request.command) {
        Some(Command::MetaSet) if stores_as_named(request, bytes) => CopyEffect::Value,
        Some(Command::MetaGet) if only_touches(request, bytes) => CopyEffect::Expiry,
        Some(command) => command.copied(),
        None => CopyEffect::Gone,
    };
    match copied {
        CopyEffect::Value if request.command == Command::MetaSet as u16 => {
            // ms key bytes flags*
            out.extend_from_slice(b"ms");
            for word in words.by_ref().skip(1).take(2) {
                put(out, word);
            }
            for flag in flags(request, bytes).filter(|word| b"bFT".contains(&word[0])) {
                put(out, flag);
            }
            out.extend_from_slice(b"\r\n");
            out.extend_from_slice(body);
        }
        CopyEffect::Value => {
            // command key flags exptime bytes [cas] [noreply]
            out.extend_from_slice(b"set");
            for word in words.by_ref().skip(1).take(4) {
                put(out, word);
            }
            out.extend_from_slice(b"\r\n");
            out.extend_from_slice(body);
        }
        // A base64 key has no place in `touch`.
        CopyEffect::Expiry if request.base64_key => {
            out.extend_from_slice(b"mg");
            put(out, key);
            out.extend_from_slice(b" b T");
            out.extend_from_slice(request.ttl.of(bytes));
            out.extend_from_slice(b"\r\n");
        }
        CopyEffect::Expiry => {
            out.extend_from_slice(b"touch");
            put(out, key);
            put(out, request.ttl.of(bytes));
            out.extend_from_slice(b"\r\n");
        }
        CopyEffect::Look | CopyEffect::LookAtHome | CopyEffect::Everywhere | CopyEffect::Gone => {
            remove(request, bytes, out)
        }
    }
}

/// Appends the removal of the request's key. It uses `md`, which takes every key: newer servers take the last
/// word of `delete noreply` for a request for silence.
pub(super) fn remove(request: &Request, bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"md");
    put(out, request.key.of(bytes));
    if request.base64_key {
        put(out, b"b");
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends the removal of `key`, which may have any bytes.
pub fn removal(key: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"md");
    match named(key, out) {
        Some(flag) => out.extend_from_slice(flag),
        None => put(out, key),
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends `key`, which may have any bytes, to a meta command. Returns the flag that says how it is written.
/// `None` if it is too long: nothing is appended then.
pub(super) fn named(key: &[u8], out: &mut Vec<u8>) -> Option<&'static [u8]> {
    let mut scratch = [0; KEY];
    match is_word(key) {
        true if key.len() > KEY => None,
        true => {
            put(out, key);
            Some(b"")
        }
        false => {
            put(out, base64::encode(key, &mut scratch)?);
            Some(b" b")
        }
    }
}

pub(super) fn put(out: &mut Vec<u8>, word: &[u8]) {
    out.push(b' ');
    out.extend_from_slice(word);
}

fn head<'a>(request: &Request, bytes: &'a [u8]) -> &'a [u8] {
    bytes.get(..request.head as usize).unwrap_or(bytes)
}

/// The flags of a meta command: the words after the key, for `ms` after the length.
fn flags<'a>(request: &Request, bytes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + Clone {
    let before = if request.command == Command::MetaSet as u16 {
        1
    } else {
        0
    };
    line::text(head(request, bytes))
        .get(request.key.end()..)
        .unwrap_or_default()
        .split(|&byte| byte == b' ')
        .filter(|word| !word.is_empty())
        .skip(before)
}

/// The mode of an `ms`: the letter after `M`.
fn mode(request: &Request, bytes: &[u8]) -> Option<u8> {
    flags(request, bytes)
        .find(|word| word[0] == b'M')
        .and_then(|word| word.get(1).copied())
}

/// Whether this `ms` stores the value that it has, and as a fresh one. Append and prepend do not, nor does
/// `I`, which may mark the value as stale. The effect of an unknown flag cannot be told.
fn stores_as_named(request: &Request, bytes: &[u8]) -> bool {
    let replaces = mode(request, bytes).is_none_or(|mode| b"sSeErR".contains(&mode));
    replaces && flags(request, bytes).all(|word| b"bcCEFkMOqsT".contains(&word[0]))
}

/// Whether this `mg` changes nothing but the expiry time.
fn only_touches(request: &Request, bytes: &[u8]) -> bool {
    let mut words = flags(request, bytes);
    words.clone().any(|word| word[0] == b'T') && words.all(|word| b"bcfhkloOqstTv".contains(&word[0]))
}

fn decided_set(request: &Request, bytes: &[u8]) -> bool {
    let plain = mode(request, bytes).is_none_or(|mode| b"sS".contains(&mode));
    // C, c and E name a version, which only the deciding copy knows.
    !plain || flags(request, bytes).any(|word| b"CEIc".contains(&word[0]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        memcache::{Limits, request},
        message::Parsed,
    };

    fn parsed(text: &str) -> Request {
        let limits = Limits {
            mcrouters: true,
            ..Limits::default()
        };
        match request(text.as_bytes(), &limits) {
            Parsed::Head(request) => request,
            other => panic!("{text:?}: {other:?}"),
        }
    }

    #[test]
    fn every_command_has_an_effect() {
        let table = [
            ("get k", Effect::Look),
            ("gets k", Effect::LookAtHome),
            ("gat 0 k", Effect::Decide),
            ("gats 0 k", Effect::Decide),
            ("set k 0 0 1", Effect::Everywhere),
            ("add k 0 0 1", Effect::Decide),
            ("replace k 0 0 1", Effect::Decide),
            ("append k 0 0 1", Effect::Decide),
            ("prepend k 0 0 1", Effect::Decide),
            ("cas k 0 0 1 1", Effect::Decide),
            ("delete k", Effect::Everywhere),
            ("incr k 1", Effect::Decide),
            ("decr k 1", Effect::Decide),
            ("touch k 0", Effect::Decide),
            ("flush_all", Effect::Everywhere),
            ("version", Effect::Look),
            ("verbosity 1", Effect::Look),
            ("stats", Effect::Look),
            ("config get cluster", Effect::Look),
            ("quit", Effect::Look),
            ("shutdown", Effect::Look),
            ("mg k", Effect::Look),
            ("ms k 1", Effect::Everywhere),
            ("md k", Effect::Everywhere),
            ("ma k", Effect::Decide),
            ("mn", Effect::Look),
            ("me k", Effect::Look),
            ("lru_crawler metadump all", Effect::Look),
            ("lease-get k", Effect::Look),
            ("lease-set k 1 0 0 1", Effect::Look),
            ("metaget k", Effect::Look),
        ];
        for (&command, (line, expected)) in Command::ALL.iter().zip(table) {
            let line = format!("{line}\r\n");
            let head = parsed(&line);
            assert_eq!(head.command, command as u16, "{line:?}");
            assert_eq!(effect(&head, line.as_bytes()), expected, "{line:?}");
        }
        assert_eq!(Command::ALL.len(), table.len());
    }

    #[test]
    fn effects_and_what_the_other_copies_are_told() {
        let table = [
            ("mg k v C5\r\n", Effect::LookAtHome, ""),
            ("mg k v E5\r\n", Effect::Decide, "md k\r\n"),
            ("get k\r\n", Effect::Look, ""),
            ("gets k\r\n", Effect::LookAtHome, ""),
            ("mg k v t\r\n", Effect::Look, ""),
            ("mg k v c\r\n", Effect::LookAtHome, ""),
            ("mg k v N30\r\n", Effect::Decide, "md k\r\n"),
            ("mg k v T30\r\n", Effect::Decide, "touch k 30\r\n"),
            (
                "mg noreply q k O7 T-1\r\n",
                Effect::Decide,
                "touch noreply -1\r\n",
            ),
            ("mg a2V5 b v T30\r\n", Effect::Decide, "mg a2V5 b T30\r\n"),
            ("mg k v T30 N30\r\n", Effect::Decide, "md k\r\n"),
            ("mg k v T30 R10\r\n", Effect::Decide, "md k\r\n"),
            ("mg k v T30 E7\r\n", Effect::Decide, "md k\r\n"),
            ("mg a2V5 b v T30 R10\r\n", Effect::Decide, "md a2V5 b\r\n"),
            ("set k 0 0 1\r\nx\r\n", Effect::Everywhere, ""),
            ("delete k\r\n", Effect::Everywhere, ""),
            ("flush_all 10 noreply\r\n", Effect::Everywhere, ""),
            ("md k q\r\n", Effect::Everywhere, ""),
            ("md k I T30\r\n", Effect::Decide, "md k\r\n"),
            ("ms k 1 T9\r\nx\r\n", Effect::Everywhere, ""),
            ("ms k 1 MS\r\nx\r\n", Effect::Everywhere, ""),
            (
                "add k 5 60 1 noreply\r\nx\r\n",
                Effect::Decide,
                "set k 5 60 1\r\nx\r\n",
            ),
            (
                "replace k 5 60 1\r\nx\r\n",
                Effect::Decide,
                "set k 5 60 1\r\nx\r\n",
            ),
            (
                "cas k 5 60 1 77\r\nx\r\n",
                Effect::Decide,
                "set k 5 60 1\r\nx\r\n",
            ),
            ("append k 0 0 1\r\nx\r\n", Effect::Decide, "md k\r\n"),
            ("prepend noreply 0 0 1\r\nx\r\n", Effect::Decide, "md noreply\r\n"),
            ("incr k 1 noreply\r\n", Effect::Decide, "md k\r\n"),
            ("touch k 60\r\n", Effect::Decide, "touch k 60\r\n"),
            ("gat 60 k\r\n", Effect::Decide, "touch k 60\r\n"),
            (
                "ms a2V5 1 b ME T9 F3 q\r\nx\r\n",
                Effect::Decide,
                "ms a2V5 1 b T9 F3\r\nx\r\n",
            ),
            ("ms k 1 C12 T9\r\nx\r\n", Effect::Decide, "ms k 1 T9\r\nx\r\n"),
            ("ms k 1 c\r\nx\r\n", Effect::Decide, "ms k 1\r\nx\r\n"),
            ("ms k 1 E12\r\nx\r\n", Effect::Decide, "ms k 1\r\nx\r\n"),
            ("ms k 1 I C12 T9\r\nx\r\n", Effect::Decide, "md k\r\n"),
            ("ms a2V5 1 b C12 I\r\nx\r\n", Effect::Decide, "md a2V5 b\r\n"),
            ("ms k 1 C12 y\r\nx\r\n", Effect::Decide, "md k\r\n"),
            ("ms k 1 MA\r\nx\r\n", Effect::Decide, "md k\r\n"),
            ("ms k 1 Mp N60\r\nx\r\n", Effect::Decide, "md k\r\n"),
            ("ma k D5\r\n", Effect::Decide, "md k\r\n"),
        ];
        for (text, expected, told) in table {
            let head = parsed(text);
            assert_eq!(effect(&head, text.as_bytes()), expected, "{text:?}");
            if expected == Effect::Decide {
                let mut out = Vec::new();
                follow_up(&head, text.as_bytes(), &mut out);
                assert_eq!(String::from_utf8_lossy(&out), told, "{text:?}");
            }
        }
    }
}
