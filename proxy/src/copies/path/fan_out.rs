//! Sends a change to every copy, and answers it when each copy has it or is out.

use std::{rc::Rc, sync::Arc};

use proxima_wire::message::Outcome;

use super::{
    SETTLE_TIMEOUT,
    fleet::UNLEASED,
    member, members,
    operation::{ENDED, NO_POOL, Stage, is_missed, reply_to},
    read_back::ReadBackStep,
    undo,
    version::shown,
};
use crate::{
    engine::{Engine, OperationId},
    members::Member,
    protocol::Failed,
    route::{Answer, Copies, Tree, Walk},
};

impl Engine {
    /// Sends a change to all copies but `home`, which has done it.
    pub(super) fn fan_out(&mut self, copies: &Copies, id: OperationId, home: Option<usize>, walk: &Walk<'_>) {
        let tree = walk.tree;
        let takers = self.takers(tree, copies, home);
        let Some(operation) = self.copies.operations.get(id) else {
            return self.broken(ENDED);
        };
        if operation.landed as usize + takers < copies.min_acks {
            // This is checked before sending, so that no copy misses a write that is rejected anyway.
            return self.reject_change(tree, copies, id, false);
        }
        if !Rc::ptr_eq(tree, &self.tree) {
            self.miss_at_strangers(id);
        }
        if let Some(operation) = self.copies.operations.get_mut(id) {
            operation.pending = 0;
        }
        self.descend(|engine| {
            for (child, member) in members(tree, copies).filter(|&(child, _)| Some(child) != home) {
                if engine.copies.snapshot.state(member.id).is_written() {
                    engine.ask_copy(copies, id, child, walk);
                } else {
                    engine.metrics.member(member.id).skipped += 1;
                    engine.miss(member, id, "");
                }
            }
            engine.conclude(id);
        });
    }

    /// Sends a request of this operation to one more copy.
    pub(super) fn ask_copy(&mut self, copies: &Copies, id: OperationId, child: usize, walk: &Walk<'_>) {
        if let Some(operation) = self.copies.operations.get_mut(id) {
            operation.pending += 1;
        }
        self.walk(copies.children[child], &walk.to(reply_to(id, child)));
    }

    /// How many copies besides `home` a change is sent to.
    pub(super) fn takers(&self, tree: &Tree, copies: &Copies, home: Option<usize>) -> usize {
        members(tree, copies)
            .filter(|&(child, _)| Some(child) != home)
            .filter(|(_, member)| self.copies.snapshot.state(member.id).is_written())
            .count()
    }

    /// This copy misses, or may miss, the change of this operation.
    pub(super) fn miss(&mut self, member: &Arc<Member>, id: OperationId, why: &str) {
        let (operations, snapshot) = (&mut self.copies.operations, &mut self.copies.snapshot);
        let Some(operation) = operations.get_mut(id) else {
            return;
        };
        if !self.tree.names(member.id) {
            // It has left the pool meanwhile: no worker reads it, and if it comes back it counts as having
            // missed everything.
            return operation.missed.push((member.id, None));
        }
        // The copy will soon be out, however long it was waited for.
        operation.since = self.now;
        let outs = snapshot.miss(member.id, &operation.key());
        operation.missed.push((member.id, Some(outs)));
        self.mark_stale(member, why);
    }

    /// A copy has answered, or will not.
    pub(crate) fn copy_answered(&mut self, id: OperationId, child: u32, answer: &Answer<'_>) {
        let Some(operation) = self.copies.operations.get_mut(id) else {
            return;
        };
        operation.pending = operation.pending.saturating_sub(1);
        let (tree, child) = (Rc::clone(&operation.tree), child as usize);
        let Some(copies) = tree.copies(operation.node) else {
            return self.broken(NO_POOL);
        };
        if tree.times() {
            self.note_copy(id, child as u32, answer);
        }
        let Some(operation) = self.copies.operations.get_mut(id) else {
            return;
        };
        match operation.stage {
            Stage::Filling { .. } => return self.looked_to_fill(copies, id, child, answer),
            Stage::Fetching { .. } => return self.fetched(copies, id, child, answer),
            _ => {}
        }
        if let Some(what) = ReadBackStep::of(copies, child) {
            let read = match answer {
                Answer::Reply(_, bytes) => bytes,
                Answer::Failed(_) => &[][..],
            };
            return self.have_read_back(&tree, copies, id, what, answer.outcome(), read);
        }
        if matches!(operation.stage, Stage::Replicating { .. }) {
            return self.own_answered(copies, id, answer);
        }
        let (parent, command) = (operation.parent, operation.request.command);
        let (Stage::Looking { home } | Stage::Deciding { home, .. }) = operation.stage else {
            self.count(&tree, copies, id, child, answer);
            return self.conclude(id);
        };
        let looks = !operation.stage.is_decision();
        if looks && copies.fleet.is_some() && !self.may_answer() {
            self.copies.operations.end(id);
            return self.fail(parent, &Failed::here(Outcome::Ejected, UNLEASED));
        }
        let mark = self.mark(&tree, copies, home);
        let marked;
        let answer = match answer {
            Answer::Reply(reply, bytes) => {
                marked = shown(copies, mark, command, reply, bytes);
                &Answer::Reply(&marked.0, &marked.1)
            }
            Answer::Failed(_) => answer,
        };
        if looks {
            self.copies.operations.end(id);
            return self.pass_on_answer(parent, answer);
        }
        let missed = self.count(&tree, copies, id, child, answer);
        self.decided(copies, id, home, missed, answer);
    }

