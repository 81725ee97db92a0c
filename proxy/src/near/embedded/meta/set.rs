//! ms: store, in any of the classic ways, and over a stale item.

use proxima_wire::{
    memcache::{KEY, error},
    message::Outcome,
};

use super::{flags::Flags, get::push_number, key::push_echo};
use crate::near::{
    embedded::{
        call::Call,
        refuse, say,
        set::{Conditions, Mode, put},
        too_large,
    },
    store::{Counter, Marks, Meta},
};

const BAD_MODE: &[u8] = b"CLIENT_ERROR invalid mode for ms M token\r\n";

/// `ms KEY LENGTH FLAG…`
pub(in crate::near::embedded) fn set(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let flags = match Flags::read(call, 1) {
        Ok(flags) => flags,
        Err(line) => return refuse(out, line),
    };
    let mode = match flags.mode {
        None | Some(b'S' | b'R') if flags.compare.is_some() => Mode::Cas,
        None | Some(b'S') => Mode::Set,
        Some(b'E') => Mode::Add,
        Some(b'R') => Mode::Replace,
        Some(b'A') => Mode::Append,
        Some(b'P') => Mode::Prepend,
        Some(_) => return refuse(out, BAD_MODE),
    };
    let mut scratch = [0; KEY];
    let key = call.decoded_key(&mut scratch);
    let mut entry = call.entry(key);
    entry.count(Counter::Sets);
    if entry.fits(call.value_length(), flags.flags).is_err() {
        entry.remove();
        return too_large(out);
    }
    let Some(value) = call.value() else {
        return refuse(out, error::BAD_CHUNK);
    };
    let conditions = Conditions {
        mode,
        compare: flags.compare.unwrap_or(0),
        takes_stale: flags.invalidate,
    };
    let meta = Meta {
        flags: flags.flags,
        expires: call.clock.expires(flags.ttl.unwrap_or(0)),
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
    for word in call.words().skip(1) {
        if !push_echo(out, word, key, call.request.base64_key) && word.starts_with(b"c") {
            push_number(out, b'c', cas);
        }
    }
    say(out, b"\r\n", outcome)
}
