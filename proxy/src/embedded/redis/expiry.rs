//! Commands for expiry times: EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT, PERSIST, TTL, PTTL, EXPIRETIME,
//! PEXPIRETIME.

use proxima_wire::{message::Outcome, resp::Args};

use super::{call::Call, moment::Unit, reply};
use crate::embedded::store::Counter;

/// The replies where there is no key, or no expiry time.
const NO_KEY: i64 = -2;
const NEVER: i64 = -1;

/// `EXPIRE KEY SECONDS [NX | XX | GT | LT]`
pub(super) fn expire(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    set(call, Unit::Seconds, out)
}

/// `PEXPIRE KEY MILLISECONDS [NX | XX | GT | LT]`
pub(super) fn pexpire(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    set(call, Unit::Millis, out)
}

/// `EXPIREAT KEY UNIX-SECONDS [NX | XX | GT | LT]`
pub(super) fn expireat(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    set(call, Unit::UnixSeconds, out)
}

/// `PEXPIREAT KEY UNIX-MILLISECONDS [NX | XX | GT | LT]`
pub(super) fn pexpireat(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    set(call, Unit::UnixMillis, out)
}

/// The conditions under which an expiry time is changed.
#[derive(Clone, Copy, Default)]
struct Conditions {
    /// The key has none.
    absent: bool,
    /// The key has one.
    present: bool,
    /// It becomes later.
    later: bool,
    /// It becomes earlier.
    earlier: bool,
}

impl Conditions {
    /// Reads the conditions. The error is the reply.
    fn read(words: &mut Args<'_>) -> Result<Self, String> {
        let mut read = Self::default();
        while let Some(word) = words.text() {
            let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
            let condition = match word {
                _ if is("nx") => &mut read.absent,
                _ if is("xx") => &mut read.present,
                _ if is("gt") => &mut read.later,
                _ if is("lt") => &mut read.earlier,
                _ => {
                    let word = String::from_utf8_lossy(word);
                    return Err(format!("Unsupported option {word}"));
                }
            };
            *condition = true;
        }
        if read.absent && (read.present || read.later || read.earlier) {
            return Err("NX and XX, GT or LT options at the same time are not compatible".into());
        }
        if read.later && read.earlier {
            return Err("GT and LT options at the same time are not compatible".into());
        }
        Ok(read)
    }

    /// May the expiry time `old` (`None`: never) become `new`?
    fn hold(self, old: Option<i64>, new: i64) -> bool {
        let is_rejected = self.absent && old.is_some()
            || self.present && old.is_none()
            || self.later && old.is_none_or(|old| new <= old)
            || self.earlier && old.is_some_and(|old| new >= old);
        !is_rejected
    }
}

fn set(call: &Call<'_>, unit: Unit, out: &mut Vec<u8>) -> Outcome {
    let mut words = call.options();
    let text = words.text().unwrap_or_default();
    let conditions = match Conditions::read(&mut words) {
        Ok(conditions) => conditions,
        Err(text) => return reply::error(out, &text),
    };
    let unix = match call.time(unit, text) {
        Ok(unix) => unix,
        Err(bad) => return bad.answer(call, out),
    };
    let mut entry = call.entry(call.key);
    let Some(old) = entry.item().map(|item| item.expires()) else {
        entry.count(Counter::TouchMisses);
        return reply::number(out, 0);
    };
    entry.count(Counter::TouchHits);
    let old = (old != 0).then(|| call.unix_of(old));
    if !conditions.hold(old, unix) {
        return reply::number(out, 0);
    }
    match call.moment_of(unix) {
        Some(moment) => entry.set_expires(moment),
        None => {
            entry.remove();
        }
    }
    reply::number(out, 1)
}

/// `PERSIST KEY`
pub(super) fn persist(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let mut entry = call.entry(call.key);
    let expires = entry.item().map_or(0, |item| item.expires());
    entry.set_expires(0);
    reply::number(out, i64::from(expires != 0))
}

/// `TTL KEY`: rounded to whole seconds
pub(super) fn ttl(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    show(call, out, |unix| (unix - call.unix() + 500) / 1000)
}

/// `PTTL KEY`
pub(super) fn pttl(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    show(call, out, |unix| unix - call.unix())
}

/// `EXPIRETIME KEY`: rounded to whole seconds
pub(super) fn expiretime(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    show(call, out, |unix| (unix + 500) / 1000)
}

/// `PEXPIRETIME KEY`
pub(super) fn pexpiretime(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    show(call, out, |unix| unix)
}

/// Appends what `count` makes of the expiry time in Unix milliseconds.
fn show(call: &Call<'_>, out: &mut Vec<u8>, count: impl Fn(i64) -> i64) -> Outcome {
    let entry = call.entry(call.key);
    let number = match entry.item().map(|item| item.expires()) {
        None => NO_KEY,
        Some(0) => NEVER,
        Some(expires) => count(call.unix_of(expires)),
    };
    reply::number(out, number)
}
