//! What gather, attempt and some wraps remember while they wait: a few words per request, in a slab of the worker.

use std::rc::Rc;

use proxima_wire::message::{Outcome, Request};

use super::{Answers, NodeId, Tree, Walk};
use crate::{
    client::ClientId,
    copies::OperationId,
    dialect::Dialect,
    members::Locality,
    table::{Entry, Id, Table},
};

/// Whom a reply is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyTo {
    /// Slot `seq` of a client. The generation tells it from the one that had its place before.
    Client { client: ClientId, seq: u32 },
    /// Child number `child` of a gather, an attempt or a wrap.
    Flight { flight: FlightId, child: u32 },
    /// Child number `child` of a pool of copies, or what was sent to a home besides.
    Operation { operation: OperationId, child: u32 },
    /// Nobody waits for it.
    Nobody,
}

/// Where a request came from: what every step of its walk needs and none changes.
#[derive(Clone, Copy)]
pub struct Origin {
    /// Which listener it came through.
    pub listener: u16,
    /// How the client wants its replies.
    pub form: u16,
    /// The number of the login that it needs at servers.
    pub login: u16,
    /// Where the client was when it asked.
    pub locality: Locality,
    /// What is spoken there.
    pub dialect: &'static dyn Dialect,
}

/// A node that waits for replies.
pub struct Flight {
    generation: u32,
    /// Whom its own reply is for.
    pub(super) parent: ReplyTo,
    /// The tree it began in: a reload does not change the rules under a request.
    pub(super) tree: Rc<Tree>,
    pub(super) node: NodeId,
    pub(super) origin: Origin,
    pub(super) request: Request,
    /// The request's bytes (of a streamed one the head), where they may be needed again.
    pub(super) message: Vec<u8>,
    /// How often it was sent, if it is sent to one after the other.
    pub(super) tries: u32,
    /// Replies still to come.
    pub(super) pending: u32,
    /// The parent has its answer; what still comes is dropped.
    pub(super) done: bool,
    /// What is kept for the rule.
    pub(super) answers: Answers,
}

impl Flight {
    /// Its request, as it walks `tree` for this destination.
    pub fn walk<'a>(&'a self, tree: &'a Rc<Tree>, to: ReplyTo) -> Walk<'a> {
        Walk {
            tree,
            origin: self.origin,
            request: &self.request,
            message: &self.message,
            to,
        }
    }

    /// Bytes of memory that it takes.
    pub fn holds(&self) -> usize {
        size_of::<Self>() + self.message.capacity() + self.answers.holds()
    }
}

/// The handle of a flight.
pub type FlightId = Id<Flight>;

impl Entry for Flight {
    fn generation(&self) -> u32 {
        self.generation
    }
}

/// All flights of one worker. Freed ones keep their buffers for the next.
#[derive(Default)]
pub struct Flights {
    table: Table<Flight>,
    spare: Vec<(Vec<u8>, Answers)>,
}

/// Larger buffers are not worth keeping.
const SPARE_BYTES: usize = 4 * 1024;
const SPARE_COUNT: usize = 1024;

impl Flights {
    /// A new flight of `pending` replies for the request of this walk, which has come to `node`.
    pub fn open(&mut self, node: NodeId, walk: &Walk<'_>, pending: u32) -> (FlightId, &mut Flight) {
        let (message, answers) = self.spare.pop().unwrap_or_default();
        let id = self.table.insert(|generation| Flight {
            generation,
            parent: walk.to,
            tree: Rc::clone(walk.tree),
            node,
            origin: walk.origin,
            request: *walk.request,
            message,
            tries: 1,
            pending,
            done: false,
            answers,
        });
        let flight = self.table.get_mut(id);
        (id, flight.expect("it was inserted just now"))
    }

    /// The flight of this handle.
    pub fn get(&mut self, id: FlightId) -> Option<&mut Flight> {
        self.table.get_mut(id)
    }

    /// The flight of this handle, to be looked at.
    pub fn peek(&self, id: FlightId) -> Option<&Flight> {
        self.table.get(id)
    }

    /// Ends a flight; late replies to it find nothing.
    pub fn close(&mut self, id: FlightId) {
        let Some(flight) = self.table.remove(id) else {
            return;
        };
        let (mut message, mut answers) = (flight.message, flight.answers);
        if self.spare.len() < SPARE_COUNT && message.capacity() + answers.holds() <= SPARE_BYTES {
            message.clear();
            answers.clear();
            self.spare.push((message, answers));
        }
    }

    /// All flights.
    pub fn iter(&self) -> impl Iterator<Item = &Flight> {
        self.table.iter().map(|(_, flight)| flight)
    }

    /// How many flights there are.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}

/// The address of one child of a flight.
pub(super) fn child_of(flight: FlightId, child: usize) -> ReplyTo {
    ReplyTo::Flight {
        flight,
        child: child as u32,
    }
}

/// Is this outcome one that a gather for the fastest reply takes at once?
pub(super) fn is_good(outcome: Outcome) -> bool {
    !outcome.is_failover()
}
