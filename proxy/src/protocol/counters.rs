//! Process-wide counters for `INFO`.

/// Counters of the whole process, for protocols whose servers tell theirs on request.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessCounters {
    /// Seconds since the process has started.
    pub uptime: u64,
    /// Clients that are connected.
    pub clients: u64,
    /// The most clients that may be connected.
    pub most_clients: u64,
    /// Clients that have ever been connected.
    pub connections: u64,
    /// Clients that were sent away because there were too many.
    pub rejected: u64,
    /// Requests of clients.
    pub requests: u64,
    /// Bytes from clients.
    pub received: u64,
    /// Bytes to clients.
    pub sent: u64,
    /// Keys that were found, of those that this protocol has looked up.
    pub hits: u64,
    /// Keys that were not found, likewise.
    pub misses: u64,
}
