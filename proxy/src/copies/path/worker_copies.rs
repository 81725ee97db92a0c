//! The copies, as one worker knows and changes them.

use std::{mem, rc::Rc, sync::Arc};

use proxima_wire::message::Class;

use super::{WorkerFleet, opening::Opening, operation::Operations};
use crate::{
    copies::{Holder, KeyLocks, Snapshot},
    engine::{OperationId, ReplyTo},
    members::MemberId,
    near::Changes,
    route::Walk,
};

/// One worker's state for copies.
pub struct WorkerCopies {
    pub(super) snapshot: Snapshot,
    pub(super) operations: Operations,
    /// This worker, as the other holders of key locks see it.
    pub(super) holder: Rc<Holder>,
    /// Changes that wait for a copy to be out.
    pub(super) unsettled: Vec<OperationId>,
    /// Proposals that are acknowledged when the decisions before them have ended.
    pub(super) openings: Vec<Opening>,
    /// Changes that the streamed request being dispatched has begun: their keys are not locked yet.
    pub(super) streamed: Vec<OperationId>,
    /// This worker's part in the fleet; `None` outside of a fleet.
    pub(crate) fleet: Option<Box<WorkerFleet>>,
    /// Scratch for the key of a request.
    key: Vec<u8>,
    /// Scratch for a request that is sent again or later.
    pub(super) message: Vec<u8>,
}

impl WorkerCopies {
    /// The copies of worker number `worker`, all of them current; the workers of a process share `locks`.
    pub fn new(locks: Arc<KeyLocks>, worker: usize) -> Self {
        Self {
            snapshot: Snapshot::default(),
            operations: Operations::default(),
            holder: Holder::new(locks, worker),
            unsettled: Vec::new(),
            openings: Vec::new(),
            streamed: Vec::new(),
            fleet: None,
            key: Vec::new(),
            message: Vec::new(),
        }
    }

    /// The states of copies, as this worker knows them.
    #[inline]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The member is gone; its number may be given to another.
    pub fn forget(&mut self, member: MemberId) {
        self.snapshot.forget(member);
    }

    /// Does a change wait for a copy to be out?
    #[inline]
    pub fn is_unsettled(&self) -> bool {
        !self.unsettled.is_empty()
    }

    /// Does anything wait for a peer?
    #[inline]
    pub(crate) fn waits_for_peers(&self) -> bool {
        self.fleet.as_ref().is_some_and(|fleet| fleet.waits())
    }

    /// Counts the changes that are under way as changes of everything, each until its operation ends.
    pub(crate) fn count_changes(&mut self, changes: &Changes) {
        for operation in self.operations.iter_mut() {
            if operation.change.is_none() && operation.request.class != Class::Read {
                operation.change = Some(changes.of_everything());
            }
        }
    }

    /// Is no operation under way?
    pub fn is_idle(&self) -> bool {
        self.operations.is_empty()
    }

    /// Bytes of memory that operations take.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.operations.memory_bytes() + self.fleet.as_ref().map_or(0, |fleet| fleet.memory_bytes())
    }

    /// The receiver of an operation's reply, and the class of the request.
    pub(crate) fn parent_of(&self, id: OperationId) -> Option<(ReplyTo, Class)> {
        let operation = self.operations.get(id)?;
        Some((operation.parent, operation.request.class))
    }

    /// A streamed request is about to be dispatched.
    pub(crate) fn begin_streamed(&mut self) {
        self.streamed.clear();
    }

    /// The changes that the streamed request has begun, in an order that is the same for all, so that no two
    /// uploads wait for each other.
    pub(crate) fn take_streamed(&mut self) -> Vec<OperationId> {
        let mut streamed = mem::take(&mut self.streamed);
        streamed.sort_by_cached_key(|&id| Some(self.operations.get(id)?.lock.as_ref()?.index()));
        streamed
    }

    /// The key of a request, in the scratch for it; to be [given back](Self::give_back_key).
    pub(super) fn take_key(&mut self, walk: &Walk<'_>) -> Vec<u8> {
        let mut key = mem::take(&mut self.key);
        let mut scratch = [0; 250];
        key.clear();
        key.extend_from_slice(walk.key(&mut scratch));
        key
    }

    /// Gives the scratch for a key back.
    pub(super) fn give_back_key(&mut self, key: Vec<u8>) {
        self.key = key;
    }

    /// Gives the scratch for a request back.
    pub(super) fn give_back_message(&mut self, mut message: Vec<u8>) {
        message.clear();
        self.message = message;
    }
}
