//! One connection to a worker of a peer.

use crate::{
    engine::ids,
    fleet::{Slot, Stay},
    stream::Stream,
    table::Entry,
};

/// The role of this worker on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It sends changes, and asks.
    Coordinator,
    /// It keeps its copy: it acknowledges changes, and answers.
    Keeper {
        /// The number of the peer's worker at the other end.
        worker: u16,
    },
}

/// One connection to a worker of a peer.
pub struct Link {
    generation: u32,
    /// The peer.
    pub(crate) slot: Slot,
    /// Its stay. Nothing that comes by this link counts for another one.
    pub(crate) stay: Stay,
    /// The role of this worker.
    pub(crate) role: Role,
    pub(crate) stream: Stream,
    /// The next frame is of a view that this worker has not installed: it waits, with all behind it.
    pub(crate) is_ahead: bool,
}

impl Link {
    /// A link to this peer, not yet in a reactor.
    pub(crate) fn new(generation: u32, slot: Slot, stay: Stay, role: Role, stream: Stream) -> Self {
        Self {
            generation,
            slot,
            stay,
            role,
            stream,
            is_ahead: false,
        }
    }

    /// Bytes of memory that its buffers take.
    pub(crate) fn memory_bytes(&self) -> usize {
        let Stream {
            read_buffer,
            out,
            wire,
            ..
        } = &self.stream;
        read_buffer.capacity() + out.capacity() + wire.capacity()
    }
}

impl Entry for Link {
    type Kind = ids::LinkKind;

    fn generation(&self) -> u32 {
        self.generation
    }
}
