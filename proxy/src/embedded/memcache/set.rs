//! set, add, replace, append, prepend, cas: store a value under a condition.

use proxima_wire::{
    memcache::{error, number, time},
    message::Outcome,
};

use super::{call::Call, reject, say, too_large};
use crate::embedded::store::{Counter, Entry, Marks, Meta};

/// The conditions and ways of storing a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// In any case.
    Set,
    /// If the key has no item.
    Add,
    /// If the key has an item.
    Replace,
    /// After the item's value.
    Append,
    /// Before the item's value.
    Prepend,
    /// Over the item with that cas id.
    Cas,
}

/// A value and its conditions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    pub(super) mode: Mode,
    /// The cas id that the item must have; 0: any.
    pub(super) compare: u64,
    /// A value older than the item's may replace it, and is stale then.
    pub(super) takes_stale: bool,
}

/// `set KEY FLAGS TTL LENGTH` and its kin; `cas` has its id after the length.
pub(super) fn set(call: &Call<'_>, mode: Mode, out: &mut Vec<u8>) -> Outcome {
    let mut words = call.words();
    let flags = words.next().and_then(number).unwrap_or(0) as u32;
    let ttl = words.next().and_then(time).unwrap_or(0);
    let compare = words
        .nth(1)
        .and_then(number)
        .filter(|_| mode == Mode::Cas)
        .unwrap_or(0);
    let mut entry = call.entry(call.key());
    entry.count(Counter::Sets);
    if entry.fits(call.value_length(), flags).is_err() {
        // A client that sets a value does not want to read the old one any more.
        if mode == Mode::Set {
            entry.remove();
        }
        return too_large(out);
    }
    let Some(value) = call.value() else {
        return reject(out, error::BAD_CHUNK);
    };
    let meta = Meta {
        flags,
        expires: call.clock.expires(ttl),
        ..Meta::default()
    };
    match put(
        &mut entry,
        Conditions {
            mode,
            compare,
            takes_stale: false,
        },
        meta,
        value,
    )
    .0
    {
        Outcome::Stored => say(out, b"STORED\r\n", Outcome::Stored),
        Outcome::Exists => say(out, b"EXISTS\r\n", Outcome::Exists),
        Outcome::NotFound => say(out, b"NOT_FOUND\r\n", Outcome::NotFound),
        _ => say(out, b"NOT_STORED\r\n", Outcome::NotStored),
    }
}

/// Stores `value` if the conditions hold. Returns Stored, Exists, NotFound or NotStored, and the item's new
/// cas id or 0.
pub(super) fn put(
    entry: &mut Entry<'_, '_>,
    conditions: Conditions,
    mut meta: Meta,
    value: &[u8],
) -> (Outcome, u64) {
    let Conditions {
        mode,
        compare,
        takes_stale,
    } = conditions;
    let Some(old) = entry.item() else {
        return match mode {
            Mode::Set | Mode::Add => stored(entry.put(meta, value).ok()),
            Mode::Cas => {
                entry.count(Counter::CasMisses);
                (Outcome::NotFound, 0)
            }
            Mode::Replace | Mode::Append | Mode::Prepend => (Outcome::NotStored, 0),
        };
    };
    let (old_cas, old_marks, old_expires) = (old.cas(), old.marks(), old.expires());
    match mode {
        Mode::Add => {
            entry.hit(Marks::NONE);
            (Outcome::NotStored, 0)
        }
        Mode::Set | Mode::Replace => stored(entry.put(meta, value).ok()),
        Mode::Append | Mode::Prepend if compare != 0 && compare != old_cas => (Outcome::Exists, 0),
        Mode::Append => stored(entry.splice(b"", value, meta.cas).ok().flatten()),
        Mode::Prepend => stored(entry.splice(value, b"", meta.cas).ok().flatten()),
        Mode::Cas if compare != 0 && compare == old_cas => {
            entry.count(Counter::CasHits);
            stored(entry.put(meta, value).ok())
        }
        Mode::Cas if takes_stale && compare != 0 && compare < old_cas => {
            entry.count(Counter::CasHits);
            let sent = Marks::TOKEN_SENT.when(old_marks.has(Marks::TOKEN_SENT));
            meta.marks = meta.marks.with(Marks::STALE).with(sent);
            meta.expires = old_expires;
            stored(entry.put(meta, value).ok())
        }
        Mode::Cas => {
            entry.count(Counter::CasMismatches);
            (Outcome::Exists, 0)
        }
    }
}

/// A value that became too large by append or prepend is not stored, which is no error.
fn stored(cas: Option<u64>) -> (Outcome, u64) {
    cas.map_or((Outcome::NotStored, 0), |cas| (Outcome::Stored, cas))
}
