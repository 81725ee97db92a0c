//! What is under way between clients and servers.

use std::{collections::BinaryHeap, time::Duration};

use proxima_wire::message::Class;

use super::{Flight, Flights, ReplyTo, Timer, park::Parked};
use crate::client::ClientId;
use crate::micros::Micros;

/// The requests of a worker that wait for replies, or for a time.
#[derive(Default)]
pub struct Router {
    pub(super) flights: Flights,
    pub(super) timers: BinaryHeap<Timer>,
    /// Requests that a step of the tree holds.
    pub(super) parked: Vec<Parked>,
    /// Scratch for a request that a flight sends again or later.
    pub(super) resend: Vec<u8>,
    /// Scratch for replies that are made here.
    pub(super) reply: Vec<u8>,
}

impl Router {
    /// How long nothing has to be woken, at this time; `None`: nothing waits for a time.
    pub fn sleeps(&self, now: Micros) -> Option<Duration> {
        let timer = self.timers.peek()?;
        Some((timer.due - now).into())
    }

    /// The slot of a client that an answer is for in the end, through whatever flights. `None`: it is for no client.
    pub(crate) fn slot_of(&mut self, mut to: ReplyTo) -> Option<(ClientId, u32)> {
        loop {
            match to {
                ReplyTo::Client { client, seq } => return Some((client, seq)),
                ReplyTo::Flight { flight, .. } => to = self.flights.get(flight)?.parent,
                ReplyTo::Nobody => return None,
            }
        }
    }

    /// The client that reads what this answer says, through whatever flights. `None`: no client does, or a flight is a change.
    pub(crate) fn reader_of(&mut self, mut to: ReplyTo) -> Option<ClientId> {
        while let ReplyTo::Flight { flight, .. } = to {
            let flight = self.flights.get(flight)?;
            if flight.request.class != Class::Read {
                return None;
            }
            to = flight.parent;
        }
        self.slot_of(to).map(|(client, _)| client)
    }

    /// Does a step of the tree hold a request?
    pub(crate) fn holds_requests(&self) -> bool {
        !self.parked.is_empty()
    }

    /// Does no request wait for anything?
    pub fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    /// Bytes of memory that the requests take.
    pub(crate) fn holds(&self) -> usize {
        self.flights.iter().map(Flight::holds).sum()
    }
}
