//! flush_all, version.

use proxima_wire::{memcache::time, message::Outcome};

use super::{VERSION, call::Call, say};
use crate::embedded::store::Keyspace;

/// `flush_all [DELAY]`
pub(super) fn flush_all(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let delay = call.words().next().and_then(time).unwrap_or(0);
    // A negative delay counts as none.
    let at = call.clock.expires(delay.max(0));
    call.store.flush(Keyspace::Memcache, at, call.clock.now);
    say(out, b"OK\r\n", Outcome::Ok)
}

/// `version`
pub(super) fn version(out: &mut Vec<u8>) -> Outcome {
    out.extend_from_slice(b"VERSION ");
    out.extend_from_slice(VERSION.as_bytes());
    say(out, b"\r\n", Outcome::Ok)
}
