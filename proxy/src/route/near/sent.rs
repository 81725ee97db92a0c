//! What a flight has sent for its readers, taken from it when the answer has come.

use std::rc::Rc;

use proxima_wire::message::Request;

use crate::{
    engine::{Engine, FlightId, ReplyTo},
    route::{NodeId, Origin, Tree, Walk},
};

/// A request that was sent, or is waited for, in the name of all who have asked the same.
pub(super) struct Sent {
    pub(super) tree: Rc<Tree>,
    pub(super) node: NodeId,
    pub(super) request: Request,
    origin: Origin,
    message: Vec<u8>,
}

impl Sent {
    /// Its walk, whose answer is for this receiver.
    pub(super) fn walk(&self, to: ReplyTo) -> Walk<'_> {
        Walk {
            tree: &self.tree,
            origin: self.origin,
            request: &self.request,
            message: &self.message,
            to,
        }
    }

    /// Its message, whose memory others may use.
    pub(super) fn message(self) -> Vec<u8> {
        self.message
    }
}

impl Engine {
    /// Takes what this flight has sent. `None`: there is no such flight.
    pub(super) fn take_sent(&mut self, id: FlightId) -> Option<Sent> {
        let flight = self.router.flights.get(id)?;
        Some(Sent {
            tree: Rc::clone(&flight.tree),
            node: flight.node,
            request: flight.request,
            origin: flight.origin,
            message: std::mem::take(&mut flight.message),
        })
    }
}
