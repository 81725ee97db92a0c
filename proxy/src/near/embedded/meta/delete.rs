//! md: delete, or mark as stale.

use proxima_wire::{
    memcache::{KEY, error},
    message::Outcome,
};

use super::{
    flags::{Flags, OPAQUE_TOO_LONG},
    key::push_echo,
};
use crate::near::{
    embedded::{call::Call, line::Clock, refuse, say},
    store::{Counter, Entry, Marks},
};

/// `md KEY FLAG…`
pub(in crate::near::embedded) fn delete(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let flags = match Flags::read(call, 0) {
        Ok(flags) => flags,
        Err(OPAQUE_TOO_LONG) => return refuse(out, OPAQUE_TOO_LONG),
        Err(_) => return refuse(out, error::BAD_FLAG),
    };
    let mut scratch = [0; KEY];
    let key = call.decoded_key(&mut scratch);
    let mut entry = call.entry(key);
    let outcome = change(&mut entry, call.clock, &flags);
    out.extend_from_slice(match outcome {
        Outcome::Deleted => b"HD",
        Outcome::Exists => b"EX",
        _ => b"NF",
    });
    for word in call.words() {
        push_echo(out, word, key, call.request.base64_key);
    }
    say(out, b"\r\n", outcome)
}

fn change(entry: &mut Entry<'_, '_>, clock: Clock, flags: &Flags) -> Outcome {
    let Some(item) = entry.item() else {
        entry.count(Counter::DeleteMisses);
        return Outcome::NotFound;
    };
    if flags.compare.is_some_and(|compare| compare != item.cas()) {
        entry.count(Counter::DeleteMisses);
        return Outcome::Exists;
    }
    if !flags.invalidate {
        entry.remove();
        entry.count(Counter::DeleteHits);
        return Outcome::Deleted;
    }
    // The next reader shall win the right to recache it, whoever had it before.
    let marks = item.marks().with(Marks::STALE).without(Marks::TOKEN_SENT);
    entry.set_marks(marks);
    if let Some(ttl) = flags.ttl {
        entry.set_expires(clock.expires(ttl));
    }
    entry.renew_cas(flags.cas);
    Outcome::Deleted
}
