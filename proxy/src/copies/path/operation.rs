//! The state of a request to a pool of copies while it waits.

use std::{borrow::Cow, mem, rc::Rc};

use proxima_wire::message::{Outcome, Request};

use super::KeyLock;
use crate::{
    engine::{OperationId, ReplyTo, ids},
    fleet::keeper::{ChangeId, KeyHistory},
    members::MemberId,
    micros::Micros,
    near::OpenChange,
    route::{Answers, NodeId, Origin, Tree, Walk},
    table::{Entry, Table},
};

/// An operation is at the node of its pool.
pub(super) const NO_POOL: &str = "a change waits at a node that is no pool of copies";
/// An operation lasts until it has its answer.
pub(super) const ENDED: &str = "a change ended while it was being served";

/// A change of all copies, or a look at a key's home.
pub struct Operation {
    generation: u32,
    /// The receiver of its own reply.
    pub(super) parent: ReplyTo,
    /// The tree it began in: a reload does not change the copies under a request.
    pub(super) tree: Rc<Tree>,
    /// The pool in that tree.
    pub(super) node: NodeId,
    pub(super) origin: Origin,
    pub(super) request: Request,
    /// Replies still to come.
    pub(super) pending: u32,
    /// The answers that it may still need.
    pub(super) answers: Answers,
    pub(super) stage: Stage,
    /// The lock of its key; `None`: a look. Unlocked with the end of the operation.
    pub(super) lock: Option<KeyLock>,
    /// The change, as the near cache counts it: it ends with the operation. `None`: it is not counted.
    pub(super) change: Option<OpenChange>,
    /// Copies that miss the change, and how often they had been out by then; `None`: they are no longer
    /// members.
    pub(super) missed: Vec<(MemberId, Option<u32>)>,
    /// Copies to which the change could not be sent for a lack of our own resources.
    pub(super) unsent: Vec<MemberId>,
    /// How many copies have answered.
    pub(super) landed: u32,
    /// Since when it waits for what it waits for.
    pub(super) since: Micros,
}

/// The stage of an operation, with the parts of its request that it may still need.
#[derive(Debug)]
pub(super) enum Stage {
    /// A look at this child, the key's home: for the version that a later change will name.
    Looking { home: usize },
    /// A read, while the own copy has come back to its fleet: at the own copy, then at a neighbour's.
    Filling { message: Message },
    /// A value that a neighbour is asked for, to be stored at the own copy if that has had no other change
    /// since.
    Fetching { key: Vec<u8>, history: KeyHistory },
    /// A change that waits until its key is locked, and its home is not changing hands.
    Waiting { message: Message },
    /// A change that this child decides.
    Deciding { home: usize, message: Message },
    /// A change that this child has decided, and that is passed on to the others.
    Following { home: usize, key: Vec<u8> },
    /// A change that was sent to all copies at once.
    Everywhere { key: Vec<u8> },
    /// A change of a fleet, which is sent to all peers and to the own copy.
    Replicating {
        message: Message,
        /// The change as the keeper knows it; `None`: it has no stamp yet.
        change: Option<ChangeId>,
        /// The own copy has decided it.
        decided: bool,
        /// The own copy has not answered.
        own: bool,
        /// It waits for its key, to be sent again with a later stamp.
        again: bool,
        /// A keeper had a later change of the key.
        superseded: bool,
    },
    /// A change that is rejected, and is being removed where it landed.
    Undoing { key: Vec<u8> },
}

impl Stage {
    /// Is a copy deciding right now, or has it decided and the others are being told? A change that waits,
    /// maybe for the second time because its home was lost, is not: it waits for the next home.
    pub(super) const fn is_decision(&self) -> bool {
        matches!(
            self,
            Self::Deciding { .. } | Self::Following { .. } | Self::Replicating { decided: true, .. }
        )
    }

    /// A change of a fleet that has not been sent to any peer.
    pub(super) const fn replicating(message: Message, decided: bool) -> Self {
        Self::Replicating {
            message,
            change: None,
            decided,
            own: false,
            again: false,
            superseded: false,
        }
    }

    /// The bytes that it owns.
    fn into_buffer(self) -> Vec<u8> {
        match self {
            Self::Looking { .. } => Vec::new(),
            Self::Waiting { message }
            | Self::Filling { message }
            | Self::Deciding { message, .. }
            | Self::Replicating { message, .. } => message.0,
            Self::Following { key, .. }
            | Self::Fetching { key, .. }
            | Self::Everywhere { key }
            | Self::Undoing { key } => key,
        }
    }

    fn capacity(&self) -> usize {
        match self {
            Self::Looking { .. } => 0,
            Self::Waiting { message }
            | Self::Filling { message }
            | Self::Deciding { message, .. }
            | Self::Replicating { message, .. } => message.0.capacity(),
            Self::Following { key, .. }
            | Self::Fetching { key, .. }
            | Self::Everywhere { key }
            | Self::Undoing { key } => key.capacity(),
        }
    }
}

/// The bytes of a request; the head alone of a request that is streamed.
#[derive(Debug, Default)]
pub(super) struct Message(pub(super) Vec<u8>);

impl Message {
    /// Does the body of this request follow as it comes?
    pub(super) fn is_streamed(&self, request: &Request) -> bool {
        (self.0.len() as u64) < request.len()
    }
}

