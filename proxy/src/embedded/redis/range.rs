//! STRLEN, GETRANGE, SUBSTR, SETRANGE, APPEND: parts of a value.

use proxima_wire::{
    message::Outcome,
    resp::{LARGEST_BULK, integer},
};

use super::{
    call::Call,
    reply::{self, NOT_INTEGER},
    set::{Lifetime, put},
};
use crate::embedded::store::Counter;

/// `STRLEN KEY`
pub(super) fn strlen(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let mut entry = call.entry(call.key);
    let length = entry.read().map_or(0, |item| item.value().len());
    reply::number(out, length as i64)
}

/// `GETRANGE KEY FIRST LAST`: the bytes from one position to another. Negative positions count from the end.
pub(super) fn getrange(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let (Some(first), Some(last)) = (integer(call.word(1)), integer(call.word(2))) else {
        return reply::error(out, NOT_INTEGER);
    };
    let mut entry = call.entry(call.key);
    let Some(item) = entry.read() else {
        entry.count(Counter::GetMisses);
        return reply::bulk(out, b"");
    };
    let value = item.value();
    let length = value.len() as i64;
    let from_end = |position: i64| match position < 0 {
        true => position.saturating_add(length).max(0),
        false => position,
    };
    let is_backwards = first < 0 && last < 0 && first > last;
    let (begin, end) = (from_end(first), from_end(last).saturating_add(1).min(length));
    let part = match is_backwards || begin >= end {
        true => &[][..],
        false => value.get(begin as usize..end as usize).unwrap_or_default(),
    };
    let outcome = reply::bulk(out, part);
    entry.count(Counter::GetHits);
    outcome
}

/// `SETRANGE KEY POSITION VALUE`: writes over a part of the value. Zero bytes fill what is missing before it.
pub(super) fn setrange(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let (position, part) = (integer(call.word(1)), call.word(2));
    let Some(position) = position else {
        return reply::error(out, NOT_INTEGER);
    };
    let Ok(position) = u64::try_from(position) else {
        return reply::error(out, "offset is out of range");
    };
    let mut entry = call.entry(call.key);
    let old = entry.item();
    let value = old.map(|item| item.value()).unwrap_or_default();
    if part.is_empty() {
        return reply::number(out, value.len() as i64);
    }
    let end = position.saturating_add(part.len() as u64);
    if end > LARGEST_BULK {
        return longer_than_strings(out);
    }
    let (begin, end) = (position as usize, end as usize);
    let length = value.len().max(end);
    if !call.store.takes(call.key, length) {
        return reply::too_large(out);
    }
    let mut changed = Vec::with_capacity(length);
    changed.extend_from_slice(value);
    changed.resize(length, 0);
    changed[begin..end].copy_from_slice(part);
    let lifetime = Lifetime::Until(old.map_or(0, |item| item.expires()));
    match put(&mut entry, lifetime, &changed) {
        Ok(()) => reply::number(out, length as i64),
        Err(_) => reply::too_large(out),
    }
}

/// Appends the servers' error for a value that no server takes.
#[cold]
fn longer_than_strings(out: &mut Vec<u8>) -> Outcome {
    reply::error(out, "string exceeds maximum allowed size (proto-max-bulk-len)")
}

/// `APPEND KEY VALUE`
pub(super) fn append(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let part = call.word(1);
    let mut entry = call.entry(call.key);
    let length = entry.item().map(|item| item.value().len());
    let stored = match length {
        None => put(&mut entry, Lifetime::Until(0), part),
        Some(_) => entry.splice(b"", part, None).map(|_| ()),
    };
    match stored {
        Ok(()) => reply::number(out, (length.unwrap_or(0) + part.len()) as i64),
        Err(_) => reply::too_large(out),
    }
}
