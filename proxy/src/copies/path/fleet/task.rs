//! Work that this worker does for a peer.

use std::rc::Rc;

use crate::{
    copies::KeyLock,
    engine::{LinkId, ids},
    fleet::{Stamp, keeper::Origin},
    members::MemberId,
    micros::Micros,
    route::{NodeId, Tree},
    table::Entry,
};

/// Work that this worker does for a peer.
pub(super) struct Task {
    pub(super) generation: u32,
    /// The link that the work came by, and by which its result goes back.
    pub(super) link: LinkId,
    /// The number of the change or of the request on that link.
    pub(super) number: u64,
    pub(super) work: Work,
}

/// The kinds of work.
pub(super) enum Work {
    /// A request is answered.
    Answer,
    /// A change is kept.
    Keep(Box<Keep>),
}

/// A change of a peer, on its way to the own copy.
#[derive(Default)]
pub(super) struct Keep {
    /// The coordinator.
    pub(super) from: Origin,
    /// The view in which it came.
    pub(super) view: u64,
    pub(super) stamp: Stamp,
    /// The hash of pool and key.
    pub(super) hash: u64,
    /// The key; empty: all keys.
    pub(super) key: Vec<u8>,
    /// The request, while it waits for its lock.
    pub(super) message: Vec<u8>,
    /// The pool, and the lock of the key.
    pub(super) place: Option<(Rc<Tree>, NodeId, KeyLock)>,
    /// Since when it waits.
    pub(super) since: Micros,
    /// It was sent to the own copy, which has not answered.
    pub(super) is_sent: bool,
    /// The own copy misses it: how often the copy had been out by then; `None` inside: it is no longer a
    /// member.
    pub(super) missed: Option<(MemberId, Option<u32>)>,
}

impl Keep {
    /// Forgets the change, and keeps the buffers.
    pub(super) fn clear(&mut self) {
        self.key.clear();
        self.message.clear();
        (self.place, self.missed, self.is_sent) = (None, None, false);
    }

    /// Bytes of memory that its buffers take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.key.capacity() + self.message.capacity()
    }
}

impl Entry for Task {
    type Kind = ids::TaskKind;

    fn generation(&self) -> u32 {
        self.generation
    }
}
