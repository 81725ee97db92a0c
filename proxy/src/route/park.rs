//! Requests that wait before any server is chosen for them, until the step of the tree that holds them
//! releases them.

use std::rc::Rc;

use proxima_wire::message::Outcome;

use super::{
    Node, NodeId, Walk,
    flight::{MISPLACED, child_of},
    tree::Wrapped,
};
use crate::{
    engine::{Engine, FlightId, ReplyTo},
    micros::Micros,
    protocol::Failed,
};

/// A request that waits.
pub(super) struct Parked {
    flight: FlightId,
    /// The request fails if it still waits at this time.
    due: Micros,
}

impl Engine {
    /// Holds this request at the wrap `node`. The client's next requests wait as well.
    pub(super) fn park(&mut self, node: NodeId, limit: Micros, walk: &Walk<'_>) {
        if walk.is_streamed() {
            let text = "this request is too large to wait for its pool";
            return self.fail(walk.to, &Failed::here(Outcome::Overloaded, text));
        }
        let flight = self.watch(node, walk);
        let due = self.now + limit;
        self.router.parked.push(Parked { flight, due });
        self.hold_back_client(walk.to);
    }

    /// Puts this request into the queue of the wrap `node`.
    pub(super) fn queue(&mut self, node: NodeId, walk: &Walk<'_>) {
        let flight = self.watch(node, walk);
        let client = self.slot_of(walk.to).map(|(client, _)| client);
        if let Node::Wrap { handle, .. } = walk.tree.node(node) {
            handle.enqueue(flight, client);
        }
    }

    /// Lets a request from the queue of a wrap go on; in place of one whose client has left, the next one.
    pub(super) fn release_queued(&mut self, mut id: FlightId) {
        while let Some(flight) = self.router.flights.get(id) {
            let (tree, node, parent) = (Rc::clone(&flight.tree), flight.node, flight.parent);
            let Node::Wrap { handle, child } = tree.node(node) else {
                return self.broken(MISPLACED);
            };
            if !self.has_left(parent) {
                return self.resend(id, *child, child_of(id, 0));
            }
            self.router.flights.close(id);
            let next = handle.left();
            self.fail(parent, &Failed::here(Outcome::ClientError, "its client left"));
            match next {
                Some(next) => id = next,
                None => return,
            }
        }
    }

    /// Asks again about the requests that wait. The worker calls this in every turn.
    pub fn release_parked(&mut self) {
        for parked in std::mem::take(&mut self.router.parked) {
            self.ask_again(parked);
        }
    }

    fn ask_again(&mut self, parked: Parked) {
        let id = parked.flight;
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        let (tree, parent) = (Rc::clone(&flight.tree), flight.parent);
        let Node::Wrap { handle, child } = tree.node(flight.node) else {
            return self.broken(MISPLACED);
        };
        let walk = flight.walk(&tree, ReplyTo::Nobody);
        let mut scratch = [0; 250];
        let query = walk.query(walk.key(&mut scratch), self.facts.start + self.now);
        let failed = match handle.request(walk.request, walk.message, &query, &mut self.random) {
            Wrapped::Park(_) if self.now < parked.due => return self.router.parked.push(parked),
            Wrapped::Park(_) => Failed::here(Outcome::Timeout, "its pool held it back for too long"),
            _ if self.has_left(parent) => Failed::here(Outcome::ClientError, "its client left"),
            _ => return self.resend(id, *child, child_of(id, 0)),
        };
        self.router.flights.close(id);
        self.fail(parent, &failed);
    }

    /// Is the client gone that this answer is for?
    fn has_left(&mut self, to: ReplyTo) -> bool {
        let slot = self.slot_of(to);
        slot.is_some_and(|(client, _)| self.clients.lease(client).is_none())
    }
}
