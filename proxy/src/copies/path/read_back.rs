//! A value that a home has computed is read back right behind the command, on the same lane, so that no other
//! request comes between. The other copies then store this value; otherwise they would have to drop the key:
//! a client that counts and then reads finds its count at every copy.

use std::rc::Rc;

use proxima_wire::message::{Outcome, Parsed};

use super::{
    member,
    operation::{ENDED, Stage, is_missed, reply_to},
};
use crate::{
    engine::{Engine, OperationId},
    route::{Copies, NodeId, Tree, Walk},
};

/// The requests that are sent to a home besides the command itself. Their replies are numbered in this order,
/// behind those of the children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadBackStep {
    /// The value that the command has left is read.
    Read,
    /// The change that the read caused is undone.
    Undo,
}

impl ReadBackStep {
    /// `None`: this number is a child's.
    pub(super) fn of(copies: &Copies, child: usize) -> Option<Self> {
        match child.checked_sub(copies.children.len())? {
            0 => Some(Self::Read),
            _ => Some(Self::Undo),
        }
    }

    fn number(self, copies: &Copies) -> usize {
        copies.children.len() + self as usize
    }
}

impl Engine {
    /// Reads, at the home `next` of its key, what the command that was just sent there will leave.
    pub(super) fn read_back(&mut self, copies: &Copies, id: OperationId, next: NodeId, walk: &Walk<'_>) {
        let mut asked = Vec::new();
        if !copies.copied.read_back(walk.request, walk.message, &mut asked) {
            return;
        }
        let Parsed::Head(reading) = walk.origin.protocol.head(&asked) else {
            return;
        };
        let Some(operation) = self.copies.operations.get_mut(id) else {
            return self.broken(ENDED);
        };
        operation.pending += 1;
        let walk = Walk {
            request: &reading,
            message: &asked,
            to: reply_to(id, ReadBackStep::Read.number(copies)),
            ..*walk
        };
        self.walk(next, &walk);
    }

    /// The home has answered what was sent behind the command, or there is an error in place of its answer:
    /// then the others drop what they have.
    pub(super) fn have_read_back(
        &mut self,
        tree: &Rc<Tree>,
        copies: &Copies,
        id: OperationId,
        what: ReadBackStep,
        outcome: Outcome,
        bytes: &[u8],
    ) {
        let Some(operation) = self.copies.operations.get_mut(id) else {
            return;
        };
        let Stage::Deciding { home, message } = &operation.stage else {
            return;
        };
        // An error that comes before the reply to the command itself, which will find nothing to wait for.
        if operation.pending > 0 {
            return;
        }
        let (home, request, origin) = (*home, operation.request, operation.origin);
        let mut asked = Vec::new();
        // The client that reads a stale value first is to refill it, not this proxy, which only looks. Other
        // changes of the key wait for this.
        if what == ReadBackStep::Read
            && copies
                .copied
                .undo_read_back(&request, &message.0, bytes, &mut asked)
            && let Parsed::Head(undoing) = origin.protocol.head(&asked)
            && let Some(&next) = copies.children.get(home)
        {
            operation.pending += 1;
            let walk = Walk {
                tree,
                origin,
                request: &undoing,
                message: &asked,
                to: reply_to(id, ReadBackStep::Undo.number(copies)),
            };
            return self.walk(next, &walk);
        }
        if what == ReadBackStep::Undo && is_missed(outcome) {
            operation.landed = operation.landed.saturating_sub(1);
            if let Some(member) = member(tree, copies, home) {
                self.miss(member, id, "it is not known what it holds");
            }
        }
        self.tell(copies, id, home, Some(bytes));
    }
}
