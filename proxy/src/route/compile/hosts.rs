//! Numbers of the host that this proxy runs on, and of its workers.

use proxima_wire::hash::KeyHash;

use super::maker::Maker;

impl Maker<'_, '_> {
    /// A number that stays the same on this host, and that other hosts do not have. Another salt gives
    /// another number.
    pub(in crate::route) fn host_number(&self, salt: &str) -> u64 {
        match salt.is_empty() {
            true => self.compiler.host_id,
            false => self.compiler.host_id ^ u64::from(KeyHash::Fnv1a32.hash(salt.as_bytes())),
        }
    }

    /// A number that no other worker has; 0 if the workers are not `apart`.
    pub(in crate::route) fn worker_number(&self, apart: bool) -> u64 {
        if apart { self.compiler.trees } else { 0 }
    }
}
