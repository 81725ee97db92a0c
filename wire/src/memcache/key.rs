//! Keys: valid ones, the routing key of a request, and a request for each of several keys.

use super::line::{Words, plain_end};
use super::{Command, base64, error};
use crate::message::{Bad, NextKey, Request, Span};
use std::iter::successors;

/// Bytes of a key at most, in the form that stands on the line.
pub const KEY: usize = 250;

/// Whether this is a key by the protocol: 1 to 250 bytes without blanks and control characters. From clients,
/// memcached and [`request`](super::request()) also take control characters.
pub fn is_valid_key(key: &[u8]) -> bool {
    (1..=KEY).contains(&key.len()) && key.iter().all(|&byte| byte > b' ' && byte != 0x7f)
}

/// Whether this is the base64 of a key, which has at least one byte.
#[cold]
pub(super) fn is_base64_key(text: &[u8]) -> bool {
    base64::decode(text, &mut [0; KEY]).is_some_and(|key| !key.is_empty())
}

/// Whether these bytes can stand on a line without ending a word or the line.
pub(super) fn is_word(bytes: &[u8]) -> bool {
    (1..=KEY).contains(&bytes.len()) && !bytes.iter().any(|byte| matches!(byte, b' ' | b'\r' | b'\n' | 0))
}

/// The bytes by which `request`, whose head begins `bytes`, is routed: its first key, decoded into `scratch`
/// where it stands in base64. They are empty if the command has no key.
#[inline]
pub fn key<'a>(request: &Request, bytes: &'a [u8], scratch: &'a mut [u8; KEY]) -> &'a [u8] {
    let key = request.key.of(bytes);
    if request.base64_key {
        base64::decode(key, scratch).unwrap_or(key)
    } else {
        key
    }
}

/// All keys of `request`, whose head begins `bytes`, as they stand.
pub fn keys(request: &Request, bytes: &[u8]) -> impl Iterator<Item = Span> {
    successors(next_key(request, bytes, 0), |key| {
        next_key(request, bytes, key.end())
    })
}

/// The first key that begins at the byte `from` or later.
#[inline]
pub fn next_key(request: &Request, bytes: &[u8], from: usize) -> Option<Span> {
    let Request { key, more_keys, .. } = *request;
    if from <= key.start as usize && !key.is_empty() {
        Some(key)
    } else {
        Words::from(&bytes[..more_keys.end()], from).next()
    }
}

/// The first key or end in `bytes`, which begin in a retrieval command's line at its first key or after any
/// of its keys.
///
/// A line may have any length, as for memcached. Its keys are taken one by one as they come, so that no part
/// of the line is examined twice.
pub fn take_key(bytes: &[u8]) -> NextKey {
    let bad = |head| NextKey::Bad(Bad::refused(head, error::BAD_FORMAT));
    let start = bytes.iter().position(|&byte| byte != b' ').unwrap_or(bytes.len());
    // The longest key, and the byte that ends it.
    let within = &bytes[..bytes.len().min(start + KEY + 1)];
    let mut end = plain_end(within, start);
    // Other control characters are a part of the key.
    while end < within.len() && !matches!(within[end], b' ' | b'\r' | b'\n' | 0) {
        end = plain_end(within, end + 1);
    }
    match bytes[end..] {
        _ if end > start + KEY => bad(end),
        [] => NextKey::More(start),
        [b'\n', ..] if end == start => NextKey::End(end + 1),
        [b'\r', b'\n', ..] if end == start => NextKey::End(end + 2),
        [b' ' | b'\n', ..] | [b'\r', b'\n', ..] => NextKey::Key(Span::new(start, end)),
        [b'\r'] => NextKey::More(start),
        _ => bad(end + 1),
    }
}

/// Appends to `out` the part of `request` (a retrieval command) for `key` alone. `head` is the
/// request up to its first key, or more of it. A key costs the same bytes again: `gat TTL KEY\r
/// `.
pub fn single(request: &Request, head: &[u8], key: &[u8], out: &mut Vec<u8>) {
    let name = Command::from_number(request.command).map_or("", Command::name);
    out.extend_from_slice(name.as_bytes());
    for word in [request.ttl.of(head), key] {
        if !word.is_empty() {
            out.push(b' ');
            out.extend_from_slice(word);
        }
    }
    out.extend_from_slice(b"\r\n");
}
