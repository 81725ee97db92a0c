//! A replicated pool whose copies belong to the peers of a fleet.

use proxima_wire::{
    hash::spooky64,
    message::{Parsed, Request},
};

use crate::protocol::Protocol;

/// A replicated pool of a fleet: its only child is this proxy's own copy, if it has one; every other copy is
/// reached through the peer at its side.
pub struct FleetPool {
    /// The pool's name, the same at every peer.
    pub name: String,
    /// The hash of the name, by which peers call the pool.
    pub hash: u64,
    /// The protocol of its servers.
    pub protocol: &'static dyn Protocol,
}

impl FleetPool {
    /// The pool of this name.
    pub fn new(name: &str, protocol: &'static dyn Protocol) -> Self {
        Self {
            name: name.to_owned(),
            hash: spooky64(name.as_bytes(), 0),
            protocol,
        }
    }

    /// The hash of a key of this pool: the same at every peer.
    pub fn key_hash(&self, key: &[u8]) -> u64 {
        spooky64(key, self.hash)
    }

    /// The request that a peer has sent, with its protocol; `None`: it is no complete request.
    pub fn head(&self, message: &[u8]) -> Option<(&'static dyn Protocol, Request)> {
        match self.protocol.head(message) {
            Parsed::Head(request) if request.len() == message.len() as u64 => Some((self.protocol, request)),
            _ => None,
        }
    }
}
