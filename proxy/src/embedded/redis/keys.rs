//! Keys without their values: DEL, UNLINK, EXISTS, TOUCH, TYPE, RANDOMKEY, DBSIZE, FLUSHDB, FLUSHALL.

use std::{collections::hash_map::RandomState, hash::BuildHasher};

use proxima_wire::message::Outcome;

use super::{
    call::Call,
    reply::{self, SYNTAX},
};
use crate::embedded::store::{Counter, Entry, Keyspace};

/// `DEL KEY…`
pub(super) fn del(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    count(call, out, |entry| {
        let is_removed = entry.remove();
        entry.count(match is_removed {
            true => Counter::DeleteHits,
            false => Counter::DeleteMisses,
        });
        is_removed
    })
}

/// `EXISTS KEY…`
pub(super) fn exists(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    count(call, out, |entry| entry.item().is_some())
}

/// `TOUCH KEY…`
pub(super) fn touch(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    count(call, out, |entry| {
        let is_there = entry.read().is_some();
        entry.count(match is_there {
            true => Counter::TouchHits,
            false => Counter::TouchMisses,
        });
        is_there
    })
}

/// Appends the number of keys for which `act` returns true.
fn count(call: &Call<'_>, out: &mut Vec<u8>, mut act: impl FnMut(&mut Entry<'_, '_>) -> bool) -> Outcome {
    let (mut keys, mut number) = (call.words(), 0);
    while let Some(key) = keys.text() {
        number += i64::from(act(&mut call.entry(key)));
    }
    reply::number(out, number)
}

/// `TYPE KEY`
pub(super) fn type_of(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let is_there = call.entry(call.key).item().is_some();
    out.extend_from_slice(if is_there { b"+string\r\n" } else { b"+none\r\n" });
    Outcome::Ok
}

/// `RANDOMKEY`
pub(super) fn randomkey(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    // Each new state has other keys.
    let random = RandomState::new().hash_one(call.now);
    let mut show = |key: &[u8]| {
        reply::bulk(out, key);
    };
    let is_one = call
        .store
        .pick(Keyspace::Redis, random, call.now, &mut |item| show(item.key()));
    match is_one {
        true => Outcome::Found,
        false => reply::null(out, call.form),
    }
}

/// `DBSIZE`
pub(super) fn dbsize(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let items = call.store.totals(Keyspace::Redis, call.now).items;
    reply::number(out, items as i64)
}

/// `FLUSHDB [ASYNC | SYNC]`, `FLUSHALL [ASYNC | SYNC]`
pub(super) fn flush(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let mut words = call.words();
    let is_mode = |word: &[u8]| word.eq_ignore_ascii_case(b"async") || word.eq_ignore_ascii_case(b"sync");
    if words.left() > 1 || words.text().is_some_and(|word| !is_mode(word)) {
        return reply::error(out, SYNTAX);
    }
    call.store.flush(Keyspace::Redis, 0, call.now);
    reply::ok(out)
}
