//! stats: contents, counters and connections.

use proxima_wire::message::Outcome;

use super::{VERSION, call::Call, line::push, reject, say};
use crate::embedded::{
    Connection, Connections, Context,
    store::{Counter, Keyspace, Store, Totals},
};

const END: &[u8] = b"END\r\n";

/// The store's counters under their names in `stats`.
const COUNTERS: &[(&str, &[Counter])] = &[
    ("cmd_get", &[Counter::GetHits, Counter::GetMisses]),
    ("cmd_set", &[Counter::Sets]),
    ("cmd_flush", &[Counter::Flushes]),
    ("cmd_touch", &[Counter::TouchHits, Counter::TouchMisses]),
    ("cmd_meta", &[Counter::Debugs]),
    ("get_hits", &[Counter::GetHits]),
    ("get_misses", &[Counter::GetMisses]),
    ("get_expired", &[Counter::GetExpired]),
    ("get_flushed", &[Counter::GetFlushed]),
    ("delete_misses", &[Counter::DeleteMisses]),
    ("delete_hits", &[Counter::DeleteHits]),
    ("incr_misses", &[Counter::IncrMisses]),
    ("incr_hits", &[Counter::IncrHits]),
    ("decr_misses", &[Counter::DecrMisses]),
    ("decr_hits", &[Counter::DecrHits]),
    ("cas_misses", &[Counter::CasMisses]),
    ("cas_hits", &[Counter::CasHits]),
    ("cas_badval", &[Counter::CasMismatches]),
    ("touch_hits", &[Counter::TouchHits]),
    ("touch_misses", &[Counter::TouchMisses]),
    ("store_too_large", &[Counter::TooLarge]),
    ("total_items", &[Counter::TotalItems]),
    ("evictions", &[Counter::Evictions]),
    ("reclaimed", &[Counter::Reclaimed]),
];

/// `stats [SUBJECT …]`
pub(super) fn stats(call: &Call<'_>, context: &Context<'_>, out: &mut Vec<u8>) -> Outcome {
    match call.words().next() {
        None => general(call.store, context, out),
        Some(b"conns") => connections(context.connections, out),
        Some(b"settings") => settings(call.store, context, out),
        Some(b"items") => items(&call.store.totals(Keyspace::Memcache, context.now), out),
        Some(b"slabs") => slabs(
            call.store,
            &call.store.totals(Keyspace::Memcache, context.now),
            out,
        ),
        Some(b"sizes") => push_text(out, "sizes_status", "disabled"),
        Some(b"reset") => {
            call.store.reset_counters(Keyspace::Memcache);
            context.connections.reset_counts();
            return say(out, b"RESET\r\n", Outcome::Ok);
        }
        Some(b"cachedump") => return reject(out, b"CLIENT_ERROR stats cachedump not allowed\r\n"),
        Some(_) => return reject(out, b"ERROR\r\n"),
    }
    say(out, END, Outcome::Ok)
}

fn general(store: &Store, context: &Context<'_>, out: &mut Vec<u8>) {
    let totals = store.totals(Keyspace::Memcache, context.now);
    push_number(out, "pid", context.pid.into());
    push_number(out, "uptime", context.now / 1000);
    push_number(out, "time", context.unix);
    push_text(out, "version", VERSION);
    push_number(out, "pointer_size", usize::BITS.into());
    push_number(out, "max_connections", context.most_connections as u64);
    push_number(out, "curr_connections", context.connections.current());
    push_number(out, "total_connections", context.connections.total());
    push_number(out, "accepting_conns", 1);
    for (name, count) in context.connections.counts() {
        push_number(out, name, count);
    }
    push_number(out, "threads", context.threads as u64);
    push_number(out, "limit_maxbytes", store.limits().memory as u64);
    push_number(out, "bytes", totals.bytes);
    push_number(out, "curr_items", totals.items);
    for (name, counters) in COUNTERS {
        push_number(out, name, count(&totals, counters));
    }
}

fn settings(store: &Store, context: &Context<'_>, out: &mut Vec<u8>) {
    push_number(out, "maxbytes", store.limits().memory as u64);
    push_number(out, "maxconns", context.most_connections as u64);
    push_number(out, "item_size_max", store.limits().item as u64);
    push_number(out, "num_threads", context.threads as u64);
    push_text(out, "evictions", "on");
    push_text(out, "cas_enabled", "yes");
    push_text(out, "flush_enabled", "yes");
    push_text(out, "dump_enabled", "yes");
    push_text(out, "shutdown_command", "no");
    push_text(out, "hash_algorithm", "ahash");
}

/// All items belong to one class, which is called 1.
fn items(totals: &Totals, out: &mut Vec<u8>) {
    if totals.items != 0 {
        push_number(out, "items:1:number", totals.items);
        push_number(out, "items:1:mem_requested", totals.bytes);
        push_number(out, "items:1:evicted", totals.counters.get(Counter::Evictions));
        push_number(out, "items:1:outofmemory", 0);
        push_number(out, "items:1:reclaimed", totals.counters.get(Counter::Reclaimed));
    }
}

/// The numbers that tools show in a table of slabs, for a store that has none. Items appear as chunks of
/// their mean size, memory as pages, and chunks as free as long as memory is free.
fn slabs(store: &Store, totals: &Totals, out: &mut Vec<u8>) {
    const PAGE: u64 = 1 << 20;
    if totals.items != 0 {
        let size = totals.bytes.div_ceil(totals.items);
        let free = (store.limits().memory as u64).saturating_sub(totals.bytes) / size;
        push_number(out, "1:chunk_size", size);
        push_number(out, "1:chunks_per_page", PAGE.div_ceil(size));
        push_number(out, "1:total_pages", totals.bytes.div_ceil(PAGE));
        push_number(out, "1:total_chunks", totals.items + free);
        push_number(out, "1:used_chunks", totals.items);
        push_number(out, "1:free_chunks", free);
        push_number(out, "1:free_chunks_end", 0);
        let of_slabs = [
            "get_hits",
            "cmd_set",
            "delete_hits",
            "incr_hits",
            "decr_hits",
            "cas_hits",
            "cas_badval",
            "touch_hits",
        ];
        for (name, counters) in COUNTERS.iter().filter(|(name, _)| of_slabs.contains(name)) {
            push_number(out, &format!("1:{name}"), count(totals, counters));
        }
    }
    push_number(out, "active_slabs", u64::from(totals.items != 0));
    push_number(out, "total_malloced", totals.bytes);
}

fn count(totals: &Totals, counters: &[Counter]) -> u64 {
    counters.iter().map(|counter| totals.counters.get(*counter)).sum()
}

/// Appends a few rows for each connection.
pub fn connections(connections: &dyn Connections, out: &mut Vec<u8>) {
    connections.each(&mut |connection| push_connection(out, connection));
}

fn push_connection(out: &mut Vec<u8>, connection: &Connection<'_>) {
    let mut line = |name: &str, value: &str| {
        out.extend_from_slice(b"STAT ");
        push(out, connection.id);
        for text in [":", name, " ", value, "\r\n"] {
            out.extend_from_slice(text.as_bytes());
        }
    };
    line("addr", connection.address);
    if let Some(listener) = connection.listener {
        line("listen_addr", listener);
    }
    line("state", connection.state);
    line("secs_since_last_cmd", itoa::Buffer::new().format(connection.idle));
}

fn push_number(out: &mut Vec<u8>, name: &str, number: u64) {
    push_text(out, name, itoa::Buffer::new().format(number));
}

fn push_text(out: &mut Vec<u8>, name: &str, text: &str) {
    for part in ["STAT ", name, " ", text, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}
