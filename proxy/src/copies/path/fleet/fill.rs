//! A copy that has come back lacks the values that were flushed or deleted there. Its misses are looked up at
//! a neighbour, and the neighbour's values are stored here, so that a restarted node does not send its whole
//! load to the database.
//!
//! ```text
//!  read ─▶ own copy: a miss ─▶ neighbour: a hit ─▶ the client's answer
//!                                      └─▶ fetch the value with flags and expiry ─▶ no change since? ─▶ `add` at the own copy
//! ```
//!
//! The neighbour's value is as new as the value that this copy had, if no change of the key is open here when
//! the neighbour is asked: all copies that are read have every completed change. The value is stored if this
//! copy has had no change of the key since.

use std::rc::Rc;

use proxima_wire::{
    fleet::AskKind,
    message::{Outcome, Parsed},
};

use crate::{
    copies::path::{
        LockMode, member,
        operation::{Message, Stage, is_missed, reply_to},
    },
    engine::{Engine, OperationId, ReplyTo},
    micros::Micros,
    route::{Answer, Copies, NodeId, Walk},
};

/// The numbers of the replies that a fill waits for: the own copy's, and the neighbour's.
const OWN: usize = 0;
const NEIGHBOUR: usize = 1;

/// The number of lookups at neighbours after which their use is judged.
const WINDOW: u32 = 1000;
/// Lookups help while at least one in this number finds a value.
const USEFUL: u32 = 100;
/// The most values that a worker stores in a second.
const RATE: u64 = 5_000;
/// The most values that a worker asks for at a time.
const UNDER_WAY: u32 = 64;

/// Misses of the own copies are looked up at neighbours.
#[derive(Default)]
pub(super) struct Filling {
    looks: u32,
    found: u32,
    under_way: u32,
    /// No value is asked for before this time.
    next: Micros,
}

impl Filling {
    /// A neighbour was looked at. Returns whether neighbours have helped lately.
    fn count(&mut self, is_found: bool) -> bool {
        self.looks += 1;
        self.found += u32::from(is_found);
        if self.looks < WINDOW {
            return true;
        }
        let helps = self.found * USEFUL >= self.looks;
        (self.looks, self.found) = (0, 0);
        helps
    }

    /// May another value be asked for now?
    fn admits(&mut self, now: Micros) -> bool {
        let admits = self.under_way < UNDER_WAY && now >= self.next;
        if admits {
            // A burst of a tenth of a second's worth is made up for.
            let earliest = Micros(now.0.saturating_sub(100_000));
            self.next = self.next.max(earliest) + Micros(1_000_000 / RATE);
            self.under_way += 1;
        }
        admits
    }
}

impl Engine {
    /// A copy is read again: it may lack what others have.
    pub(in crate::copies::path) fn begin_to_fill(&mut self) {
        if let Some(fleet) = self.copies.fleet.as_mut() {
            fleet.filling.get_or_insert_default();
        }
    }

    /// Reads at the own copy, and what that lacks at a neighbour's.
    pub(super) fn look_and_fill(&mut self, node: NodeId, own: NodeId, walk: &Walk<'_>) {
        let operations = &mut self.copies.operations;
        let id = operations.begin(node, walk, None, self.now, |mut buffer| {
            buffer.extend_from_slice(walk.message);
            Stage::Filling {
                message: Message(buffer),
            }
        });
        self.walk(own, &walk.to(reply_to(id, OWN)));
    }

    /// The own copy, or a neighbour, has answered a read.
    pub(in crate::copies::path) fn looked_to_fill(
        &mut self,
        copies: &Copies,
        id: OperationId,
        child: usize,
        answer: &Answer<'_>,
    ) {
        let Some(operation) = self.copies.operations.get_mut(id) else {
            return;
        };
        let Stage::Filling { message } = &mut operation.stage else {
            return;
        };
        let message = std::mem::take(&mut message.0);
        let (tree, node, request) = (Rc::clone(&operation.tree), operation.node, operation.request);
        let (origin, parent) = (operation.origin, operation.parent);
        let walk = Walk {
            tree: &tree,
            origin,
            request: &request,
            message: &message,
            to: reply_to(id, NEIGHBOUR),
        };
        let is_found = answer.outcome() == Outcome::Found;
        let fills = self
            .copies
            .fleet
            .as_mut()
            .and_then(|fleet| fleet.filling.as_mut());
        match (child, fills) {
            (OWN, Some(_)) if answer.outcome() == Outcome::NotFound => {
                self.metrics.fleet.fill_looks += 1;
                self.ask_peer(node, AskKind::Look, &walk);
                if let Some(operation) = self.copies.operations.get_mut(id) {
                    operation.stage = Stage::Filling {
                        message: Message(message),
                    };
                }
                return;
            }
            (NEIGHBOUR, Some(fills)) => {
                if !fills.count(is_found)
                    && let Some(fleet) = self.copies.fleet.as_mut()
                {
                    fleet.filling = None;
                }
                if is_found {
                    self.fetch(copies, node, &walk);
                }
            }
            _ => {}
        }
        self.copies.operations.end(id);
        self.pass_on_answer(parent, answer);
    }

