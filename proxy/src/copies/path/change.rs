//! A change locks its key, and then goes to all copies at once, or to the key's home first.

use std::{mem, rc::Rc};

use proxima_wire::message::{Outcome, Request};

use super::operation::{Message, NO_POOL, Stage};
use crate::{
    copies::{KeyLock, LockMode},
    engine::{Engine, OperationId, ReplyTo, Sleeper},
    micros::Micros,
    protocol::{Effect, Failed},
    route::{Copies, NodeId, Walk},
};

/// Between two attempts to lock a key, or to find its home.
pub(super) const RETRY: Micros = Micros(500);
/// The time for which other workers' changes of a key are waited for. No change takes as long.
pub(super) const LOCK_TIMEOUT: Micros = Micros::secs(60);
/// The answer when they have not ended by then.
pub(super) const LOCKED: &str = "other changes of this key have not ended";

/// Does one copy decide what becomes of this change?
fn is_decided(copies: &Copies, request: &Request, message: &[u8]) -> bool {
    copies.home.is_some() && copies.copied.effect(request, message) == Effect::Decide
}

impl Engine {
    /// Begins a change of all copies.
    pub(super) fn change(&mut self, node: NodeId, copies: &Copies, walk: &Walk<'_>) {
        let key = self.copies.take_key(walk);
        let streamed = walk.is_streamed();
        let decided = is_decided(copies, walk.request, walk.message);
        let mode = match (streamed, decided) {
            (true, _) => LockMode::Streamed,
            (false, true) => LockMode::ByHome,
            (false, false) => LockMode::AtOnce,
        };
        let mut lock = self.copies.holder.lock(&key, mode);
        // A streamed value waits for its lock before its last byte.
        let goes = streamed || lock.try_lock();
        let waits = !goes || decided;
        let operations = &mut self.copies.operations;
        let id = operations.begin(node, walk, Some(lock), self.now, |mut buffer| {
            buffer.extend_from_slice(if waits { walk.message } else { &key });
            match waits {
                true => Stage::Waiting {
                    message: Message(buffer),
                },
                // Only the key of a change that goes out at once may be needed again.
                false => Stage::Everywhere { key: buffer },
            }
        });
        if streamed {
            self.copies.streamed.push(id);
        }
        if self.near.counts() {
            let change = self.begin_change(walk.origin.protocol, walk.request, walk.message);
            if let Some(operation) = self.copies.operations.get_mut(id) {
                operation.change = change;
            }
        }
        self.copies.give_back_key(key);
        if !waits {
            return self.fan_out(copies, id, None, walk);
        }
        self.hold_requests_behind(walk.to);
        self.go_on(id);
    }

    /// Looks again whether a change that waits may go on.
    pub(crate) fn go_on(&mut self, id: OperationId) {
        let Some(operation) = self.copies.operations.get_mut(id) else {
            return;
        };
        let (request, origin) = (operation.request, operation.origin);
        let streamed = match &operation.stage {
            Stage::Waiting { message } => message.is_streamed(&request),
            Stage::Replicating { again: true, .. } => false,
            _ => return,
        };
        if !streamed
            && let Some(lock) = operation.lock.as_mut().filter(|lock| !lock.is_held())
            && lock.try_lock()
        {
            operation.since = self.now;
        }
        let locked = operation.lock.as_ref().is_none_or(KeyLock::is_held);
        let (parent, since) = (operation.parent, operation.since);
        if !locked && !streamed {
            // A change that peers have begun, or without a waiting client, is not given up: its key would
            // stay different at some copies.
            let is_begun = matches!(operation.stage, Stage::Replicating { .. });
            if self.now - since < LOCK_TIMEOUT || is_begun || parent == ReplyTo::Nobody {
                return self.try_again(id);
            }
            self.copies.operations.end(id);
            return self.fail(parent, &Failed::here(Outcome::Timeout, LOCKED));
        }
        let tree = Rc::clone(&operation.tree);
        let node = operation.node;
        let Some(copies) = tree.copies(node) else {
            return self.broken(NO_POOL);
        };
        if copies.fleet.is_some() {
            return self.go_on_in_fleet(id);
        }
        let Some(operation) = self.copies.operations.get_mut(id) else {
            return;
        };
        let Stage::Waiting { message } = &mut operation.stage else {
            return;
        };
        if is_decided(copies, &request, &message.0) {
            return self.find_home(id);
        }
        // From here on only the key is needed. The message leaves its buffer for the next that waits.
        let message = mem::take(&mut message.0);
        let mut key = mem::take(&mut self.copies.message);
        let walk = Walk {
            tree: &tree,
            origin,
            request: &request,
            message: &message,
            to: ReplyTo::Nobody,
        };
        let mut scratch = [0; 250];
        key.extend_from_slice(walk.key(&mut scratch));
        operation.stage = Stage::Everywhere { key };
        self.fan_out(copies, id, None, &walk);
        self.copies.give_back_message(message);
    }

    /// Looks again soon whether this change may go on.
    pub(super) fn try_again(&mut self, id: OperationId) {
        self.timers.wake(self.now + RETRY, Sleeper::Operation(id));
    }
}
