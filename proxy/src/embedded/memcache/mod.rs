//! memcached in this process: one request in, the bytes that the newest memcached would answer out.
//!
//! ```text
//! answer ─┬─ get         get gets gat gats touch
//!         ├─ set         set add replace append prepend cas
//!         ├─ arithmetic  incr decr
//!         ├─ delete      delete
//!         ├─ meta/*      mg ms md ma me mn
//!         ├─ dump        lru_crawler metadump
//!         └─ admin       flush_all version verbosity stats shutdown
//! ```
//!
//! The head comes from the codec, which has rejected malformed requests as far as it can; the rest is checked
//! here. A quiet request is answered like any other: the caller withholds the reply from the client
//! ([`silenced`](proxima_wire::memcache::silenced)).
//!
//! It differs from memcached on purpose where no client can rely on memcached's way:
//! * `ma` with `T` sets the expiry time also when the new number is longer than the old one, which memcached
//!   forgets;
//! * an item whose key came in base64 keeps that through append, incr and vivification, so that no blank or
//!   line end in a key ever stands on a reply's line;
//! * an opaque of more than 32 bytes is rejected before anything is changed;
//! * a second `flush_all` never brings back what an earlier one has flushed;
//! * a reply to many keys is bounded ([`Context::largest_reply`]);
//! * `l` is the time since the last read, where memcached with its default LRU forgets the first read after a
//!   while;
//! * cas ids of one key increase, but not by one; `me` knows one class of items, and decodes its key whatever
//!   follows `b`.

mod admin;
mod arithmetic;
mod call;
mod delete;
mod dump;
mod get;
mod likely_key;
mod line;
mod meta;
mod set;
mod stats;

use proxima_wire::{
    memcache::{Command, error},
    message::{Outcome, Reply, Request},
};

pub(super) use self::likely_key::{is_likely_read, likely_key};
use self::{call::Call, line::Clock, set::Mode};
pub use self::{dump::Dump, stats::connections};
use super::Context;
use crate::embedded::store::Store;

/// The answer to `version`. Clients that look at it read three numbers; a suffix after a dash is usual for
/// builds of memcached that are no release.
pub const VERSION: &str = "1.6.18-proxima";

/// Executes `request`, whose head and body are `message`, and appends the reply to `out`, which is empty.
/// `quit` is not answered.
pub fn answer(
    store: &Store,
    context: &Context<'_>,
    request: &Request,
    message: &[u8],
    out: &mut Vec<u8>,
) -> Reply {
    let outcome = execute(store, context, request, message, out);
    let trailer = if out.last_chunk() == Some(b"END\r\n") {
        5
    } else {
        0
    };
    Reply {
        trailer,
        ..Reply::new(outcome, out.len())
    }
}

fn execute(
    store: &Store,
    context: &Context<'_>,
    request: &Request,
    message: &[u8],
    out: &mut Vec<u8>,
) -> Outcome {
    let Some(command) = Command::from_number(request.command) else {
        return reject(out, error::ERROR);
    };
    let clock = Clock {
        now: context.now,
        unix: context.unix,
    };
    let call = Call {
        store,
        clock,
        request,
        message,
        largest_reply: context.largest_reply,
    };
    match command {
        Command::Get => get::get(&call, out),
        Command::Gets => get::gets(&call, out),
        Command::Gat => get::get_and_touch(&call, false, out),
        Command::Gats => get::get_and_touch(&call, true, out),
        Command::Touch => get::touch(&call, out),
        Command::Set => set::set(&call, Mode::Set, out),
        Command::Add => set::set(&call, Mode::Add, out),
        Command::Replace => set::set(&call, Mode::Replace, out),
        Command::Append => set::set(&call, Mode::Append, out),
        Command::Prepend => set::set(&call, Mode::Prepend, out),
        Command::Cas => set::set(&call, Mode::Cas, out),
        Command::Delete => delete::delete(&call, out),
        Command::Incr => arithmetic::arithmetic(&call, true, out),
        Command::Decr => arithmetic::arithmetic(&call, false, out),
        Command::MetaGet => meta::get::get(&call, out),
        Command::MetaSet => meta::set::set(&call, out),
        Command::MetaDelete => meta::delete::delete(&call, out),
        Command::MetaArithmetic => meta::arithmetic::arithmetic(&call, out),
        Command::MetaDebug => meta::debug::debug(&call, out),
        Command::MetaNoop => say(out, b"MN\r\n", Outcome::Ok),
        Command::FlushAll => admin::flush_all(&call, out),
        Command::Version => admin::version(out),
        Command::Verbosity => say(out, b"OK\r\n", Outcome::Ok),
        Command::Stats => stats::stats(&call, context, out),
        Command::Shutdown => say(
            out,
            b"SERVER_ERROR: shutdown not enabled\r\n",
            Outcome::RemoteError,
        ),
        Command::Quit => Outcome::Ok,
        Command::LruCrawler => dump::dump(store, context, request, message, out),
        Command::Config | Command::LeaseGet | Command::LeaseSet | Command::Metadata => {
            reject(out, error::ERROR)
        }
    }
}

/// Appends `line`.
fn say(out: &mut Vec<u8>, line: &[u8], outcome: Outcome) -> Outcome {
    out.extend_from_slice(line);
    outcome
}

/// Appends an error line that is the client's fault.
#[cold]
fn reject(out: &mut Vec<u8>, line: &[u8]) -> Outcome {
    say(out, line, Outcome::ClientError)
}

/// Appends the reply that memcached gives when it has no memory for a reply. `out` is empty.
pub(super) fn out_of_memory(out: &mut Vec<u8>) -> Reply {
    let outcome = no_memory(out);
    Reply::new(outcome, out.len())
}

/// Appends the reply that memcached gives when it has no memory for a reply.
#[cold]
fn no_memory(out: &mut Vec<u8>) -> Outcome {
    let line = b"SERVER_ERROR out of memory writing get response\r\n";
    say(out, line, Outcome::RemoteError)
}

/// Appends the reply to a value that is larger than the store takes.
#[cold]
fn too_large(out: &mut Vec<u8>) -> Outcome {
    say(out, error::TOO_LARGE, Outcome::RemoteError)
}
