//! The number of the host that this process runs on.

use std::fs;

/// A number that stays the same on this host. It comes from its machine id, or from its name.
pub fn host_id() -> u64 {
    let id = fs::read_to_string("/etc/machine-id")
        .or_else(|_| fs::read_to_string("/proc/sys/kernel/hostname"))
        .unwrap_or_default();
    xxhash_rust::xxh3::xxh3_64(id.trim().as_bytes())
}
