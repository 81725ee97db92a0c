//! get, gets, gat, gats: the values of keys; touch: a new expiry time.

use proxima_wire::{
    memcache::{keys, time},
    message::Outcome,
};

use super::{call::Call, line::push, no_memory, say};
use crate::embedded::store::{Counter, Entry, Item, Miss};

const END: &[u8] = b"END\r\n";

/// `get KEY…`
#[inline]
pub(super) fn get(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    if call.request.more_keys.is_empty() {
        let mut entry = call.entry(call.key());
        let Some(item) = entry.read() else {
            count_miss(&mut entry);
            return say(out, END, Outcome::NotFound);
        };
        out.extend_from_slice(item.reply());
        entry.count(Counter::GetHits);
        return Outcome::Found;
    }
    each(call, out, |entry, out| {
        let Some(item) = entry.read() else {
            count_miss(entry);
            return false;
        };
        let reply = item.reply();
        out.extend_from_slice(&reply[..reply.len() - END.len()]);
        entry.count(Counter::GetHits);
        true
    })
}

/// `gets KEY…`
pub(super) fn gets(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    each(call, out, |entry, out| {
        let Some(item) = entry.read() else {
            count_miss(entry);
            return false;
        };
        push_item(out, &item, true);
        entry.count(Counter::GetHits);
        true
    })
}

/// `gat TTL KEY…`, `gats TTL KEY…`
pub(super) fn get_and_touch(call: &Call<'_>, with_cas: bool, out: &mut Vec<u8>) -> Outcome {
    let expires = call
        .clock
        .expires(time(call.request.ttl.of(call.message)).unwrap_or(0));
    each(call, out, |entry, out| {
        let Some(item) = entry.read() else {
            entry.count(Counter::TouchMisses);
            return false;
        };
        push_item(out, &item, with_cas);
        entry.set_expires(expires);
        entry.count(Counter::TouchHits);
        true
    })
}

/// `touch KEY TTL`
pub(super) fn touch(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let expires = call
        .clock
        .expires(time(call.request.ttl.of(call.message)).unwrap_or(0));
    let mut entry = call.entry(call.key());
    if entry.read().is_none() {
        entry.count(Counter::TouchMisses);
        return say(out, b"NOT_FOUND\r\n", Outcome::NotFound);
    }
    entry.set_expires(expires);
    entry.count(Counter::TouchHits);
    say(out, b"TOUCHED\r\n", Outcome::Touched)
}

/// Counts a read that found nothing.
pub(super) fn count_miss(entry: &mut Entry<'_, '_>) {
    entry.count(Counter::GetMisses);
    match entry.miss() {
        Some(Miss::Expired) => entry.count(Counter::GetExpired),
        Some(Miss::Flushed) => entry.count(Counter::GetFlushed),
        Some(Miss::Absent) | None => {}
    }
}

/// Lets `show` append the result for each key, and ends the reply.
fn each(
    call: &Call<'_>,
    out: &mut Vec<u8>,
    mut show: impl FnMut(&mut Entry<'_, '_>, &mut Vec<u8>) -> bool,
) -> Outcome {
    let (start, mut outcome) = (out.len(), Outcome::NotFound);
    for key in keys(call.request, call.message) {
        if show(&mut call.entry(key.of(call.message)), out) {
            outcome = Outcome::Found;
        }
        if out.len() - start > call.largest_reply {
            out.truncate(start);
            return no_memory(out);
        }
    }
    say(out, END, outcome)
}

/// `VALUE <key> <flags> <length>[ <cas>]\r\n<value>\r\n`
fn push_item(out: &mut Vec<u8>, item: &Item<'_>, with_cas: bool) {
    let reply = item.reply();
    let (line, rest) = reply.split_at(item.line_length() - 2);
    out.extend_from_slice(line);
    if with_cas {
        out.push(b' ');
        push(out, item.cas());
    }
    out.extend_from_slice(&rest[..rest.len() - END.len()]);
}
