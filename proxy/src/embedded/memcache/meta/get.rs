//! mg: read, touch, create, and hand out the right to recache.

use proxima_wire::{memcache::KEY, message::Outcome};

use super::{flags::Flags, key::push_echo};
use crate::embedded::{
    memcache::{
        call::Call,
        get::count_miss,
        line::{Clock, push},
        reject, say,
    },
    store::{Counter, Entry, Marks, Meta},
};

/// `mg KEY FLAG…`
pub(in crate::embedded::memcache) fn get(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let read = Flags::read(call, 0).and_then(|flags| flags.check_opaque().map(|()| flags));
    let mut flags = match read {
        Ok(flags) => flags,
        Err(line) => return reject(out, line),
    };
    let mut scratch = [0; KEY];
    let key = call.decoded_key(&mut scratch);
    let mut entry = call.entry(key);
    let is_hit = entry.item().is_some();
    if is_hit {
        entry.count(if flags.ttl.is_some() {
            Counter::TouchHits
        } else {
            Counter::GetHits
        });
    } else {
        count_miss(&mut entry);
        let marks = Marks::BINARY_KEY.when(call.request.base64_key);
        let meta = Meta {
            marks,
            cas: flags.cas,
            ..Meta::default()
        };
        if flags.vivify.is_none() || entry.put(meta, b"").is_err() {
            out.extend_from_slice(b"EN");
            for word in call.words() {
                push_echo(out, word, key, call.request.base64_key);
            }
            return say(out, b"\r\n", Outcome::NotFound);
        }
    }
    if let Some(item) = entry.item() {
        // A client that names the current version has its value already.
        flags.value &= flags.compare != Some(item.cas());
    }
    let mut wins = !is_hit;
    push_flags(call, &mut entry, &flags, &mut wins, out);
    push_state(&mut entry, wins, out);
    out.extend_from_slice(b"\r\n");
    let Some(item) = entry.item() else {
        return Outcome::Found;
    };
    if flags.value {
        out.extend_from_slice(item.value());
        out.extend_from_slice(b"\r\n");
    }
    if !flags.is_unnoticed {
        entry.hit(Marks::FETCHED);
    }
    Outcome::Found
}

/// Appends the code of the first line and answers the flags in their order: `T`, `N` and `R` take effect
/// where they stand.
fn push_flags(call: &Call<'_>, entry: &mut Entry<'_, '_>, flags: &Flags, wins: &mut bool, out: &mut Vec<u8>) {
    let Some(item) = entry.item() else { return };
    if flags.value {
        out.extend_from_slice(b"VA ");
        push(out, item.value().len());
    } else {
        out.extend_from_slice(b"HD");
    }
    let is_new = *wins;
    for word in call.words() {
        let Some(item) = entry.item() else { return };
        let is_binary = item.marks().has(Marks::BINARY_KEY);
        if push_echo(out, word, item.key(), is_binary) {
            continue;
        }
        match word.first() {
            Some(b'T') => entry.set_expires(call.clock.expires(flags.ttl.unwrap_or(0))),
            Some(b'N') if is_new => entry.set_expires(call.clock.expires(flags.vivify.unwrap_or(0))),
            Some(b'R') => {
                let soon = call.clock.expires(flags.recache.unwrap_or(0));
                let is_sent = item.marks().has(Marks::TOKEN_SENT);
                *wins |= !is_new && !is_sent && item.expires() != 0 && item.expires() < soon;
            }
            Some(b's') => push_number(out, b's', item.value().len() as u64),
            Some(b'c') => push_number(out, b'c', item.cas()),
            Some(b'f') => push_number(out, b'f', item.flags().into()),
            Some(b'l') => push_number(out, b'l', call.clock.second().saturating_sub(item.seen().into())),
            Some(b'h') => push_number(out, b'h', item.marks().has(Marks::FETCHED).into()),
            Some(b't') => push_ttl(out, call.clock, item.expires()),
            _ => {}
        }
    }
}

/// Appends the flag that says which client is to recache the item. Z: another client; X: the item is stale;
/// W: this reader.
fn push_state(entry: &mut Entry<'_, '_>, mut wins: bool, out: &mut Vec<u8>) {
    let Some(marks) = entry.item().map(|item| item.marks()) else {
        return;
    };
    let is_sent = marks.has(Marks::TOKEN_SENT);
    if is_sent {
        out.extend_from_slice(b" Z");
    }
    if marks.has(Marks::STALE) {
        out.extend_from_slice(b" X");
        wins |= !is_sent;
    }
    if wins {
        out.extend_from_slice(b" W");
        entry.set_marks(marks.with(Marks::TOKEN_SENT));
    }
}

/// Appends ` t<seconds left>`; -1 for an item that never expires.
pub(super) fn push_ttl(out: &mut Vec<u8>, clock: Clock, expires: u64) {
    match clock.ttl(expires) {
        Some(seconds) => push_number(out, b't', seconds.into()),
        None => out.extend_from_slice(b" t-1"),
    }
}

/// Appends ` <flag><number>`.
pub(super) fn push_number(out: &mut Vec<u8>, flag: u8, number: u64) {
    out.extend_from_slice(&[b' ', flag]);
    push(out, number);
}
