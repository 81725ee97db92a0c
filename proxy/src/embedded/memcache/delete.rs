//! delete.

use proxima_wire::message::Outcome;

use super::{call::Call, say};
use crate::embedded::store::Counter;

/// `delete KEY`
pub(super) fn delete(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let mut entry = call.entry(call.key());
    if entry.remove() {
        entry.count(Counter::DeleteHits);
        say(out, b"DELETED\r\n", Outcome::Deleted)
    } else {
        entry.count(Counter::DeleteMisses);
        say(out, b"NOT_FOUND\r\n", Outcome::NotFound)
    }
}
