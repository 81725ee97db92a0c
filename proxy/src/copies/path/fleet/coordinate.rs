//! Changes of this worker's clients. A change is stamped, sent to all peers and to the own copy, and answered
//! when all have it.

use std::rc::Rc;

use proxima_wire::{
    fleet::{Ack, AskKind, Change, MESSAGE_LIMIT, Verdict as WireVerdict},
    message::Outcome,
};

use super::{LockMode, NO_FLEET, NO_HOME, OperationId, UNLEASED, member};
use crate::{
    copies::path::{
        SETTLE_TIMEOUT,
        operation::{Message, NO_POOL, Stage, is_missed, reply_to},
    },
    engine::{Endpoint, Engine, ReplyTo},
    fleet::{
        Slot, Stamp, Stay,
        keeper::{AckOutcome, Verdict},
    },
    protocol::{Effect, Failed, StateSlot},
    route::{Answer, Copies, NodeId, Walk},
    table::Id,
};

const TOO_LARGE: &str = "a value in a fleet has at most 16 MiB";
const FULL: &str = "too many changes wait for peers";

impl Engine {
    /// A request that changes all copies, or that the key's home answers.
    pub(super) fn ask_in_fleet(&mut self, node: NodeId, copies: &Copies, walk: &Walk<'_>) {
        let Some(fleet_pool) = &copies.fleet else { return };
        if walk.request.len() > MESSAGE_LIMIT as u64 || walk.is_streamed() {
            return self.fail(walk.to, &Failed::here(Outcome::ClientError, TOO_LARGE));
        }
        let effect = copies.copied.effect(walk.request, walk.message);
        let key = self.copies.take_key(walk);
        let fleet = self.copies.fleet.as_ref();
        let is_home = fleet.is_some_and(|fleet| fleet.is_home(fleet_pool, &key));
        if effect != Effect::Everywhere && !is_home {
            self.copies.give_back_key(key);
            return self.ask_peer(node, AskKind::Home, walk);
        }
        if effect == Effect::LookAtHome {
            let hash = fleet_pool.key_hash(&key);
            let may = fleet.is_some_and(|fleet| fleet.keeper.may_decide(hash));
            self.copies.give_back_key(key);
            return match copies.children.first() {
                Some(&own) if may && self.may_read_own(walk.tree, copies) => {
                    self.look_at_home(node, (0, own), walk);
                }
                // Another home's decision may be under way, or the own copy is being repaired.
                _ => self.ask_peer(node, AskKind::Home, walk),
            };
        }
        let mode = match effect {
            Effect::Decide => LockMode::ByHome,
            _ => LockMode::AtOnce,
        };
        let mut lock = self.copies.holder.lock(&key, mode);
        let goes = lock.try_lock() && effect == Effect::Everywhere;
        self.copies.give_back_key(key);
        let operations = &mut self.copies.operations;
        let id = operations.begin(node, walk, Some(lock), self.now, |mut buffer| {
            buffer.extend_from_slice(walk.message);
            let message = Message(buffer);
            match goes {
                true => Stage::replicating(message, false),
                false => Stage::Waiting { message },
            }
        });
        if goes {
            return self.replicate(id);
        }
        self.hold_requests_behind(walk.to);
        self.go_on(id);
    }

