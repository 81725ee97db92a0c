//! Commands that compute a value: one copy, the key's home, decides, and the result is sent to the others.

use std::{mem, rc::Rc};

use proxima_wire::message::{Outcome, Parsed, Reply};

use super::{
    SETTLE_TIMEOUT, member,
    operation::{ENDED, Message, NO_POOL, Stage, is_done, reply_to},
    read_back::ReadBackStep,
    version::shown,
};
use crate::{
    copies::CopyState,
    engine::{Engine, OperationId, ReplyTo},
    protocol::Failed,
    route::{Answer, Copies, Tree, Walk},
};

const NO_HOME: &str = "no copy may decide this key's value";

impl Engine {
    /// Asks the copy that decides this key's value; waits while that is changing.
    pub(super) fn find_home(&mut self, id: OperationId) {
        let Some(operation) = self.copies.operations.get(id) else {
            return self.broken(ENDED);
        };
        let (tree, request, origin) = (Rc::clone(&operation.tree), operation.request, operation.origin);
        let (since, parent) = (operation.since, operation.parent);
        let Some(copies) = tree.copies(operation.node) else {
            return self.broken(NO_POOL);
        };
        if self.takers(&tree, copies, None) < copies.min_acks {
            return self.reject_change(&tree, copies, id, false);
        }
        let mut message = mem::take(&mut self.copies.message);
        if let Some(operation) = self.copies.operations.get(id)
            && let Stage::Waiting { message: waiting } = &operation.stage
        {
            message.extend_from_slice(&waiting.0);
        }
        let walk = Walk {
            tree: &tree,
            origin,
            request: &request,
            message: &message,
            to: ReplyTo::Nobody,
        };
        let key = self.copies.take_key(&walk);
        let home = self.home(&tree, copies, &key);
        self.copies.give_back_key(key);
        let streamed = walk.is_streamed();
        match home {
            Some((child, CopyState::Current)) => {
                self.decide(copies, id, child, &walk);
            }
            Some(_) if !streamed && self.now - since < SETTLE_TIMEOUT => {
                self.try_again(id);
            }
            _ => {
                self.copies.operations.end(id);
                self.fail(parent, &Failed::here(Outcome::Ejected, NO_HOME));
            }
        }
        self.copies.give_back_message(message);
    }

    /// Sends a change to its home, which decides it.
    pub(super) fn decide(&mut self, copies: &Copies, id: OperationId, home: usize, walk: &Walk<'_>) {
        if let Some(operation) = self.copies.operations.get_mut(id) {
            operation.decides_at(home);
            operation.pending = 1;
            // A home that was lost has been out since. It may be back, and this very one.
            operation.missed.clear();
        }
        let walk = walk.to(reply_to(id, home));
        let next = copies.children[home];
        let mark = self.mark(walk.tree, copies, home);
        let mut head = Vec::new();
        let is_marked = copies
            .copied
            .mark_request(walk.request, walk.message, mark, &mut head);
        self.descend(|engine| {
            match is_marked {
                true => engine.walk_with_head(next, head, &walk),
                false => engine.walk(next, &walk),
            }
            // A command that could not be sent has its answer already.
            if !walk.is_streamed() && !engine.is_answered(walk.to) {
                engine.read_back(copies, id, next, &walk);
            }
        });
    }

    /// The copy that decides this key's value, and its state: a copy that is not current does not decide yet,
    /// or no longer.
    fn home(&self, tree: &Tree, copies: &Copies, key: &[u8]) -> Option<(usize, CopyState)> {
        let snapshot = &self.copies.snapshot;
        let state = |child: usize| {
            member(tree, copies, child).map_or(CopyState::Out, |member| snapshot.state(member.id))
        };
        let home = copies.home.as_ref()?;
        let child = home.pick_live(key, |child| state(child).is_required())?;
        Some((child, state(child)))
    }

    /// A streamed value was sent to the copy that was its key's home when it began. If another is by now,
    /// which did not wait for it, nothing is decided: neither has had the last byte.
    pub(super) fn leave_home(&mut self, id: OperationId) {
        let Some(operation) = self.copies.operations.get(id) else {
            return;
        };
        let Stage::Deciding { home: began, .. } = operation.stage else {
            return;
        };
        let Some(copies) = operation.tree.copies(operation.node) else {
            return self.broken(NO_POOL);
        };
        let home = self.home(&operation.tree, copies, &operation.key());
        if home.map(|(child, _)| child) == Some(began) {
            return;
        }
        let parent = operation.parent;
        self.copies.operations.end(id);
        for lane in self.servers.awaiting(reply_to(id, began)) {
            self.drop_lane(lane, NO_HOME);
        }
        self.fail(parent, &Failed::here(Outcome::Ejected, NO_HOME));
    }