impl Operation {
    /// The pool whose copies it is about, in `tree`, which is its own.
    /// The key of a change; that of a flush is empty.
    pub(super) fn key(&self) -> Cow<'_, [u8]> {
        match &self.stage {
            Stage::Following { key, .. }
            | Stage::Fetching { key, .. }
            | Stage::Everywhere { key }
            | Stage::Undoing { key } => Cow::Borrowed(key),
            Stage::Waiting { message }
            | Stage::Filling { message }
            | Stage::Deciding { message, .. }
            | Stage::Replicating { message, .. } => {
                let mut scratch = [0; 250];
                let protocol = self.origin.protocol;
                Cow::Owned(protocol.key(&self.request, &message.0, &mut scratch).to_vec())
            }
            Stage::Looking { .. } => Cow::Borrowed(&[]),
        }
    }

    /// A change that waits is sent to its home, which decides it.
    pub(super) fn decides_at(&mut self, home: usize) {
        if let Stage::Waiting { message } = &mut self.stage {
            let message = mem::take(message);
            self.stage = Stage::Deciding { home, message };
        }
    }

    /// A change whose home was lost waits for the next. Returns whether it can: a streamed value is not kept.
    pub(super) fn waits_again(&mut self) -> bool {
        match &mut self.stage {
            Stage::Deciding { message, .. } if !message.is_streamed(&self.request) => {
                let message = mem::take(message);
                self.stage = Stage::Waiting { message };
                true
            }
            _ => false,
        }
    }

    /// A change is decided and passed on to the others: only its key is needed from here on. The key takes
    /// the buffer `spare`, which gets that of the message.
    pub(super) fn begin_following(&mut self, spare: &mut Vec<u8>) {
        let Stage::Deciding { home, message } = &mut self.stage else {
            return;
        };
        let (home, message) = (*home, mem::take(message));
        let mut key = mem::replace(spare, message.0);
        let mut scratch = [0; 250];
        key.clear();
        key.extend_from_slice(self.origin.protocol.key(&self.request, spare, &mut scratch));
        spare.clear();
        self.stage = Stage::Following { home, key };
    }

    /// The answers, and none in their place.
    pub(super) fn take_answers(&mut self) -> Answers {
        mem::take(&mut self.answers)
    }
}

impl Entry for Operation {
    type Kind = ids::OperationKind;

    fn generation(&self) -> u32 {
        self.generation
    }
}

/// All operations of one worker. Ended ones leave their buffers for the next.
#[derive(Default)]
pub(super) struct Operations {
    table: Table<Operation>,
    spare: Vec<(Vec<u8>, Answers)>,
}

/// Larger buffers are not worth keeping.
const SPARE_BYTES: usize = 4 * 1024;
const SPARE_COUNT: usize = 1024;

impl Operations {
    /// Begins an operation for the request of this walk, which has come to the pool `node`; `stage` is given
    /// an empty buffer for what it owns.
    pub(super) fn begin(
        &mut self,
        node: NodeId,
        walk: &Walk<'_>,
        lock: Option<KeyLock>,
        now: Micros,
        stage: impl FnOnce(Vec<u8>) -> Stage,
    ) -> OperationId {
        let (buffer, answers) = self.spare.pop().unwrap_or_default();
        self.table.insert(|generation| Operation {
            generation,
            parent: walk.to,
            tree: Rc::clone(walk.tree),
            node,
            origin: walk.origin,
            request: *walk.request,
            pending: 0,
            answers,
            stage: stage(buffer),
            lock,
            change: None,
            missed: Vec::new(),
            unsent: Vec::new(),
            landed: 0,
            since: now,
        })
    }

    /// The operation of this handle.
    pub(super) fn get(&self, id: OperationId) -> Option<&Operation> {
        self.table.get(id)
    }

    /// The operation of this handle.
    pub(super) fn get_mut(&mut self, id: OperationId) -> Option<&mut Operation> {
        self.table.get_mut(id)
    }

    /// Ends an operation; late replies to it find nothing.
    pub(super) fn end(&mut self, id: OperationId) {
        let Some(Operation {
            stage, mut answers, ..
        }) = self.table.remove(id)
        else {
            return;
        };
        let mut buffer = stage.into_buffer();
        if self.spare.len() < SPARE_COUNT && buffer.capacity() + answers.memory_bytes() <= SPARE_BYTES {
            buffer.clear();
            answers.clear();
            self.spare.push((buffer, answers));
        }
    }

    /// All operations.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Operation> {
        self.table.iter_mut().map(|(_, operation)| operation)
    }

    /// All operations.
    pub(super) fn iter(&self) -> impl Iterator<Item = (OperationId, &Operation)> {
        self.table.iter()
    }

    /// Is there none?
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Bytes of memory that they take.
    pub(super) fn memory_bytes(&self) -> usize {
        let all = self.table.iter();
        all.map(|(_, one)| size_of::<Operation>() + one.stage.capacity() + one.answers.memory_bytes())
            .sum()
    }
}

/// Does a copy that answers so hold the change?
pub(super) const fn is_done(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Ok | Outcome::Stored | Outcome::Found | Outcome::Touched | Outcome::Deleted
    )
}

/// Is this no answer of the server, so that it is unknown whether the change was executed? A change that was
/// not sent for a lack of our own resources (`Overloaded`) is not missed: it is rejected, and removed at the
/// copies that took it.
pub(super) const fn is_missed(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Timeout
            | Outcome::ConnectTimeout
            | Outcome::ConnectError
            | Outcome::Ejected
            | Outcome::Deadline
    )
}

/// The address of one reply of an operation.
pub(super) fn reply_to(operation: OperationId, child: usize) -> ReplyTo {
    ReplyTo::Operation {
        operation,
        child: child as u32,
    }
}
