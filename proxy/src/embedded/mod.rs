//! The servers in this process, which need no network hop. They take one request and return a reply, from a
//! store that all workers share.
//!
//! ```text
//! answer ─┬─ memcache   text and meta protocol, as memcached
//!         └─ redis      strings, counters and expiry, as Redis
//! ```
//!
//! Each protocol has a [keyspace](store::Keyspace) of its own. Their items share the store's memory.

pub mod memcache;
mod redis;
pub mod store;

pub use self::memcache::Dump;

use proxima_wire::message::{Outcome, Reply, Request};

use self::store::{Prefetch, Store};
use crate::protocol::{Embedded, Failed};

/// The facts that a store needs from outside.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Milliseconds since the server started: the store's clock.
    pub now: u64,
    /// The time of day in seconds since 1970.
    pub unix: u64,
    /// The Unix time in milliseconds when the store's clock was 0. It never changes.
    pub begun: u64,
    /// This process.
    pub pid: u32,
    /// Workers.
    pub threads: usize,
    /// Bytes that the reply to one request with many keys may have. A line of 1 MiB could ask a thousand
    /// times for the same value of 1 MiB. Such a request gets an error.
    pub largest_reply: usize,
    /// Connections that may be open at a time.
    pub most_connections: usize,
    /// The connections of the process.
    pub connections: &'a dyn Connections,
}

/// The connections of the whole process, asked for by `stats` only.
pub trait Connections {
    /// The number of open connections.
    fn current(&self) -> u64;
    /// The number of connections ever opened.
    fn total(&self) -> u64;
    /// Other counters of connections, under memcached's names.
    fn counts(&self) -> Vec<(&'static str, u64)>;
    /// Resets these counters to 0.
    fn reset_counts(&self);
    /// Shows each open connection.
    fn each(&self, show: &mut dyn FnMut(&Connection<'_>));
}

/// A connection, as `stats conns` shows it.
#[derive(Clone, Copy, Debug)]
pub struct Connection<'a> {
    /// The number of the connection; memcached shows the descriptor.
    pub id: u64,
    /// The client's address, `tcp:127.0.0.1:40000` or `unix:/path`.
    pub address: &'a str,
    /// The listener that accepted it. `None` for a listening socket.
    pub listener: Option<&'a str>,
    /// memcached's name for its state: `conn_listening`, `conn_read`, `conn_nread`, `conn_mwrite`, …
    pub state: &'a str,
    /// Seconds since its last command.
    pub idle: u64,
}

/// Executes `request`, whose head and body are `message`, and appends the reply to `out`, which is empty.
/// `form`: that of the client's [session](crate::protocol::Session). memcached's `quit` is not answered.
#[inline]
pub fn answer(
    server: Embedded,
    store: &Store,
    context: &Context<'_>,
    form: u16,
    (request, message): (&Request, &[u8]),
    out: &mut Vec<u8>,
) -> Reply {
    match server {
        Embedded::Memcache => memcache::answer(store, context, request, message, out),
        Embedded::Redis => redis::answer(store, context, form, (request, message), out),
    }
}

/// Appends the reply of a server that has no memory for a reply. `out` is empty.
pub fn out_of_memory(server: Embedded, out: &mut Vec<u8>) -> Reply {
    match server {
        Embedded::Memcache => memcache::out_of_memory(out),
        Embedded::Redis => redis::out_of_memory(out),
    }
}

/// The error for a value that comes in pieces: the store takes it whole or not at all.
pub const TOO_LARGE: Failed<'static> = Failed::here(Outcome::RemoteError, "object too large for cache");

/// The key for which `bytes`, the beginning of a request, will most likely ask, and whether to read it.
pub fn likely_key(server: Embedded, bytes: &[u8]) -> Option<(&[u8], bool)> {
    Some(match server {
        Embedded::Memcache => (memcache::likely_key(bytes)?, memcache::is_likely_read(bytes)),
        Embedded::Redis => (redis::likely_key(bytes)?, redis::is_likely_read(bytes)),
    })
}

/// Starts loading what `bytes`, the beginning of a request, will most likely ask for.
pub fn prefetch(server: Embedded, store: &Store, bytes: &[u8], prefetch: &mut Prefetch) {
    if let Some((key, _)) = likely_key(server, bytes) {
        store.prefetch(key, prefetch);
    }
}
