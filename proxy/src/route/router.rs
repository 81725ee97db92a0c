//! The requests that are under way between clients and servers.

use std::net::IpAddr;

use proxima_wire::message::Class;

use super::{
    Flight, Flights,
    group::{Group, Groups},
    park::Waiting,
};
use crate::{
    client::WHOLE,
    engine::{ClientId, Engine, FlightId, ReplyTo},
};

/// The flights of a worker and its parked requests.
#[derive(Default)]
pub struct Router {
    pub(super) flights: Flights,
    /// Requests that wait for their pools.
    pub(super) waiting: Vec<Waiting>,
    /// Scratch buffer for the numbers of children that get copies of a request.
    pub(super) others: Vec<u32>,
    /// Scratch buffer for replies that this proxy makes.
    pub(super) reply: Vec<u8>,
    /// Scratch buffer for kept replies as one reader's own.
    pub(super) own: Vec<u8>,
    /// Scratch buffer for the forms of requests.
    pub(super) form: Vec<u8>,
    /// Tells keys of one request apart, of which each is asked for by itself.
    pub(super) parted: u64,
    /// What is being fetched to be kept.
    pub(super) groups: Groups,
}

impl Router {
    /// Does a step of the tree hold a request?
    pub(crate) fn holds_requests(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Is this request served in steps?
    pub(super) fn runs_script(&self, id: FlightId) -> bool {
        self.flights.peek(id).is_some_and(|flight| flight.run.is_some())
    }

    /// The readers of what this flight fetches to be kept. `None`: it does not.
    pub(super) fn fetches(&self, id: FlightId) -> Option<&Group> {
        self.flights.peek(id)?.group.as_deref()
    }

    /// Is there no flight, and does nobody wait for one?
    pub fn is_empty(&self) -> bool {
        self.flights.is_empty() && self.groups.is_empty()
    }

    /// Bytes of memory that the flights take.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.flights.iter().map(Flight::memory_bytes).sum()
    }
}

impl Engine {
    /// The destination of the reply of the step that waits for this answer, and the class of the request that
    /// the step serves. `None`: no step waits for it.
    fn parent_of(&self, to: ReplyTo) -> Option<(ReplyTo, Class)> {
        match to {
            ReplyTo::Flight { flight, .. } => {
                let flight = self.router.flights.peek(flight)?;
                Some((flight.parent, flight.request.class))
            }
            ReplyTo::Operation { operation, .. } => self.copies.parent_of(operation),
            ReplyTo::Client { .. }
            | ReplyTo::Admission { .. }
            | ReplyTo::Pool { .. }
            | ReplyTo::Peer { .. }
            | ReplyTo::Lane { .. }
            | ReplyTo::Nobody => None,
        }
    }

    /// The slot of the client that an answer is for in the end, through any number of steps. `None`: it is
    /// for no client.
    pub(crate) fn slot_of(&self, mut to: ReplyTo) -> Option<(ClientId, u32)> {
        loop {
            if let ReplyTo::Client { client, seq } = to {
                return Some((client, seq));
            }
            (to, _) = self.parent_of(to)?;
        }
    }

    /// The address of the client that an answer is for in the end; `None`: it has none, or none waits.
    pub(super) fn address_of(&self, to: ReplyTo) -> Option<IpAddr> {
        let (client, _) = self.slot_of(to)?;
        self.clients.address(client)
    }

    /// The size of the largest reply that is taken whole, and not passed on as it comes: any, for a peer of
    /// the fleet; any that a client may store, for a route that looks at values.
    pub(crate) fn largest_whole(&self, mut to: ReplyTo) -> u64 {
        const HEAD: u64 = 4096;
        loop {
            match to {
                ReplyTo::Peer { .. } => return u64::MAX,
                ReplyTo::Flight { flight, .. } if let Some(group) = self.router.fetches(flight) => {
                    return WHOLE.max(group.largest() + HEAD);
                }
                ReplyTo::Flight { flight, .. } if self.router.runs_script(flight) => {
                    return WHOLE.max(self.limits.value_bytes as u64 + HEAD);
                }
                _ => {}
            }
            match self.parent_of(to) {
                Some((parent, _)) => to = parent,
                None => return WHOLE,
            }
        }
    }

    /// The client that reads this answer's value, through any number of steps. `None`: no client does, or a
    /// step serves a change.
    pub(crate) fn reader_of(&self, mut to: ReplyTo) -> Option<ClientId> {
        loop {
            if let ReplyTo::Client { client, .. } = to {
                return Some(client);
            }
            let (parent, class) = self.parent_of(to)?;
            if class != Class::Read {
                return None;
            }
            to = parent;
        }
    }
}
