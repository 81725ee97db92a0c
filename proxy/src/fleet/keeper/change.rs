//! A change that this worker coordinates.

use super::Send;
use crate::{
    fleet::{Slot, Stamp, Stay},
    table::{Entry, Id},
};

/// A peer whose acknowledgement is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Await {
    pub(super) slot: Slot,
    pub(super) stay: Stay,
    /// The number under which it was last sent there.
    pub(super) sequence: u64,
    /// The peer was in a later view and is sent it again when this worker has installed that.
    pub(super) refused: bool,
}

/// A change that this worker coordinates.
#[derive(Clone, Debug, Hash)]
pub struct Change {
    pub(super) generation: u32,
    /// The caller's own number for it.
    pub(super) token: u64,
    pub(super) stamp: Stamp,
    /// The view that was installed when it began.
    pub(super) begun: u64,
    /// The hash of the pool's name.
    pub(super) pool: u64,
    pub(super) key: Vec<u8>,
    /// The hash of pool and key.
    pub(super) hash: u64,
    pub(super) awaits: Vec<Await>,
}

impl Change {
    /// The change as it is sent to this peer under this number.
    pub(super) fn send(&self, (slot, stay): (Slot, Stay), sequence: u64) -> Send {
        Send {
            slot,
            stay,
            sequence,
            token: self.token,
            stamp: self.stamp,
        }
    }
}

/// The handle of a change.
pub type ChangeId = Id<Change>;

impl Entry for Change {
    type Kind = Self;

    fn generation(&self) -> u32 {
        self.generation
    }
}