    /// A copy's reply is too large to be held. If it is the home's (the value that a `gat` reads), it is
    /// passed on at once, and the others get it meanwhile. `head` is its first line. Returns the receiver of
    /// the answer; `None`: it is not passed on.
    pub(crate) fn pass_decided(
        &mut self,
        id: OperationId,
        child: u32,
        head: &mut Vec<u8>,
    ) -> Option<ReplyTo> {
        let operation = self.copies.operations.get_mut(id)?;
        operation.pending = operation.pending.saturating_sub(1);
        let tree = Rc::clone(&operation.tree);
        let copies = tree.copies(operation.node)?;
        if matches!(operation.stage, Stage::Filling { .. }) {
            let parent = operation.parent;
            self.copies.operations.end(id);
            return Some(parent);
        }
        if let Some(what) = ReadBackStep::of(copies, child as usize) {
            // Too large a number to be told: the others drop theirs.
            self.have_read_back(&tree, copies, id, what, Outcome::Found, b"");
            return None;
        }
        let (Stage::Deciding { home, .. } | Stage::Looking { home }) = operation.stage else {
            // Its meaning is unknown: it counts as no answer.
            self.conclude(id);
            return None;
        };
        let decides = operation.stage.is_decision();
        let parent = mem::replace(&mut operation.parent, ReplyTo::Nobody);
        let line = mem::take(head);
        let reply = Reply::new(Outcome::Found, line.len());
        let command = operation.request.command;
        let mark = self.mark(&tree, copies, home);
        let operation = self.copies.operations.get_mut(id)?;
        head.extend_from_slice(&shown(copies, mark, command, &reply, &line).1);
        if decides {
            operation.landed += 1;
            self.tell(copies, id, home, None);
        } else {
            self.copies.operations.end(id);
        }
        Some(parent)
    }

    /// The home has answered: its result is sent to the others. `missed`: it did not answer.
    pub(super) fn decided(
        &mut self,
        copies: &Copies,
        id: OperationId,
        home: usize,
        missed: bool,
        answer: &Answer<'_>,
    ) {
        let Some(operation) = self.copies.operations.get_mut(id) else {
            return self.broken(ENDED);
        };
        let parent = operation.parent;
        if missed && operation.waits_again() {
            // Whatever it did is repaired there: as soon as it is out, the next home decides.
            return self.try_again(id);
        }
        if missed || !is_done(answer.outcome()) {
            self.copies.operations.end(id);
            return self.pass_on_answer(parent, answer);
        }
        if operation.pending > 0 {
            // What it has computed comes next.
            return;
        }
        self.tell(copies, id, home, None);
    }

    /// Tells the others what the home has decided; `read` is the reply that says what it has computed.
    pub(super) fn tell(&mut self, copies: &Copies, id: OperationId, home: usize, read: Option<&[u8]>) {
        let unix = self.unix().as_secs();
        let Some(operation) = self.copies.operations.get_mut(id) else {
            return self.broken(ENDED);
        };
        let Stage::Deciding { message, .. } = &operation.stage else {
            return self.broken("a change is in a stage that it cannot be in");
        };
        let (tree, request, origin) = (Rc::clone(&operation.tree), operation.request, operation.origin);
        let mut told = Vec::with_capacity(message.0.len() + 16);
        if let Some(read) = read {
            copies
                .copied
                .store_read_back(&request, &message.0, read, unix, &mut told);
        } else if message.is_streamed(&request) {
            // The value went through and was not kept.
            copies.copied.removal(&operation.key(), &mut told);
        } else {
            copies.copied.follow_up(&request, &message.0, &mut told);
        }
        let in_fleet = copies.fleet.is_some();
        if !in_fleet {
            operation.begin_following(&mut self.copies.message);
        }
        let Parsed::Head(request) = origin.protocol.head(&told) else {
            let parent = operation.parent;
            self.copies.operations.end(id);
            let text = "the other copies cannot be told what has become of this value";
            return self.fail(parent, &Failed::here(Outcome::LocalError, text));
        };
        if in_fleet {
            if let Some(operation) = self.copies.operations.get_mut(id) {
                operation.request = request;
                operation.stage = Stage::replicating(Message(told), true);
            }
            return self.replicate(id);
        }
        let walk = Walk {
            tree: &tree,
            origin,
            request: &request,
            message: &told,
            to: ReplyTo::Nobody,
        };
        self.fan_out(copies, id, Some(home), &walk);
    }
}
