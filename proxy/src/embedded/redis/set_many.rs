//! MSET, MSETNX: store several values.

use proxima_wire::message::Outcome;

use super::{
    call::Call,
    reply,
    set::{Lifetime, put},
};
use crate::embedded::store::Keyspace;

/// Bytes of the largest request that is executed in one step, while which others wait for the store.
const ONE_STEP: usize = 64 * 1024;

impl<'a> Call<'a> {
    /// The keys with their values. `None`: a key has no value.
    fn pairs(&self) -> Option<impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a>> {
        let mut words = self.words();
        (words.left() % 2 == 0).then(|| std::iter::from_fn(move || Some((words.text()?, words.text()?))))
    }

    /// Whether the store takes the value of each key.
    fn fits(&self) -> bool {
        let mut pairs = self.pairs().into_iter().flatten();
        pairs.all(|(key, value)| self.store.takes(key, value.len()))
    }
}

fn wrong_count(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let name = call.name();
    reply::error(out, &format!("wrong number of arguments for '{name}' command"))
}

/// `MSET KEY VALUE…`
pub(super) fn mset(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let Some(pairs) = call.pairs() else {
        return wrong_count(call, out);
    };
    if !call.fits() {
        return reply::too_large(out);
    }
    for (key, value) in pairs {
        // It fits, as the call has checked.
        let _ = put(&mut call.entry(key), Lifetime::Until(0), value);
    }
    reply::ok(out)
}

/// `MSETNX KEY VALUE…`
pub(super) fn msetnx(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let Some(pairs) = call.pairs() else {
        return wrong_count(call, out);
    };
    if call.message.len() > ONE_STEP {
        return reply::error(out, "the embedded store takes an MSETNX of at most 64 KiB");
    }
    if !call.fits() {
        return reply::too_large(out);
    }
    let keys = call.pairs().into_iter().flatten().map(|(key, _)| key);
    let mut all = call.store.several(Keyspace::Redis, keys, call.now);
    let mut keys = call.pairs().into_iter().flatten().map(|(key, _)| key);
    let is_taken = |key| all.entry(key, |entry| entry.item().is_some()).unwrap_or(false);
    if keys.any(is_taken) {
        return reply::number(out, 0);
    }
    for (key, value) in pairs {
        all.entry(key, |entry| put(entry, Lifetime::Until(0), value));
    }
    reply::number(out, 1)
}
