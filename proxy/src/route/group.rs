//! The readers of one worker that wait for one answer.

use std::{collections::HashMap, rc::Rc};

use proxima_wire::message::Request;
use smallvec::SmallVec;

use crate::{
    engine::{FlightId, ReplyTo},
    micros::Micros,
    near::{BuildKeyHasher, Fill, OwnedQuestion, Question, StoredValue},
    route::{Origin, Walk},
};

/// Readers that wait for one answer.
pub(in crate::route) struct Group {
    asked: Rc<OwnedQuestion>,
    /// What it is found by.
    pub(in crate::route) identity: u64,
    /// When it was asked for.
    pub(in crate::route) since: Micros,
    /// What is being fetched. `None`: another worker does it.
    pub(in crate::route) fill: Option<Fill>,
    pub(in crate::route) readers: SmallVec<[Reader; 1]>,
    /// The kept value that an origin may confirm. `None`: nothing is kept, or no origin is asked.
    pub(in crate::route) old: Option<StoredValue>,
}

/// A reader that waits.
pub(in crate::route) struct Reader {
    pub(in crate::route) to: ReplyTo,
    pub(in crate::route) origin: Origin,
    /// Its own request, where that is not the one that was sent.
    pub(in crate::route) own: Option<Box<(Request, Box<[u8]>)>>,
}

impl Reader {
    /// The reader of this walk, whose request differs in bytes from the one that was sent, or not.
    pub(in crate::route) fn of(walk: &Walk<'_>, sent: &[u8]) -> Self {
        let differs = walk.message != sent;
        Self {
            to: walk.to,
            origin: walk.origin,
            own: differs.then(|| Box::new((*walk.request, walk.message.into()))),
        }
    }

    /// Is the answer to the request that was sent an answer to this reader, as it is? An error is if the
    /// command is the same.
    pub(in crate::route) fn has_this_answer(&self, sent: &Request, is_error: bool) -> bool {
        match self.own.as_deref() {
            None => true,
            Some((own, _)) => is_error && own.command == sent.command,
        }
    }

    /// The walk of its own request, or of the one that was sent.
    pub(in crate::route) fn walk<'a>(&'a self, sent: &Walk<'a>) -> Walk<'a> {
        let (request, message) = match self.own.as_deref() {
            Some((request, message)) => (request, &**message),
            None => (sent.request, sent.message),
        };
        Walk {
            tree: sent.tree,
            origin: self.origin,
            request,
            message,
            to: self.to,
        }
    }
}

impl Group {
    /// A group that waits for what this fill fetches.
    pub(in crate::route) fn of(fill: Fill, since: Micros) -> Self {
        let (asked, identity) = (Rc::clone(fill.asked()), fill.identity());
        Self {
            fill: Some(fill),
            ..Self::waiting(asked, identity, since)
        }
    }

    /// A group that waits for what another worker fetches.
    pub(in crate::route) fn waiting(asked: Rc<OwnedQuestion>, identity: u64, since: Micros) -> Self {
        Self {
            asked,
            identity,
            since,
            fill: None,
            readers: SmallVec::new(),
            old: None,
        }
    }

    pub(in crate::route) fn question(&self) -> Question<'_> {
        self.asked.question()
    }

    /// May a reader that comes now with this question have the group's answer?
    pub(in crate::route) fn admits(&self, question: &Question<'_>) -> bool {
        // What another worker fetches is looked at again before anybody gets it.
        self.asked.is(question) && self.fill.as_ref().is_none_or(Fill::may_be_joined)
    }

    /// The largest reply that it takes, in bytes.
    pub(in crate::route) fn largest(&self) -> u64 {
        self.question().rule.settings().largest
    }

    /// Bytes of memory.
    pub(in crate::route) fn memory(&self) -> usize {
        let own = |reader: &Reader| {
            reader
                .own
                .as_ref()
                .map_or(0, |own| size_of_val(&**own) + own.1.len())
        };
        let readers = match self.readers.spilled() {
            true => self.readers.capacity() * size_of::<Reader>(),
            false => 0,
        };
        let own: usize = self.readers.iter().map(own).sum();
        size_of::<Self>() + self.asked.memory() + readers + own
    }
}

/// The groups of a worker, by the identity of what they ask.
#[derive(Default)]
pub(in crate::route) struct Groups(HashMap<u64, FlightId, BuildKeyHasher>);

impl Groups {
    pub(in crate::route) fn get(&self, identity: u64) -> Option<FlightId> {
        self.0.get(&identity).copied()
    }

    pub(in crate::route) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(in crate::route) fn insert(&mut self, identity: u64, flight: FlightId) {
        self.0.insert(identity, flight);
    }

    /// Removes this flight's group; a later one of the same question stays.
    pub(in crate::route) fn remove(&mut self, identity: u64, flight: FlightId) {
        if self.get(identity) == Some(flight) {
            self.0.remove(&identity);
        }
    }
}
