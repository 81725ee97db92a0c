//! The host that this process runs on.

use std::fs;

/// Processors that this process may use.
pub(super) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A number that stays the same on this host: its machine id, or its name.
pub(super) fn id() -> u64 {
    let id = fs::read_to_string("/etc/machine-id")
        .or_else(|_| fs::read_to_string("/proc/sys/kernel/hostname"))
        .unwrap_or_default();
    xxhash_rust::xxh3::xxh3_64(id.trim().as_bytes())
}

/// Clients and lanes need a descriptor each.
pub(super) fn raise_file_limit(clients: usize, workers: usize, members: usize) {
    use rustix::process::{Resource, getrlimit, setrlimit};
    // Without a limit for clients there is none to keep to: as many files as there may be.
    let unlimited = clients >= 1 << 20;
    let clients = clients.min(1 << 20);
    let needed = (clients + workers * (members * (1 + crate::client::BULK_LANES) + 16) + 256) as u64;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return;
    }
    limit.current = Some(limit.maximum.map_or(needed, |maximum| maximum.min(needed)));
    let allowed = limit.current.unwrap_or(needed);
    if setrlimit(Resource::Nofile, limit).is_err() || (allowed < needed && !unlimited) {
        tracing::warn!(
            needed,
            allowed,
            "fewer open files are allowed than clients and servers may need: raise `ulimit -n` or lower limits.clients"
        );
    }
}
