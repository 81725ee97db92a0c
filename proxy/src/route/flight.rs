//! The memory of gathers, attempts and some wraps while they wait: a few words per request, in a slab of the
//! worker.

use std::rc::Rc;

use proxima_wire::message::{Class, Outcome, Reply, Request};

use super::{
    Answer, Answers, NodeId, Origin, Tree, Walk,
    group::Group,
    steps::Steps,
    tree::{AttemptRecord, Run},
};
use crate::{
    engine::{FlightId, ReplyTo, ids},
    micros::Micros,
    table::{Entry, Table},
};

/// No flight is at a node of another shape than its own.
pub(super) const MISPLACED: &str = "a flight waits at a node that it does not belong to";

/// A node that waits for replies.
pub struct Flight {
    generation: u32,
    /// The destination of its own reply.
    pub(super) parent: ReplyTo,
    /// The tree it began in: a reload does not change the rules under a request.
    pub(super) tree: Rc<Tree>,
    pub(super) node: NodeId,
    pub(super) origin: Origin,
    pub(super) request: Request,
    /// The request's bytes, where they may be needed again; for a streamed request, its head.
    pub(super) message: Vec<u8>,
    /// The children that were asked, where it goes to one after the other.
    pub(super) tried: AttemptRecord,
    /// The reply is held until this time.
    pub(super) until: Micros,
    /// The number of replies still to come.
    pub(super) pending: u32,
    /// The parent has its answer; later replies are dropped.
    pub(super) done: bool,
    /// The answers that the node's rule still needs.
    pub(super) answers: Answers,
    /// What it has waited for, if this flight times its request and something was noted.
    pub(super) steps: Option<Box<Steps>>,
    /// The state of a request that is served in steps.
    pub(super) run: Option<Box<dyn Run>>,
    /// The readers of what is fetched to be kept.
    pub(super) group: Option<Box<Group>>,
}

impl Flight {
    /// The walk of its request, with this destination for the reply.
    pub(super) fn own_walk(&self, to: ReplyTo) -> Walk<'_> {
        self.walk(&self.tree, to)
    }

    /// The walk of its request through `tree`, with this destination for the reply.
    pub fn walk<'a>(&'a self, tree: &'a Rc<Tree>, to: ReplyTo) -> Walk<'a> {
        Walk {
            tree,
            origin: self.origin,
            request: &self.request,
            message: &self.message,
            to,
        }
    }

    /// Does its request remove something, and do replies tell what?
    pub(super) fn removes(&self) -> bool {
        self.request.class == Class::Delete && self.origin.protocol.tells_what_was_removed()
    }

    /// Keeps the reply of a child that has removed something, or had nothing to remove. Returns its outcome,
    /// and how many replies have had it by now.
    pub(super) fn keep_removed(&mut self, reply: &Reply, bytes: &[u8]) -> (Outcome, u32) {
        let protocol = self.origin.protocol;
        let is_miss = protocol.is_miss(self.origin.form, &self.request, &self.message, bytes);
        let outcome = if is_miss { Outcome::NotFound } else { reply.outcome };
        let number = protocol.number(reply, bytes);
        let reply = &Reply { outcome, ..*reply };
        let count = self.answers.keep_greatest(&Answer::Reply(reply, bytes), number);
        (outcome, count)
    }

    /// Bytes of memory that the flight takes.
    pub fn memory_bytes(&self) -> usize {
        let run = self.run.as_ref().map_or(0, |run| run.memory_bytes());
        let group = self.group.as_ref().map_or(0, |group| group.memory());
        let steps = self.steps.as_ref().map_or(0, |steps| steps.memory());
        size_of::<Self>() + self.message.capacity() + self.answers.memory_bytes() + steps + run + group
    }
}

impl Entry for Flight {
    type Kind = ids::FlightKind;

    fn generation(&self) -> u32 {
        self.generation
    }
}

/// All flights of one worker. Ended flights leave their buffers to later ones.
#[derive(Default)]
pub struct Flights {
    table: Table<Flight>,
    recycled: Vec<(Vec<u8>, Answers)>,
    /// Bytes that requests which are served in steps hold of what they have read.
    in_steps: usize,
}

/// Buffers of more bytes than this are freed, not recycled.
const RECYCLED_BYTES: usize = 4 * 1024;
/// The number of flights whose buffers are kept.
const RECYCLED_COUNT: usize = 1024;

impl Flights {
    /// Opens a flight that waits for `pending` replies, for the request of this walk, which has come to
    /// `node`.
    pub fn open(&mut self, node: NodeId, walk: &Walk<'_>, pending: u32) -> (FlightId, &mut Flight) {
        let (message, answers) = self.recycled.pop().unwrap_or_default();
        let id = self.table.insert(|generation| Flight {
            generation,
            parent: walk.to,
            tree: Rc::clone(walk.tree),
            node,
            origin: walk.origin,
            request: *walk.request,
            message,
            tried: AttemptRecord::first(0),
            until: Micros::ZERO,
            pending,
            done: false,
            answers,
            steps: None,
            run: None,
            group: None,
        });
        let flight = self.table.get_mut(id);
        (id, flight.expect("it was inserted just now"))
    }

    /// The flight of this identifier; `None`: it has ended.
    pub fn get(&mut self, id: FlightId) -> Option<&mut Flight> {
        self.table.get_mut(id)
    }

    /// The flight of this identifier, read-only; `None`: it has ended.
    pub fn peek(&self, id: FlightId) -> Option<&Flight> {
        self.table.get(id)
    }

    /// Notes that a request which is served in steps holds `after` bytes instead of `before`. Returns what
    /// all of them hold.
    pub(super) fn in_steps(&mut self, before: usize, after: usize) -> usize {
        self.in_steps = self.in_steps + after - before;
        self.in_steps
    }

    /// Ends a flight; late replies to it find nothing.
    pub fn close(&mut self, id: FlightId) {
        if let Some(flight) = self.take(id) {
            self.recycle(flight);
        }
    }

    /// Ends a flight, and returns what it was; late replies to it find nothing.
    pub(super) fn take(&mut self, id: FlightId) -> Option<Flight> {
        let flight = self.table.remove(id)?;
        if let Some(run) = &flight.run {
            self.in_steps -= run.memory_bytes();
        }
        Some(flight)
    }

    /// Keeps the buffers of a flight that has ended for later ones.
    pub(super) fn recycle(&mut self, flight: Flight) {
        let (mut message, mut answers) = (flight.message, flight.answers);
        if self.recycled.len() < RECYCLED_COUNT
            && message.capacity() + answers.memory_bytes() <= RECYCLED_BYTES
        {
            message.clear();
            answers.clear();
            self.recycled.push((message, answers));
        }
    }

    /// All flights.
    pub fn iter(&self) -> impl Iterator<Item = &Flight> {
        self.table.iter().map(|(_, flight)| flight)
    }

    /// The number of flights.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Is there no flight?
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}

/// The destination of replies for one child of a flight.
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
