//! SET, SETNX, SETEX, PSETEX, GETSET: store a value.

use proxima_wire::message::Outcome;

use super::{
    call::Call,
    get::append_value,
    moment::Unit,
    options::{self, Condition, Expiry, Options, OptionsOf},
    reply::{self, SYNTAX},
};
use crate::embedded::store::{Counter, Entry, Meta, TooLarge};

/// The lifetime of a value that is stored.
#[derive(Clone, Copy)]
pub(super) enum Lifetime {
    /// At this moment of the store's clock; 0: never.
    Until(u64),
    /// It has passed already.
    Over,
}

/// Stores a value.
pub(super) fn put(entry: &mut Entry<'_, '_>, lifetime: Lifetime, value: &[u8]) -> Result<(), TooLarge> {
    entry.count(Counter::Sets);
    match lifetime {
        Lifetime::Until(expires) => {
            let meta = Meta {
                expires,
                ..Meta::default()
            };
            entry.put(meta, value)?;
        }
        Lifetime::Over => {
            entry.remove();
        }
    }
    Ok(())
}

/// `SET KEY VALUE [NX | XX | IFEQ VALUE] [GET] [EX … | PX … | EXAT … | PXAT … | KEEPTTL]`
pub(super) fn set(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let mut words = call.options();
    let value = words.text().unwrap_or_default();
    match options::read(OptionsOf::Set, &mut words) {
        Some(options) => store(call, value, options, out),
        None => reply::error(out, SYNTAX),
    }
}

fn store(call: &Call<'_>, value: &[u8], options: Options<'_>, out: &mut Vec<u8>) -> Outcome {
    let lifetime = match options.expiry {
        Expiry::At(unit, text) => match call.positive_time(unit, text) {
            Ok(unix) => call.moment_of(unix).map_or(Lifetime::Over, Lifetime::Until),
            Err(bad) => return bad.answer(call, out),
        },
        Expiry::Unsaid | Expiry::Keep | Expiry::Never => Lifetime::Until(0),
    };
    let mut entry = call.entry(call.key);
    let shown = options
        .shows_old
        .then(|| append_value(&mut entry, call.form, out));
    let old = entry.item();
    let holds = match options.condition {
        Condition::Always => true,
        Condition::Absent => old.is_none(),
        Condition::Present => old.is_some(),
        Condition::Equal(value) => old.is_some_and(|old| old.value() == value),
    };
    if !holds {
        return shown.unwrap_or_else(|| reply::null(out, call.form));
    }
    let lifetime = match (options.expiry, old) {
        (Expiry::Keep, Some(old)) => Lifetime::Until(old.expires()),
        _ => lifetime,
    };
    if put(&mut entry, lifetime, value).is_err() {
        out.clear();
        return reply::too_large(out);
    }
    shown.unwrap_or_else(|| reply::ok(out))
}

/// `SETNX KEY VALUE`
pub(super) fn setnx(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let mut entry = call.entry(call.key);
    if entry.item().is_some() {
        return reply::number(out, 0);
    }
    match put(&mut entry, Lifetime::Until(0), call.word(1)) {
        Ok(()) => reply::number(out, 1),
        Err(TooLarge) => reply::too_large(out),
    }
}

/// `SETEX KEY SECONDS VALUE`
pub(super) fn setex(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    store_until(call, Unit::Seconds, out)
}

/// `PSETEX KEY MILLISECONDS VALUE`
pub(super) fn psetex(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    store_until(call, Unit::Millis, out)
}

fn store_until(call: &Call<'_>, unit: Unit, out: &mut Vec<u8>) -> Outcome {
    let options = Options {
        condition: Condition::Always,
        shows_old: false,
        expiry: Expiry::At(unit, call.word(1)),
    };
    store(call, call.word(2), options, out)
}

/// `GETSET KEY VALUE`
pub(super) fn getset(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let options = Options {
        condition: Condition::Always,
        shows_old: true,
        expiry: Expiry::Unsaid,
    };
    store(call, call.word(1), options, out)
}
