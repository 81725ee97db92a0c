//! SCAN: the keys, a few at a time.

use proxima_wire::{
    message::Outcome,
    resp::{append_number, glob, integer},
};

use super::{
    call::Call,
    reply::{self, NOT_INTEGER, SYNTAX},
};
use crate::embedded::store::{Keyspace, Walk};

/// How many keys one call looks for, where the client says nothing.
const COUNT: i64 = 10;
/// Steps of the walk, of 16 places each, that one call makes at most. It looks at each place for some
/// nanoseconds.
const STEPS: i64 = 4096;
/// Bytes of keys that end a call.
const BYTES: usize = 64 * 1024;

/// The options of a call.
struct ScanOptions<'a> {
    cursor: u64,
    pattern: &'a [u8],
    count: i64,
    /// The type is `string`, or is not said.
    shows_strings: bool,
}

/// `SCAN CURSOR [MATCH PATTERN] [COUNT NUMBER] [TYPE NAME]`
pub(super) fn scan(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let asked = match read(call) {
        Ok(asked) => asked,
        Err(text) => return reply::error(out, text),
    };
    let (mut keys, mut number) = (Vec::new(), 0);
    let mut walk = Walk::at(Keyspace::Redis, asked.cursor);
    let (mut steps, mut goes_on) = (0, true);
    while goes_on && number < asked.count && steps < STEPS && keys.len() < BYTES {
        steps += 1;
        goes_on = call.store.walk(&mut walk, call.now, &mut |item| {
            if asked.shows_strings && glob::matches(asked.pattern, item.key()) {
                reply::bulk(&mut keys, item.key());
                number += 1;
            }
        });
    }
    let cursor = if goes_on { walk.position() } else { 0 };
    out.extend_from_slice(b"*2\r\n");
    reply::bulk(out, itoa::Buffer::new().format(cursor).as_bytes());
    append_number(b'*', number, out);
    out.extend_from_slice(&keys);
    Outcome::Found
}

/// Reads what a call asks for. The error is the reply.
fn read<'a>(call: &Call<'a>) -> Result<ScanOptions<'a>, &'static str> {
    let mut words = call.words();
    let mut asked = ScanOptions {
        cursor: cursor(words.text().unwrap_or_default()).ok_or("invalid cursor")?,
        pattern: b"*",
        count: COUNT,
        shows_strings: true,
    };
    while let Some(word) = words.text() {
        let value = words.text().ok_or(SYNTAX)?;
        match word.to_ascii_lowercase().as_slice() {
            b"match" => asked.pattern = value,
            b"type" => asked.shows_strings = value.eq_ignore_ascii_case(b"string"),
            b"count" => {
                asked.count = integer(value).ok_or(NOT_INTEGER)?;
                if asked.count < 1 {
                    return Err(SYNTAX);
                }
            }
            _ => return Err(SYNTAX),
        }
    }
    Ok(asked)
}

/// A cursor, as C's strtoul reads it.
fn cursor(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    match text.strip_prefix('-') {
        _ if text.is_empty() => Some(0),
        Some(digits) if !digits.starts_with('+') => digits.parse().ok().map(u64::wrapping_neg),
        _ => text.parse().ok(),
    }
}
