//! A change claims its key, and then goes its way: to all copies at once, or to the key's home first.

use std::rc::Rc;

use proxima_wire::message::{Outcome, Request};

use crate::{
    dialect::{Effect, Failed},
    engine::Engine,
    members::copies::{Claim, Way},
    route::{
        Node, NodeId, ReplyTo, Tree,
        flight::{Change, Origin, Stage},
        tree::Copies,
    },
    timer::{Sleeper, Timer},
};

/// What has to wait looks again after this long: microseconds.
pub(super) const AGAIN: u64 = 500;
/// Other workers' changes of a key are waited for this long, which is longer than any of them takes: microseconds.
pub(super) const TURN: u64 = 60_000_000;

/// Does one copy decide what becomes of this change?
fn is_decided(copies: &Copies, request: &Request, message: &[u8]) -> bool {
    copies.home.is_some() && copies.copied.effect(request, message) == Effect::Decide
}

impl Engine {
    /// Begins a change of all copies.
    pub(super) fn change(
        &mut self,
        tree: &Rc<Tree>,
        node: NodeId,
        origin: Origin,
        request: &Request,
        message: &[u8],
        to: ReplyTo,
    ) {
        let Node::Copies(copies) = tree.node(node) else {
            return;
        };
        let key = self.key(origin, request, message);
        let streamed = (message.len() as u64) < request.len();
        let decided = is_decided(copies, request, message);
        let way = match (streamed, decided) {
            (true, _) => Way::Streamed,
            (false, true) => Way::ByHome,
            (false, false) => Way::AtOnce,
        };
        let mut claim = self.claimant.claim(&key, way);
        // A streamed value waits before its last byte.
        let goes = streamed || claim.ask();
        let (index, flight) = self.flights.open(to, Rc::clone(tree), node, origin, request, 0);
        let generation = flight.generation();
        let waits = !goes || decided;
        // All that may be needed again of one that goes out at once is the key.
        flight
            .message
            .extend_from_slice(if waits { message } else { &key });
        let change = Change {
            stage: if waits { Stage::Waiting } else { Stage::Everywhere },
            claim: Some(claim),
            since: self.now,
            ..Change::default()
        };
        self.flights.becomes(index, change);
        if streamed {
            self.turns.push((index, generation));
        }
        self.key = key;
        if !waits {
            return self.spread(tree, copies, index, generation, None, origin, request, message);
        }
        self.hold_back_client(to);
        self.go_on(index, generation);
    }

    /// What this client asks next waits for the answer: it may be about the same key.
    pub(crate) fn hold_back_client(&mut self, mut to: ReplyTo) {
        while let ReplyTo::Flight {
            index, generation, ..
        } = to
        {
            let Some(flight) = self.flights.get(index, generation) else {
                return;
            };
            to = flight.parent;
        }
        if let ReplyTo::Client {
            index,
            generation,
            seq,
        } = to
            && let Some(client) = self.client(index, generation)
        {
            client.awaits = Some(seq);
        }
    }

    /// Looks again whether a change that waits may go on.
    pub(in crate::route) fn go_on(&mut self, index: u32, generation: u32) {
        let Some((flight, change)) = self.flights.change(index, generation) else {
            return;
        };
        if change.stage != Stage::Waiting {
            return;
        }
        let streamed = (flight.message.len() as u64) < flight.request.len();
        if !streamed
            && let Some(claim) = change.claim.as_mut().filter(|claim| !claim.is_held())
            && claim.ask()
        {
            change.since = self.now;
        }
        let claimed = change.claim.as_ref().is_none_or(Claim::is_held);
        let (tree, node, parent, since) = (Rc::clone(&flight.tree), flight.node, flight.parent, change.since);
        let origin = flight.origin;
        let Node::Copies(copies) = tree.node(node) else {
            return;
        };
        if !claimed && !streamed {
            if self.now.saturating_sub(since) < TURN {
                return self.look_again(index, generation);
            }
            self.flights.close(index);
            let text = "other changes of this key have not ended";
            return self.fail(parent, &Failed::here(Outcome::Timeout, text));
        }
        if is_decided(copies, &flight.request, &flight.message) {
            return self.find_home(index, generation);
        }
        let request = flight.request;
        let mut message = std::mem::take(&mut self.resend);
        message.extend_from_slice(&flight.message);
        let key = self.key(origin, &request, &message);
        if let Some((flight, change)) = self.flights.change(index, generation) {
            flight.message.clear();
            flight.message.extend_from_slice(&key);
            change.stage = Stage::Everywhere;
        }
        self.key = key;
        self.spread(&tree, copies, index, generation, None, origin, &request, &message);
        message.clear();
        self.resend = message;
    }

    pub(super) fn look_again(&mut self, index: u32, generation: u32) {
        self.timers.push(Timer {
            due: self.now + AGAIN,
            wakes: Sleeper::Flight { generation, index },
        });
    }
}
