//! A change claims its key, and then goes its way: to all copies at once, or to the key's home first.

use std::rc::Rc;

use proxima_wire::message::{Outcome, Request};

use crate::{
    dialect::{Effect, Failed},
    engine::Engine,
    members::copies::{Claim, Way},
    micros::Micros,
    route::{
        FlightId, Node, NodeId, ReplyTo, Sleeper, Timer, Walk,
        flight::{Change, Stage},
        tree::Copies,
    },
};

/// What has to wait looks again after this long.
pub(super) const AGAIN: Micros = Micros(500);
/// Other workers' changes of a key are waited for this long, which is longer than any of them takes.
pub(super) const TURN: Micros = Micros::secs(60);

/// Does one copy decide what becomes of this change?
fn is_decided(copies: &Copies, request: &Request, message: &[u8]) -> bool {
    copies.home.is_some() && copies.copied.effect(request, message) == Effect::Decide
}

impl Engine {
    /// Begins a change of all copies.
    pub(super) fn change(&mut self, node: NodeId, copies: &Copies, walk: &Walk<'_>) {
        let key = self.key(walk);
        let streamed = walk.is_streamed();
        let decided = is_decided(copies, walk.request, walk.message);
        let way = match (streamed, decided) {
            (true, _) => Way::Streamed,
            (false, true) => Way::ByHome,
            (false, false) => Way::AtOnce,
        };
        let mut claim = self.claimant.claim(&key, way);
        // A streamed value waits before its last byte.
        let goes = streamed || claim.ask();
        let (id, flight) = self.router.flights.open(node, walk, 0);
        let waits = !goes || decided;
        // All that may be needed again of one that goes out at once is the key.
        flight
            .message
            .extend_from_slice(if waits { walk.message } else { &key });
        let change = Change {
            stage: if waits { Stage::Waiting } else { Stage::Everywhere },
            claim: Some(claim),
            since: self.now,
            ..Change::default()
        };
        self.router.flights.becomes(id, change);
        if streamed {
            self.turns.push(id);
        }
        self.key = key;
        if !waits {
            return self.spread(copies, id, None, walk);
        }
        self.hold_back_client(walk.to);
        self.go_on(id);
    }

    /// Looks again whether a change that waits may go on.
    pub(in crate::route) fn go_on(&mut self, id: FlightId) {
        let Some((flight, change)) = self.router.flights.change(id) else {
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
            if (self.now - since) < TURN {
                return self.look_again(id);
            }
            self.router.flights.close(id);
            let text = "other changes of this key have not ended";
            return self.fail(parent, &Failed::here(Outcome::Timeout, text));
        }
        if is_decided(copies, &flight.request, &flight.message) {
            return self.find_home(id);
        }
        let request = flight.request;
        let mut message = std::mem::take(&mut self.router.resend);
        message.extend_from_slice(&flight.message);
        let walk = Walk {
            tree: &tree,
            origin,
            request: &request,
            message: &message,
            to: ReplyTo::Nobody,
        };
        let key = self.key(&walk);
        if let Some((flight, change)) = self.router.flights.change(id) {
            flight.message.clear();
            flight.message.extend_from_slice(&key);
            change.stage = Stage::Everywhere;
        }
        self.key = key;
        self.spread(copies, id, None, &walk);
        message.clear();
        self.router.resend = message;
    }

    pub(super) fn look_again(&mut self, id: FlightId) {
        self.router.timers.push(Timer {
            due: self.now + AGAIN,
            wakes: Sleeper::Flight(id),
        });
    }
}
