//! What gather, attempt and some wraps remember while they wait: a few words per request, in a slab of the worker.

use std::rc::Rc;

use proxima_wire::message::{Outcome, Request};
use slab::Slab;

use super::{Answers, NodeId, Tree};
use crate::{
    dialect::Dialect,
    members::{MemberId, copies::Claim},
};

/// Whom a reply is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyTo {
    /// Slot `seq` of a client. The generation tells it from the one that had its place before.
    Client { index: u32, generation: u32, seq: u32 },
    /// Child number `child` of a gather, an attempt or a wrap.
    Flight { index: u32, generation: u32, child: u32 },
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
    /// What is spoken there.
    pub dialect: &'static dyn Dialect,
}

/// A node that waits for replies.
pub struct Flight {
    generation: u32,
    /// Whom its own reply is for.
    pub parent: ReplyTo,
    /// The tree it began in: a reload does not change the rules under a request.
    pub tree: Rc<Tree>,
    pub node: NodeId,
    pub origin: Origin,
    pub request: Request,
    /// The request's bytes (of a streamed one the head), where they may be needed again.
    pub message: Vec<u8>,
    /// Replies still to come.
    pub pending: u32,
    /// The parent has its answer; what still comes is dropped.
    pub done: bool,
    /// What is kept for the rule.
    pub answers: Answers,
}

/// What a change of all copies remembers besides.
#[derive(Default)]
pub struct Change {
    /// How far it is.
    pub stage: Stage,
    /// Its key; given back with the flight.
    pub claim: Option<Claim>,
    /// Copies that do not have the change, and how often they had been out by then.
    pub missed: Vec<(MemberId, Option<u32>)>,
    /// Copies that the change could not be sent to for want of our own means.
    pub unsent: Vec<MemberId>,
    /// How many copies have answered.
    pub landed: u32,
    /// Microseconds: since when it waits for what it waits for.
    pub since: u64,
}

/// How far a change of all copies is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// All at once.
    #[default]
    Everywhere,
    /// Waits until the key is claimed, and its home is not changing hands.
    Waiting,
    /// No change, but a look at this child, the key's home: for the version that a later change will name.
    Looking(u32),
    /// Asked at this child.
    Home(u32),
    /// Decided at this child, being passed on to the others.
    Elsewhere(u32),
    /// Refused, being removed where it landed.
    Undoing,
}

impl Flight {
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Bytes of memory that it takes.
    pub fn holds(&self) -> usize {
        size_of::<Self>() + self.message.capacity() + self.answers.holds()
    }
}

/// All flights of one worker. Freed ones keep their buffers for the next.
#[derive(Default)]
pub struct Flights {
    slab: Slab<(Flight, Option<Change>)>,
    generation: u32,
    spare: Vec<(Vec<u8>, Answers)>,
}

/// Buffers beyond this are not worth keeping.
const SPARE_BYTES: usize = 4 * 1024;
const SPARE_COUNT: usize = 1024;

impl Flights {
    /// A new flight of `pending` replies.
    pub fn open(
        &mut self,
        parent: ReplyTo,
        tree: Rc<Tree>,
        node: NodeId,
        origin: Origin,
        request: &Request,
        pending: u32,
    ) -> (u32, &mut Flight) {
        self.generation = self.generation.wrapping_add(1);
        let (message, answers) = self.spare.pop().unwrap_or_default();
        let flight = Flight {
            generation: self.generation,
            parent,
            tree,
            node,
            origin,
            request: *request,
            message,
            pending,
            done: false,
            answers,
        };
        let index = self.slab.insert((flight, None));
        (index as u32, &mut self.slab[index].0)
    }

    /// The flight that was just opened is a change of all copies.
    pub fn becomes(&mut self, index: u32, change: Change) {
        if let Some((_, kind)) = self.slab.get_mut(index as usize) {
            *kind = Some(change);
        }
    }

    /// The address of one child of a flight.
    pub fn child(&self, index: u32, child: usize) -> ReplyTo {
        match self.slab.get(index as usize) {
            Some((flight, _)) => ReplyTo::Flight {
                index,
                generation: flight.generation,
                child: child as u32,
            },
            None => ReplyTo::Nobody,
        }
    }

    pub fn get(&mut self, index: u32, generation: u32) -> Option<&mut Flight> {
        let (flight, _) = self.slab.get_mut(index as usize)?;
        (flight.generation == generation).then_some(flight)
    }

    /// One that is a change of all copies.
    pub fn change(&mut self, index: u32, generation: u32) -> Option<(&mut Flight, &mut Change)> {
        let (flight, change) = self.slab.get_mut(index as usize)?;
        let change = change.as_mut().filter(|_| flight.generation == generation)?;
        Some((flight, change))
    }

    /// Ends a flight; late replies to it find nobody.
    pub fn close(&mut self, index: u32) {
        let Some((flight, _)) = self.slab.try_remove(index as usize) else {
            return;
        };
        let (mut message, mut answers) = (flight.message, flight.answers);
        if self.spare.len() < SPARE_COUNT && message.capacity() + answers.holds() <= SPARE_BYTES {
            message.clear();
            answers.clear();
            self.spare.push((message, answers));
        }
    }

    /// All of them, with their indices.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Flight)> {
        self.slab
            .iter()
            .map(|(index, (flight, _))| (index as u32, flight))
    }

    /// Those that are changes of all copies.
    pub fn changes(&self) -> impl Iterator<Item = (u32, &Flight, &Change)> {
        let all = self.slab.iter();
        all.filter_map(|(index, (flight, change))| Some((index as u32, flight, change.as_ref()?)))
    }

    pub fn len(&self) -> usize {
        self.slab.len()
    }

    pub fn is_empty(&self) -> bool {
        self.slab.is_empty()
    }
}

/// Is this outcome one that a gather for the fastest reply takes at once?
pub(super) fn is_good(outcome: Outcome) -> bool {
    !outcome.is_failover()
}
