//! INCR, INCRBY, DECR, DECRBY: the value as a number of 64 bits.

use proxima_wire::{message::Outcome, resp::integer};

use super::{
    call::Call,
    reply::{self, NOT_INTEGER},
    set::{Lifetime, put},
};
use crate::embedded::store::Counter;

const OVERFLOW: &str = "increment or decrement would overflow";

/// `INCR KEY`
pub(super) fn incr(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    change(call, 1, [Counter::IncrHits, Counter::IncrMisses], out)
}

/// `DECR KEY`
pub(super) fn decr(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    change(call, -1, [Counter::DecrHits, Counter::DecrMisses], out)
}

/// `INCRBY KEY NUMBER`
pub(super) fn incrby(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    match integer(call.word(1)) {
        Some(delta) => change(call, delta, [Counter::IncrHits, Counter::IncrMisses], out),
        None => reply::error(out, NOT_INTEGER),
    }
}

/// `DECRBY KEY NUMBER`
pub(super) fn decrby(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    match integer(call.word(1)).map(i64::checked_neg) {
        Some(Some(delta)) => change(call, delta, [Counter::DecrHits, Counter::DecrMisses], out),
        Some(None) => reply::error(out, "decrement would overflow"),
        None => reply::error(out, NOT_INTEGER),
    }
}

/// Adds `delta` to the number, which is 0 where there is none. The expiry time stays.
fn change(call: &Call<'_>, delta: i64, [hit, miss]: [Counter; 2], out: &mut Vec<u8>) -> Outcome {
    let mut entry = call.entry(call.key);
    let old = entry.item().map(|item| (integer(item.value()), item.expires()));
    let (number, expires) = match old {
        Some((Some(number), expires)) => (number, expires),
        Some((None, _)) => return reply::error(out, NOT_INTEGER),
        None => (0, 0),
    };
    let Some(number) = number.checked_add(delta) else {
        return reply::error(out, OVERFLOW);
    };
    entry.count(if old.is_some() { hit } else { miss });
    let digits = &mut itoa::Buffer::new();
    match put(
        &mut entry,
        Lifetime::Until(expires),
        digits.format(number).as_bytes(),
    ) {
        Ok(()) => reply::number(out, number),
        Err(_) => reply::too_large(out),
    }
}
