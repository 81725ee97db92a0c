//! incr and decr: the value as a number.

use proxima_wire::{memcache::number, message::Outcome};

use super::{call::Call, line::push, reject, say};
use crate::embedded::store::{Counter, Entry, Marks, Meta};

/// Reply where the value is no number.
pub(super) const NOT_NUMERIC: &[u8] = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";

/// Bytes up to which a value, trailing blanks included, is read without an allocation. The longest number has
/// 20 digits.
const SHORT: usize = 40;

/// A change of a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// True: the number goes up and wraps at 2^64. False: it goes down and stops at 0.
    pub(super) is_up: bool,
    /// The difference.
    pub(super) delta: u64,
    /// The cas id that the item must have; 0: any.
    pub(super) compare: u64,
    /// The cas id that the item gets. `None`: a fresh one.
    pub(super) cas: Option<u64>,
}

/// Why a number did not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unchanged {
    NotFound,
    Exists,
    NotNumeric,
}

/// `incr KEY DELTA`, `decr KEY DELTA`
pub(super) fn arithmetic(call: &Call<'_>, is_up: bool, out: &mut Vec<u8>) -> Outcome {
    let delta = call.words().next().and_then(number).unwrap_or(0);
    let mut entry = call.entry(call.key());
    match change(
        &mut entry,
        Change {
            is_up,
            delta,
            compare: 0,
            cas: None,
        },
    ) {
        Ok(number) => {
            push(out, number);
            say(out, b"\r\n", Outcome::Found)
        }
        Err(Unchanged::NotNumeric) => reject(out, NOT_NUMERIC),
        Err(Unchanged::NotFound | Unchanged::Exists) => say(out, b"NOT_FOUND\r\n", Outcome::NotFound),
    }
}

/// Changes the number and returns it. A number that gets shorter keeps its length: blanks follow it.
pub(super) fn change(entry: &mut Entry<'_, '_>, change: Change) -> Result<u64, Unchanged> {
    let Change {
        is_up,
        delta,
        compare,
        cas,
    } = change;
    let Some(item) = entry.item() else {
        entry.count(if is_up {
            Counter::IncrMisses
        } else {
            Counter::DecrMisses
        });
        return Err(Unchanged::NotFound);
    };
    let old = item.value();
    if old.is_empty() {
        return Err(Unchanged::NotNumeric);
    }
    if compare != 0 && compare != item.cas() {
        return Err(Unchanged::Exists);
    }
    let old_number = leading_number(old).ok_or(Unchanged::NotNumeric)?;
    let number = if is_up {
        old_number.wrapping_add(delta)
    } else {
        old_number.saturating_sub(delta)
    };
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(number).as_bytes();
    let is_in_place = digits.len() <= old.len();
    let (mut short, mut long) = ([b' '; SHORT], Vec::new());
    let padded = match old.len().max(digits.len()) {
        length @ ..=SHORT => &mut short[..length],
        length => {
            long.resize(length, b' ');
            &mut long[..]
        }
    };
    padded[..digits.len()].copy_from_slice(digits);
    let marks = item.marks();
    // memcached treats a longer number as a new item.
    let marks = if is_in_place {
        marks
    } else {
        Marks::BINARY_KEY.when(marks.has(Marks::BINARY_KEY))
    };
    let meta = Meta {
        flags: item.flags(),
        expires: item.expires(),
        marks,
        cas,
    };
    // The value is no larger than the one before, or than 20 bytes, so it fits.
    let _ = entry.put(meta, padded);
    entry.count(if is_up {
        Counter::IncrHits
    } else {
        Counter::DecrHits
    });
    Ok(number)
}

/// The number at the front of a value, as C's strtoull reads it: blanks may stand before it, and if anything
/// follows it, white space does.
fn leading_number(value: &[u8]) -> Option<u64> {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = value.iter().position(|byte| !is_space(byte))?;
    let digits = value[start..].strip_prefix(b"+").unwrap_or(&value[start..]);
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = digits.split_at(length);
    if rest.first().is_some_and(|byte| !is_space(byte) && *byte != 0) {
        return None;
    }
    number(digits)
}