    /// The key of this change is locked: it goes out, or is decided here first.
    pub(in crate::copies::path) fn go_on_in_fleet(&mut self, id: OperationId) {
        let Some(operation) = self.copies.operations.get_mut(id) else {
            return;
        };
        let (tree, node, origin) = (Rc::clone(&operation.tree), operation.node, operation.origin);
        let (request, parent, since) = (operation.request, operation.parent, operation.since);
        let Stage::Waiting { message } = &mut operation.stage else {
            return self.replicate(id);
        };
        let Some(copies) = tree.copies(node) else { return };
        let Some(fleet_pool) = &copies.fleet else { return };
        let Some(fleet) = self.copies.fleet.as_mut() else {
            return self.broken(NO_FLEET);
        };
        if fleet.me().is_none() {
            // This peer has left the view: the peers in it clean up, and tell this one what it missed.
            self.copies.operations.end(id);
            return self.fail(parent, &Failed::here(Outcome::Ejected, UNLEASED));
        }
        if !fleet.is_leased() && parent != ReplyTo::Nobody {
            self.copies.operations.end(id);
            return self.fail(parent, &Failed::here(Outcome::Ejected, UNLEASED));
        }
        if copies.copied.effect(&request, &message.0) != Effect::Decide {
            operation.stage = Stage::replicating(std::mem::take(message), false);
            return self.replicate(id);
        }
        let mut copy = std::mem::take(&mut self.copies.message);
        copy.extend_from_slice(&message.0);
        let mut scratch = [0; 250];
        let key = origin.protocol.key(&request, &copy, &mut scratch);
        let (is_home, hash) = (fleet.is_home(fleet_pool, key), fleet_pool.key_hash(key));
        let may_decide = is_home && fleet.keeper.may_decide(hash) && self.may_read_own(&tree, copies);
        let walk = Walk {
            tree: &tree,
            origin,
            request: &request,
            message: &copy,
            to: parent,
        };
        if !is_home {
            self.copies.operations.end(id);
            self.ask_peer(node, AskKind::Home, &walk);
        } else if may_decide {
            if let Some(fleet) = self.copies.fleet.as_mut() {
                fleet.keeper.begin_decision(id.to_bits());
            }
            self.decide(copies, id, 0, &walk);
        } else if self.now - since < SETTLE_TIMEOUT {
            self.try_again(id);
        } else {
            self.copies.operations.end(id);
            self.fail(parent, &Failed::here(Outcome::Ejected, NO_HOME));
        }
        self.copies.give_back_message(copy);
    }

    /// Draws the stamp of a change whose key is locked, and sends it to all peers and to the own copy.
    pub(in crate::copies::path) fn replicate(&mut self, id: OperationId) {
        let time = (self.unix_micros(), self.now);
        let (operations, fleet) = (&mut self.copies.operations, self.copies.fleet.as_mut());
        let (Some(operation), Some(fleet)) = (operations.get_mut(id), fleet) else {
            return;
        };
        let (tree, parent) = (Rc::clone(&operation.tree), operation.parent);
        let Some(copies) = tree.copies(operation.node) else {
            return self.broken(NO_POOL);
        };
        let Some(fleet_pool) = &copies.fleet else { return };
        let key = operation.key().into_owned();
        let hash = fleet_pool.key_hash(&key);
        let Stage::Replicating {
            change,
            decided,
            again,
            ..
        } = &mut operation.stage
        else {
            return;
        };
        (*again, operation.since) = (false, self.now);
        let decided = *decided;
        match *change {
            Some(change) => fleet.keeper.again(change, hash, time),
            None => match fleet
                .keeper
                .begin(id.to_bits(), (fleet_pool.hash, &key, hash), decided, time)
            {
                Ok(begun) => {
                    *change = Some(begun);
                    fleet.under_way.push(id);
                }
                Err(_) => {
                    operations.end(id);
                    return self.fail(parent, &Failed::here(Outcome::Overloaded, FULL));
                }
            },
        }
        if key.is_empty() {
            fleet.keeper.shared().raise_floor(fleet.keeper.clock());
        }
        self.send_changes();
        self.change_own(id);
    }

    /// Sends a change that has its stamp to the own copy, unless the own copy has decided it.
    fn change_own(&mut self, id: OperationId) {
        let Some(operation) = self.copies.operations.get_mut(id) else {
            return;
        };
        let (tree, request, origin) = (Rc::clone(&operation.tree), operation.request, operation.origin);
        let Some(copies) = tree.copies(operation.node) else {
            return self.broken(NO_POOL);
        };
        let Stage::Replicating {
            message,
            decided,
            own,
            ..
        } = &mut operation.stage
        else {
            return;
        };
        if !*decided && let Some(member) = member(&tree, copies, 0) {
            if self.copies.snapshot.state(member.id).is_written() {
                *own = true;
                // The change keeps its bytes: it may have to be sent again, and its key is read from them.
                let mut copy = std::mem::take(&mut self.copies.message);
                copy.extend_from_slice(&message.0);
                let walk = Walk {
                    tree: &tree,
                    origin,
                    request: &request,
                    message: &copy,
                    to: reply_to(id, 0),
                };
                self.walk(copies.children[0], &walk);
                return self.copies.give_back_message(copy);
            }
            self.metrics.member(member.id).skipped += 1;
            self.miss(member, id, "");
        }
        self.own_has_answered(id);
    }

