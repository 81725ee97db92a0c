//! me: the metadata of an item.

use std::io::Write;

use proxima_wire::{memcache::KEY, message::Outcome};

use super::key::push_encoded;
use crate::embedded::{
    memcache::{call::Call, say},
    store::{Counter, Marks},
};

/// `me KEY [b]`
pub(in crate::embedded::memcache) fn debug(call: &Call<'_>, out: &mut Vec<u8>) -> Outcome {
    let mut scratch = [0; KEY];
    let key = call.decoded_key(&mut scratch);
    let mut entry = call.entry(key);
    entry.count(Counter::Debugs);
    let Some(item) = entry.item() else {
        return say(out, b"EN\r\n", Outcome::NotFound);
    };
    out.extend_from_slice(b"ME ");
    push_encoded(out, item.key(), item.marks().has(Marks::BINARY_KEY));
    // The time since the expiry. It is negative while the item lives, as memcached shows it.
    let exp = call
        .clock
        .ttl(item.expires())
        .map_or(-1, |left| -i64::from(left as i32));
    let idle = call.clock.second().saturating_sub(item.seen().into());
    let fetched = if item.marks().has(Marks::FETCHED) {
        "yes"
    } else {
        "no"
    };
    // All items belong to one class. Writing to a Vec cannot fail.
    let _ = write!(
        out,
        " exp={exp} la={idle} cas={} fetch={fetched} cls=1 size={}\r\n",
        item.cas(),
        item.size(),
    );
    Outcome::Found
}
