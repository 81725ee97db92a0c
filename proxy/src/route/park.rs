//! Requests that wait before any server is chosen for them, until the step of the tree that holds them
//! releases them.

use std::rc::Rc;

use proxima_wire::message::Outcome;

use super::{FlightId, Node, NodeId, ReplyTo, Walk, flight::child_of, tree::Wrapped};
use crate::{dialect::Failed, engine::Engine, micros::Micros};

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
            return;
        };
        let walk = flight.walk(&tree, ReplyTo::Nobody);
        let mut scratch = [0; 250];
        let query = walk.query(walk.key(&mut scratch), self.facts.unix(self.now));
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