    /// The own copy has the change, or misses it: other changes of the key may come.
    fn own_has_answered(&mut self, id: OperationId) {
        let Some(operation) = self.copies.operations.get_mut(id) else {
            return;
        };
        operation.lock = None;
        let Stage::Replicating { own, again, .. } = &mut operation.stage else {
            return;
        };
        *own = false;
        match *again {
            true => self.draw_again(id),
            false => self.conclude_in_fleet(id),
        }
    }

    /// The own copy has answered a change that is being replicated.
    pub(in crate::copies::path) fn own_answered(
        &mut self,
        copies: &Copies,
        id: OperationId,
        answer: &Answer<'_>,
    ) {
        let Some(operation) = self.copies.operations.get_mut(id) else {
            return;
        };
        let tree = Rc::clone(&operation.tree);
        let outcome = answer.outcome();
        if is_missed(outcome) || outcome == Outcome::Overloaded {
            if let Some(member) = member(&tree, copies, 0) {
                self.miss(member, id, &answer.what());
            }
        } else {
            operation.landed += 1;
            operation.answers.keep(answer);
        }
        self.own_has_answered(id);
    }

    /// Locks the key of a change once more, to send it with a later stamp.
    fn draw_again(&mut self, id: OperationId) {
        let Some(operation) = self.copies.operations.get_mut(id) else {
            return;
        };
        self.metrics.fleet.again += 1;
        operation.lock = Some(self.copies.holder.lock(&operation.key(), LockMode::AtOnce));
        self.go_on(id);
    }

    /// Sends the changes that have to be sent, in the order in which they were stamped.
    pub(super) fn send_changes(&mut self) {
        let Some(fleet) = self.copies.fleet.as_mut() else {
            return self.broken(NO_FLEET);
        };
        let buffer = std::mem::take(&mut fleet.sends);
        let mut sends = fleet.keeper.take_sends(buffer);
        let view = fleet.keeper.view().number;
        for send in sends.drain(..) {
            let Some(link) = fleet.links.to(send.slot, send.stay) else {
                // It is sent when there is one.
                continue;
            };
            let Some(operation) = self.copies.operations.get(Id::from_bits(send.token)) else {
                continue;
            };
            let Stage::Replicating { message, .. } = &operation.stage else {
                continue;
            };
            let Some(fleet_pool) = operation
                .tree
                .copies(operation.node)
                .and_then(|copies| copies.fleet.as_ref())
            else {
                continue;
            };
            let mut scratch = [0; 250];
            let frame = Change {
                view,
                sequence: send.sequence,
                stamp: send.stamp.bits(),
                pool: fleet_pool.hash,
                key: operation
                    .origin
                    .protocol
                    .key(&operation.request, &message.0, &mut scratch),
                message: &message.0,
            };
            if let Some(open) = fleet.links.get_mut(link) {
                frame.write(open.stream.filling(&mut self.buffers));
                self.metrics.fleet.changes_sent += 1;
                if open.stream.mark() {
                    self.metrics.fleet.flushes += 1;
                    self.actions.flush.push(Endpoint::Link(link));
                }
            }
        }
        fleet.sends = sends;
    }

    /// A keeper says what became of a change.
    pub(super) fn take_verdict(&mut self, from: (Slot, Stay), ack: &Ack<'_>) {
        let now = self.now;
        let Some(fleet) = self.copies.fleet.as_mut() else {
            return self.broken(NO_FLEET);
        };
        let verdict = match ack.verdict {
            WireVerdict::Applied(_) | WireVerdict::Superseded | WireVerdict::Missed => Verdict::Taken,
            WireVerdict::View(view) => Verdict::Later(view),
            WireVerdict::Decided(stamp) => Verdict::Decided(Stamp::from_bits(stamp)),
        };
        match fleet.keeper.acknowledge(from, ack.sequence, verdict, now) {
            AckOutcome::Nothing => self.send_changes(),
            AckOutcome::Acknowledged { token } => self.count_peer(Id::from_bits(token), &ack.verdict),
            AckOutcome::Again { token } => self.need_later_stamp(Id::from_bits(token)),
        }
    }

