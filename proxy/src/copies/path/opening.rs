//! A copy that comes back is the home of its keys again, but not before the decisions that others made in its
//! place have ended.

use super::{KeyLock, members};
use crate::{
    copies::{CopyState, Event, MissedKeys},
    engine::{Engine, OperationId, WorkerEvent},
    members::MemberId,
};

/// A proposal, and the changes that must end before it is acknowledged: what another copy decides now, a copy
/// that is opened could decide otherwise.
pub(super) struct Opening {
    member: MemberId,
    epoch: u64,
    missed: MissedKeys,
    awaits: Vec<OperationId>,
}

impl Opening {
    fn acknowledged(self, worker: usize) -> WorkerEvent {
        WorkerEvent::Copy(Event::Acknowledged {
            worker,
            member: self.member,
            epoch: self.epoch,
            missed: self.missed,
        })
    }
}

impl Engine {
    /// Follows a proposal, and looks again at the changes that waited for it.
    pub fn follow(&mut self, member: MemberId, epoch: u64, state: CopyState) {
        if state == CopyState::Leaving {
            self.cut_changes(member);
        }
        if state == CopyState::Current {
            self.begin_to_fill();
        }
        if let Some(missed) = self.copies.snapshot.follow(member, state) {
            self.acknowledge(member, epoch, state, missed);
        }
        self.settle();
    }

    /// These copies are about to be removed: sets their state, and looks again at the changes that waited for
    /// it.
    pub fn set_copies(&mut self, members: &[MemberId], state: CopyState) {
        for &member in members {
            self.copies.snapshot.set(member, state);
        }
        self.settle();
    }

    /// Tells the control thread that a proposal is followed; a proposal to open a copy, when no other decides
    /// in its place.
    fn acknowledge(&mut self, member: MemberId, epoch: u64, state: CopyState, missed: MissedKeys) {
        let worker = self.facts.worker;
        // Earlier proposals for this copy are no longer waited for. What it missed counts all the same.
        let openings = &mut self.copies.openings;
        for earlier in openings.extract_if(.., |opening| opening.member == member) {
            self.actions.events.push(earlier.acknowledged(worker));
        }
        let awaits = match state {
            CopyState::Opening => self.decisions_in_place_of(member),
            _ => Vec::new(),
        };
        self.copies.openings.push(Opening {
            member,
            epoch,
            missed,
            awaits,
        });
        self.check_openings();
    }

    fn decisions_in_place_of(&self, id: MemberId) -> Vec<OperationId> {
        let operations = self.copies.operations.iter();
        operations
            .filter(|(_, operation)| operation.stage.is_decision())
            // A streamed value is decided with its last byte, before which its home is looked at again.
            .filter(|(_, operation)| operation.lock.as_ref().is_some_and(KeyLock::is_held))
            .filter(|(_, operation)| {
                let pool = operation.tree.copies(operation.node);
                pool.is_some_and(|copies| members(&operation.tree, copies).any(|(_, member)| member.id == id))
            })
            .map(|(id, _)| id)
            .collect()
    }

    /// Acknowledges proposals whose decisions have ended.
    pub fn check_openings(&mut self) {
        let (operations, worker) = (&self.copies.operations, self.facts.worker);
        let ready = self.copies.openings.extract_if(.., |opening| {
            opening.awaits.retain(|&id| {
                let operation = operations.get(id);
                operation.is_some_and(|operation| operation.stage.is_decision())
            });
            opening.awaits.is_empty()
        });
        self.actions
            .events
            .extend(ready.map(|opening| opening.acknowledged(worker)));
    }
}
