//! GET, MGET, GETDEL, GETEX: values of keys.

use proxima_wire::{message::Outcome, resp::append_number};

use super::{
    call::Call,
    options::{self, Expiry, OptionsOf},
    reply::{self, SYNTAX},
};
use crate::embedded::store::{Counter, Entry, Miss};

/// `GET KEY`
#[inline]
pub(super) fn get(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    append_value(&mut call.entry(call.key), call.form, out)
}

/// Appends the value of an entry, or null, and counts the read.
#[inline]
pub(super) fn append_value(entry: &mut Entry<'_, '_>, form: u16, out: &mut Vec<u8>) -> Outcome {
    if let Some(item) = entry.read() {
        out.extend_from_slice(item.reply());
        entry.count(Counter::GetHits);
        return Outcome::Found;
    }
    entry.count(Counter::GetMisses);
    match entry.miss() {
        Some(Miss::Expired) => entry.count(Counter::GetExpired),
        Some(Miss::Flushed) => entry.count(Counter::GetFlushed),
        Some(Miss::Absent) | None => {}
    }
    reply::null(out, form)
}

/// `MGET KEY…`
pub(super) fn mget(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let mut keys = call.words();
    append_number(b'*', i64::from(keys.left()), out);
    while let Some(key) = keys.text() {
        append_value(&mut call.entry(key), call.form, out);
        if out.len() > call.largest_reply {
            out.clear();
            return reply::no_memory(out);
        }
    }
    Outcome::Found
}

/// `GETDEL KEY`
pub(super) fn getdel(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let mut entry = call.entry(call.key);
    let outcome = append_value(&mut entry, call.form, out);
    if entry.remove() {
        entry.count(Counter::DeleteHits);
    }
    outcome
}

/// `GETEX KEY [PERSIST | EX … | PX … | EXAT … | PXAT …]`
pub(super) fn getex(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let Some(options) = options::read(OptionsOf::GetEx, &mut call.options()) else {
        return reply::error(out, SYNTAX);
    };
    let mut entry = call.entry(call.key);
    let time = match options.expiry {
        // Servers look at the time only when there is a value.
        Expiry::At(unit, text) if entry.item().is_some() => match call.positive_time(unit, text) {
            Ok(unix) => Some(unix),
            Err(bad) => return bad.answer(call, out),
        },
        _ => None,
    };
    let outcome = append_value(&mut entry, call.form, out);
    match (options.expiry, time.map(|unix| call.moment_of(unix))) {
        (_, Some(Some(moment))) => entry.set_expires(moment),
        (_, Some(None)) => {
            entry.remove();
        }
        (Expiry::Never, None) => entry.set_expires(0),
        _ => {}
    }
    outcome
}