    /// Asks a neighbour for the value of this key, with all that a copy needs.
    fn fetch(&mut self, copies: &Copies, node: NodeId, walk: &Walk<'_>) {
        let now = self.now;
        let (Some(fleet_pool), Some(fleet)) = (&copies.fleet, self.copies.fleet.as_mut()) else {
            return;
        };
        let mut scratch = [0; 250];
        let key = walk.key(&mut scratch);
        let mut asked = Vec::new();
        if !copies.copied.fetch(key, &mut asked) {
            return;
        }
        let Parsed::Head(request) = walk.origin.protocol.head(&asked) else {
            return;
        };
        let history = fleet
            .keeper
            .shared()
            .history(fleet_pool.key_hash(key), fleet_pool.key_hash(b""));
        let (Some(history), Some(filling)) = (history, fleet.filling.as_mut()) else {
            return;
        };
        if !filling.admits(now) {
            return;
        }
        let walk = Walk {
            request: &request,
            message: &asked,
            to: ReplyTo::Nobody,
            ..*walk
        };
        let operations = &mut self.copies.operations;
        let id = operations.begin(node, &walk, None, now, |mut buffer| {
            buffer.extend_from_slice(key);
            Stage::Fetching { key: buffer, history }
        });
        self.ask_peer(node, AskKind::Look, &walk.to(reply_to(id, NEIGHBOUR)));
    }

    /// A neighbour has given the value, or the own copy has stored it.
    pub(in crate::copies::path) fn fetched(
        &mut self,
        copies: &Copies,
        id: OperationId,
        child: usize,
        answer: &Answer<'_>,
    ) {
        match child {
            NEIGHBOUR if self.store_fetched(copies, id, answer) => return,
            OWN if answer.outcome() == Outcome::Stored => self.metrics.fleet.filled += 1,
            OWN if is_missed(answer.outcome()) => {
                // A store whose answer was lost may still come to the copy, after later changes.
                let tree = self
                    .copies
                    .operations
                    .get(id)
                    .map(|operation| Rc::clone(&operation.tree));
                if let Some(tree) = tree
                    && let Some(own) = member(&tree, copies, 0)
                {
                    self.miss(own, id, &answer.what());
                }
            }
            _ => {}
        }
        self.copies.operations.end(id);
        if let Some(filling) = self
            .copies
            .fleet
            .as_mut()
            .and_then(|fleet| fleet.filling.as_mut())
        {
            filling.under_way = filling.under_way.saturating_sub(1);
        }
    }

    /// Stores a neighbour's value at the own copy; `false`: it is not stored.
    fn store_fetched(&mut self, copies: &Copies, id: OperationId, answer: &Answer<'_>) -> bool {
        let unix = self.unix_micros() / 1_000_000;
        let Some(operation) = self.copies.operations.get_mut(id) else {
            return false;
        };
        let (Stage::Fetching { key, history }, Answer::Reply(_, reply)) = (&operation.stage, answer) else {
            return false;
        };
        let (Some(fleet_pool), Some(&own)) = (&copies.fleet, copies.children.first()) else {
            return false;
        };
        let (tree, origin) = (Rc::clone(&operation.tree), operation.origin);
        let mut asked = Vec::new();
        if !copies.copied.store_fetched(key, reply, unix, &mut asked) {
            return false;
        }
        let Parsed::Head(request) = origin.protocol.head(&asked) else {
            return false;
        };
        let mut lock = self.copies.holder.lock(key, LockMode::AtOnce);
        let fleet = self.copies.fleet.as_ref();
        let is_unchanged = lock.try_lock()
            && fleet.is_some_and(|fleet| {
                let shared = fleet.keeper.shared();
                shared.history(fleet_pool.key_hash(key), fleet_pool.key_hash(b"")) == Some(*history)
            });
        if let Some(operation) = self.copies.operations.get_mut(id) {
            operation.lock = Some(lock);
        }
        if !is_unchanged || !self.may_read_own(&tree, copies) {
            return false;
        }
        let walk = Walk {
            tree: &tree,
            origin,
            request: &request,
            message: &asked,
            to: reply_to(id, OWN),
        };
        self.walk(own, &walk);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_at_neighbours_end_when_one_in_a_hundred_helps_no_more() {
        let mut filling = Filling::default();
        assert!((0..WINDOW).all(|look| filling.count(look % USEFUL == 0)));
        let ended = (0..WINDOW).position(|look| !filling.count(look > USEFUL && look % USEFUL == 0));
        assert_eq!(ended, Some(WINDOW as usize - 1));
    }

    #[test]
    fn values_are_asked_for_at_the_stated_rate_and_few_at_a_time() {
        let mut filling = Filling::default();
        let begin = Micros(5_000_000);
        let at_once = (0..1000).filter(|_| filling.admits(begin)).count();
        assert_eq!(at_once, UNDER_WAY as usize);
        let mut asked = 0_u64;
        for micros in (0..2_000_000).step_by(50) {
            filling.under_way = 0;
            asked += u64::from(filling.admits(begin + Micros(micros)));
        }
        assert!(
            (2 * RATE - 10..2 * RATE + RATE / 10 + 10).contains(&asked),
            "{asked} in two seconds"
        );
    }
}
