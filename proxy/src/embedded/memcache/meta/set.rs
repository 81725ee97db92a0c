//! ms: store in any of the classic modes, and over a stale item.

use proxima_wire::{
    memcache::{KEY, error},
    message::Outcome,
};

use super::{flags::Flags, get::push_number, key::push_echo};
use crate::embedded::{
    memcache::{
        call::Call,
        reject, say,
        set::{Conditions, Mode, put},
        too_large,
    },
    store::{Counter, Marks, Meta},
};

/// `ms KEY LENGTH FLAG…`
pub(in crate::embedded::memcache) fn set(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let flags = match Flags::read(call, 1) {
        Ok(flags) => flags,
        Err(line) => return reject(out, line),
    };
    let mode = match flags.mode {
        None | Some(b'S' | b'R') if flags.compare.is_some() => Mode::Cas,
        None | Some(b'S') => Mode::Set,
        Some(b'E') => Mode::Add,
        Some(b'R') => Mode::Replace,
        Some(b'A') => Mode::Append,
        Some(b'P') => Mode::Prepend,
        Some(_) => return reject(out, error::BAD_SET_MODE),
    };
    let mut scratch = [0; KEY];
    let key = call.decoded_key(&mut scratch);
    let mut entry = call.entry(key);
    entry.count(Counter::Sets);
    if entry.fits(call.value_length(), flags.flags).is_err() {
        entry.remove();
        return too_large(out);
    }
    if let Err(line) = flags.check_opaque() {
        return reject(out, line);
    }
    let Some(value) = call.value() else {
        return reject(out, error::BAD_CHUNK);
    };
    // With `N`, the item that is to be extended is created where it is missing.
    let vivify = flags
        .vivify
        .filter(|_| matches!(mode, Mode::Append | Mode::Prepend) && entry.item().is_none());
    let conditions = Conditions {
        mode: if vivify.is_some() { Mode::Set } else { mode },
        compare: flags.compare.unwrap_or(0),
        takes_stale: flags.invalidate,
    };
    let meta = Meta {
        flags: flags.flags,
        expires: call.clock.expires(vivify.or(flags.ttl).unwrap_or(0)),
        marks: Marks::BINARY_KEY.when(call.request.base64_key),
        cas: flags.cas,
    };
    let (outcome, cas) = put(&mut entry, conditions, meta, value);
    out.extend_from_slice(match outcome {
        Outcome::Stored => b"HD",
        Outcome::Exists => b"EX",
        Outcome::NotFound => b"NF",
        _ => b"NS",
    });
    // The size after append or prepend.
    let size = match (outcome, entry.item()) {
        (Outcome::Stored, Some(item)) => item.value().len(),
        _ => value.len(),
    };
    for word in call.words().skip(1) {
        if push_echo(out, word, key, call.request.base64_key) {
            continue;
        }
        match word.first() {
            Some(b'c') => push_number(out, b'c', cas),
            Some(b's') => push_number(out, b's', size as u64),
            _ => {}
        }
    }
    say(out, b"\r\n", outcome)
}
