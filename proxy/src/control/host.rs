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
