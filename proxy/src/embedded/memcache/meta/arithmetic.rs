//! ma: the value as a number, created if it is missing.

use proxima_wire::{
    memcache::{KEY, error},
    message::Outcome,
};

use super::{
    flags::Flags,
    get::{push_number, push_ttl},
    key::push_echo,
};
use crate::embedded::{
    memcache::{
        arithmetic::{Change, NOT_NUMERIC, Unchanged, change},
        call::Call,
        line::push,
        reject, say,
    },
    store::{Entry, Marks, Meta},
};

/// `ma KEY FLAG…`
pub(in crate::embedded::memcache) fn arithmetic(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let Ok(flags) = Flags::read(call, 0) else {
        return reject(out, error::BAD_FLAG);
    };
    let is_up = match flags.mode {
        None | Some(b'I' | b'+') => true,
        Some(b'D' | b'-') => false,
        Some(_) => return reject(out, error::BAD_ARITHMETIC_MODE),
    };
    if let Err(line) = flags.check_opaque() {
        return reject(out, line);
    }
    let mut scratch = [0; KEY];
    let key = call.decoded_key(&mut scratch);
    let mut entry = call.entry(key);
    let by = Change {
        is_up,
        delta: flags.delta.unwrap_or(1),
        compare: flags.compare.unwrap_or(0),
        cas: flags.cas,
    };
    let changed = change(&mut entry, by);
    match changed {
        Ok(number) => push_found(call, &mut entry, &flags, (number, false), out),
        Err(Unchanged::NotFound) if vivify(call, &mut entry, &flags) => {
            push_found(call, &mut entry, &flags, (flags.initial, true), out)
        }
        Err(Unchanged::NotFound) => push_missed(call, key, b"NF", Outcome::NotFound, out),
        Err(Unchanged::Exists) => push_missed(call, key, b"EX", Outcome::Exists, out),
        Err(Unchanged::NotNumeric) => reject(out, NOT_NUMERIC),
    }
}

/// Creates the item with the initial value if the flags ask for that. Returns false if they do not, or if the
/// store takes no item.
fn vivify(call: &Call<'_>, entry: &mut Entry<'_, '_>, flags: &Flags) -> bool {
    let mut digits = itoa::Buffer::new();
    let marks = Marks::BINARY_KEY.when(call.request.base64_key);
    let meta = Meta {
        marks,
        cas: flags.cas,
        ..Meta::default()
    };
    flags.vivify.is_some() && entry.put(meta, digits.format(flags.initial).as_bytes()).is_ok()
}

/// Appends the reply without a number.
fn push_missed(call: &Call<'_>, key: &[u8], code: &[u8], outcome: Outcome, out: &mut Vec<u8>) -> Outcome {
    out.extend_from_slice(code);
    for word in call.words() {
        push_echo(out, word, key, call.request.base64_key);
    }
    say(out, b"\r\n", outcome)
}

/// Appends the reply with the new number. Flags are answered in their order: `T` and `N` take effect where
/// they stand.
fn push_found(
    call: &Call<'_>,
    entry: &mut Entry<'_, '_>,
    flags: &Flags,
    (number, is_new): (u64, bool),
    out: &mut Vec<u8>,
) -> Outcome {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(number).as_bytes();
    if flags.value {
        out.extend_from_slice(b"VA ");
        push(out, digits.len());
    } else {
        out.extend_from_slice(b"HD");
    }
    for word in call.words() {
        let Some(item) = entry.item() else { break };
        if push_echo(out, word, item.key(), call.request.base64_key) {
            continue;
        }
        match word.first() {
            Some(b'T') => entry.set_expires(call.clock.expires(flags.ttl.unwrap_or(0))),
            Some(b'N') if is_new => entry.set_expires(call.clock.expires(flags.vivify.unwrap_or(0))),
            Some(b'c') => push_number(out, b'c', item.cas()),
            Some(b't') => push_ttl(out, call.clock, item.expires()),
            _ => {}
        }
    }
    if flags.value {
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(digits);
    }
    say(out, b"\r\n", Outcome::Found)
}