    /// Counts what a copy has answered. Returns whether it has missed the change.
    fn count(
        &mut self,
        tree: &Tree,
        copies: &Copies,
        id: OperationId,
        child: usize,
        answer: &Answer<'_>,
    ) -> bool {
        let Some(operation) = self.copies.operations.get_mut(id) else {
            return false;
        };
        let outcome = answer.outcome();
        let undoes = matches!(operation.stage, Stage::Undoing { .. });
        // A removal that is rejected leaves the value that it was to remove.
        let missed = is_missed(outcome) || undoes && outcome.is_error();
        if missed {
            if let Some(member) = member(tree, copies, child) {
                self.miss(member, id, &answer.what());
            }
        } else if !undoes {
            if outcome == Outcome::Overloaded {
                let member = member(tree, copies, child);
                operation.unsent.extend(member.map(|member| member.id));
            } else {
                operation.landed += 1;
            }
            // Besides the home's answer, only errors of the other copies matter.
            if !matches!(operation.stage, Stage::Following { .. }) || outcome.is_error() {
                operation.answers.keep(answer);
            }
        }
        missed
    }

    /// Answers a change when every copy has it or is out.
    pub(super) fn conclude(&mut self, id: OperationId) {
        let Some(operation) = self.copies.operations.get_mut(id) else {
            return;
        };
        if matches!(operation.stage, Stage::Replicating { .. }) {
            return self.conclude_in_fleet(id);
        }
        if operation.pending > 0 {
            return;
        }
        let (tree, parent) = (Rc::clone(&operation.tree), operation.parent);
        let late = self.now - operation.since > SETTLE_TIMEOUT;
        let Some(copies) = tree.copies(operation.node) else {
            return self.broken(NO_POOL);
        };
        if undo::is_due(operation) {
            return self.undo(&tree, copies, id);
        }
        let snapshot = &self.copies.snapshot;
        let awaited = operation
            .missed
            .iter()
            .any(|&(member, outs)| outs.is_some_and(|outs| !snapshot.is_settled(member, outs)));
        if awaited && !late {
            return self.copies.unsettled.push(id);
        }
        if awaited {
            self.copies.operations.end(id);
            let text = "a copy missed this write and it could not be settled who still reads it";
            return self.fail(parent, &Failed::here(Outcome::Timeout, text));
        }
        let is_sent = operation.unsent.is_empty();
        // Where it was not sent for a lack of our own resources, too few copies with it are no sign that this
        // proxy is cut off.
        if (operation.landed as usize) < copies.min_acks && is_sent {
            return self.reject_change(&tree, copies, id, true);
        }
        let everywhere = matches!(operation.stage, Stage::Everywhere { .. });
        let answers = operation.take_answers();
        let rejected = answers.outcomes().any(Outcome::is_error);
        let chosen = match everywhere {
            // A copy that was repaired may lack what the others had: deleted at one is deleted. mcrouter says
            // the worst.
            true if copies.home.is_some() && !rejected => answers.best(),
            true if is_sent => answers.worst(),
            // The home's answer, unless another copy has rejected the change.
            _ => answers.pick(|(a, _), (b, _)| a.is_error() && !b.is_error()),
        };
        if let Some(chosen) = chosen {
            self.pass_on_answer(parent, &chosen);
        }
        if let Some(operation) = self.copies.operations.get_mut(id) {
            operation.answers = answers;
            self.copies.operations.end(id);
        }
    }

    /// Looks again at changes that wait for a copy to be out.
    pub fn settle(&mut self) {
        for id in std::mem::take(&mut self.copies.unsettled) {
            self.conclude(id);
        }
        self.settle_tasks();
    }
}