    /// A change needs a later stamp. It gets one when the own copy has answered the one before.
    pub(super) fn need_later_stamp(&mut self, id: OperationId) {
        let Some(operation) = self.copies.operations.get_mut(id) else {
            return;
        };
        if let Stage::Replicating { again, own, .. } = &mut operation.stage
            && !std::mem::replace(again, true)
            && !*own
        {
            self.draw_again(id);
        }
    }

    /// A keeper no longer needs this change.
    fn count_peer(&mut self, id: OperationId, verdict: &WireVerdict<'_>) {
        let Some(operation) = self.copies.operations.get_mut(id) else {
            return;
        };
        let Stage::Replicating {
            decided, superseded, ..
        } = &mut operation.stage
        else {
            return;
        };
        match *verdict {
            WireVerdict::Applied(bytes) => {
                operation.landed += 1;
                let (protocol, command) = (operation.origin.protocol, operation.request.command);
                let reply = protocol.whole(&StateSlot::NONE, command, b"", bytes, MESSAGE_LIMIT as u64);
                // Besides the home's answer, only errors of the other copies matter.
                if let Some(reply) = reply.filter(|reply| !*decided || reply.outcome.is_error()) {
                    operation.answers.keep(&Answer::Reply(&reply, bytes));
                }
            }
            WireVerdict::Superseded => *superseded = true,
            _ => {}
        }
        self.conclude_in_fleet(id);
    }

    /// Answers a change when every keeper of the view has it.
    pub(in crate::copies::path) fn conclude_in_fleet(&mut self, id: OperationId) {
        let (operations, fleet) = (&mut self.copies.operations, self.copies.fleet.as_mut());
        let (Some(operation), Some(fleet)) = (operations.get_mut(id), fleet) else {
            return;
        };
        let Stage::Replicating {
            change: Some(change),
            own: false,
            again: false,
            decided,
            superseded,
            ..
        } = &operation.stage
        else {
            return;
        };
        let (change, decided, superseded) = (*change, *decided, *superseded);
        if fleet.keeper.awaited(change) > 0 {
            return;
        }
        let snapshot = &self.copies.snapshot;
        let missed = &operation.missed;
        if missed
            .iter()
            .any(|&(member, outs)| outs.is_some_and(|outs| !snapshot.is_settled(member, outs)))
        {
            return self.copies.unsettled.push(id);
        }
        let parent = operation.parent;
        let has_answer = operation.answers.outcomes().next().is_some();
        if !has_answer && superseded && parent != ReplyTo::Nobody {
            // No copy took it, as each has a later change: its result is unknown. With a later stamp it is
            // the last.
            if let Stage::Replicating {
                again, superseded, ..
            } = &mut operation.stage
            {
                (*again, *superseded) = (true, false);
            }
            return self.draw_again(id);
        }
        fleet.keeper.finish(change);
        let waited = (self.now - operation.since).0;
        self.metrics.fleet.write_wait.record(waited);
        let answers = operation.take_answers();
        let rejected = answers.outcomes().any(Outcome::is_error);
        let chosen = match (decided, rejected) {
            (false, false) => answers.best(),
            (false, true) => answers.worst(),
            // The home's answer, unless another copy has rejected the change.
            (true, _) => answers.pick(|(a, _), (b, _)| a.is_error() && !b.is_error()),
        };
        match chosen {
            Some(chosen) => self.pass_on_answer(parent, &chosen),
            None => {
                let text = "no copy of this pool can take a write now";
                self.fail(parent, &Failed::here(Outcome::Ejected, text));
            }
        }
        if let Some(operation) = self.copies.operations.get_mut(id) {
            operation.answers = answers;
            self.copies.operations.end(id);
        }
    }
}
