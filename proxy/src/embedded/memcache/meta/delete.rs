//! md: delete, or mark as stale.

use proxima_wire::{memcache::KEY, message::Outcome};

use super::{flags::Flags, key::push_echo};
use crate::embedded::{
    memcache::{call::Call, line::Clock, reject, say},
    store::{Counter, Entry, Marks, Meta},
};

/// `md KEY FLAG…`
pub(in crate::embedded::memcache) fn delete(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let read = Flags::read(call, 0).and_then(|flags| flags.check_opaque().map(|()| flags));
    let flags = match read {
        Ok(flags) => flags,
        Err(line) => return reject(out, line),
    };
    let mut scratch = [0; KEY];
    let key = call.decoded_key(&mut scratch);
    let mut entry = call.entry(key);
    let outcome = change(&mut entry, call.clock, &flags);
    out.extend_from_slice(match outcome {
        Outcome::Deleted => b"HD",
        Outcome::Exists => b"EX",
        Outcome::NotStored => b"NS",
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
    if flags.empties {
        let meta = Meta {
            flags: flags.flags,
            expires: clock.expires(flags.ttl.unwrap_or(0)),
            marks: Marks::BINARY_KEY.when(item.marks().has(Marks::BINARY_KEY)),
            cas: Some(flags.cas.unwrap_or(item.cas())),
        };
        if entry.put(meta, b"").is_err() {
            return Outcome::NotStored;
        }
        if !flags.invalidate {
            entry.count(Counter::DeleteHits);
            return Outcome::Deleted;
        }
        return mark_stale(entry, clock, flags);
    }
    if !flags.invalidate {
        entry.remove();
        entry.count(Counter::DeleteHits);
        return Outcome::Deleted;
    }
    mark_stale(entry, clock, flags)
}

/// The next reader wins the right to recache the item, even if another client had it before.
fn mark_stale(entry: &mut Entry<'_, '_>, clock: Clock, flags: &Flags) -> Outcome {
    let marks = entry.item().map_or(Marks::NONE, |item| item.marks());
    let marks = marks.with(Marks::STALE).without(Marks::TOKEN_SENT);
    entry.set_marks(marks);
    if let Some(ttl) = flags.ttl {
        entry.set_expires(clock.expires(ttl));
    }
    entry.renew_cas(flags.cas);
    Outcome::Deleted
}
