//! The numbered list of peers.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// The slot of a peer in stamps and tables: the smallest number that no other peer of the view has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Slot(pub u16);

impl Slot {
    /// A slot has this many bits: a fleet has at most 2,048 peers.
    pub const BITS: u32 = 11;
}

/// One stay of a peer in the fleet: the number of the view that it joined with. A peer that leaves and joins
/// again has another stay, and messages of the first stay do not count in the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stay(pub u64);

/// A peer, with what it announced when it joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// Its name, which no other peer has.
    pub name: String,
    /// The identity of its directory. A peer that comes with another identity has lost its state.
    pub identity: u128,
    /// Drawn at the start of its process: another process of the same peer has another stay.
    pub process: u64,
    /// The address at which the other peers reach it.
    pub address: SocketAddr,
    /// Its stay.
    pub stay: Stay,
    /// Its slot.
    pub slot: Slot,
    /// May it decide `incr`, `add`, `cas`, … of the keys whose home it is?
    pub decides: bool,
    /// The number of its workers: each of them has a lane from every worker of every other peer.
    pub workers: u16,
    /// The length of its leases, in microseconds: leaders wait for this time, whatever their own
    /// configuration says. 0: unknown, and the leader's own length counts.
    #[serde(default)]
    pub lease: u64,
    /// Its zone.
    pub zone: Option<String>,
    /// The pools that it has a copy of, by name, with the address of its own server.
    pub copies: Vec<(String, String)>,
}

#[cfg(test)]
impl Peer {
    /// A peer of this name as it announces itself, without a copy.
    pub(crate) fn example(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            identity: 1,
            process: 1,
            address: ([127, 0, 0, 1], 1).into(),
            stay: Stay(0),
            slot: Slot(0),
            decides: false,
            workers: 1,
            lease: 0,
            zone: None,
            copies: Vec::new(),
        }
    }
}

/// The numbered list of peers, in the order of their names. Every message of the data plane carries the
/// number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Its number; 0 is the view before the first, which has no peers.
    pub number: u64,
    /// The peers.
    pub peers: Vec<Peer>,
}

impl View {
    /// The peer of this name.
    pub fn named(&self, name: &str) -> Option<&Peer> {
        let found = self.peers.binary_search_by(|peer| peer.name.as_str().cmp(name));
        found.ok().and_then(|at| self.peers.get(at))
    }

    /// The peer of this slot.
    pub fn slot(&self, slot: Slot) -> Option<&Peer> {
        self.peers.iter().find(|peer| peer.slot == slot)
    }
}
