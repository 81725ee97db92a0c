//! A replicated pool whose copies belong to the peers of a fleet.

use proxima_wire::{
    hash::spooky64,
    message::{Parsed, Request},
};

use crate::dialect::Dialect;

/// A replicated pool of a fleet: its only child is this proxy's own copy, if it has one; every other copy is
/// reached through the peer at its side.
pub struct FleetPool {
    /// The pool's name, the same at every peer.
    pub name: String,
    /// The hash of the name, by which peers call the pool.
    pub hash: u64,
    /// The protocol of its servers.
    pub dialect: &'static dyn Dialect,
}

impl FleetPool {
    /// The pool of this name.
    pub fn new(name: &str, dialect: &'static dyn Dialect) -> Self {
        Self {
            name: name.to_owned(),
            hash: spooky64(name.as_bytes(), 0),
            dialect,
        }
    }

    /// The hash of a key of this pool: the same at every peer.
    pub fn key_hash(&self, key: &[u8]) -> u64 {
        spooky64(key, self.hash)
    }

    /// The request that a peer has sent, with its protocol; `None`: it is no complete request.
    pub fn head(&self, message: &[u8]) -> Option<(&'static dyn Dialect, Request)> {
        match self.dialect.head(message) {
            Parsed::Head(request) if request.len() == message.len() as u64 => Some((self.dialect, request)),
            _ => None,
        }
    }
}
