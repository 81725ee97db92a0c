//! The readers of one worker that wait for one answer.

use std::collections::HashMap;

use proxima_wire::message::Request;

use crate::{
    engine::{FlightId, ReplyTo},
    micros::Micros,
    near::{BuildKeyHasher, Fill, OwnedQuestion, Question, StoredValue},
    route::{Origin, Walk},
};

/// Readers that wait for one answer.
pub(in crate::route) struct Group {
    awaited: Awaited,
    /// What it is found by.
    pub(in crate::route) identity: u64,
    /// When it was asked for.
    pub(in crate::route) since: Micros,
    pub(in crate::route) readers: Readers,
    /// The kept value that an origin may confirm. `None`: nothing is kept, or no origin is asked.
    pub(in crate::route) old: Option<StoredValue>,
}

/// What a group waits for.
enum Awaited {
    /// What is fetched for it.
    Fill(Fill),
    /// What another worker fetches, or what is fetched and not kept.
    Other(OwnedQuestion),
}

/// Readers, in the order in which they have come. Most groups have one.
#[derive(Default)]
pub(in crate::route) struct Readers {
    first: Option<Reader>,
    more: Vec<Reader>,
}

/// A reader that waits.
pub(in crate::route) struct Reader {
    pub(in crate::route) to: ReplyTo,
    pub(in crate::route) origin: Origin,
    /// Its own request, where that is not the one that was sent.
    pub(in crate::route) own: Option<Box<(Request, Box<[u8]>)>>,
}

impl Reader {
    /// The reader of this walk, whose request is the one that is sent.
    pub(in crate::route) const fn of(walk: &Walk<'_>) -> Self {
        Self {
            to: walk.to,
            origin: walk.origin,
            own: None,
        }
    }

    /// The reader of this walk, whose request differs in bytes from the one that was sent, or not.
    pub(in crate::route) fn beside(walk: &Walk<'_>, sent: &[u8]) -> Self {
        let differs = walk.message != sent;
        Self {
            own: differs.then(|| Box::new((*walk.request, walk.message.into()))),
            ..Self::of(walk)
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

    /// Bytes of memory beside itself.
    fn memory(&self) -> usize {
        self.own
            .as_ref()
            .map_or(0, |own| size_of_val(&**own) + own.1.len())
    }
}

impl Readers {
    /// At most one reader.
    pub(in crate::route) const fn of(first: Option<Reader>) -> Self {
        Self {
            first,
            more: Vec::new(),
        }
    }

    pub(in crate::route) fn push(&mut self, reader: Reader) {
        match self.first {
            None => self.first = Some(reader),
            Some(_) => self.more.push(reader),
        }
    }

    pub(in crate::route) const fn len(&self) -> usize {
        self.more.len() + self.first.is_some() as usize
    }

    pub(in crate::route) fn iter(&self) -> impl Iterator<Item = &Reader> {
        self.first.iter().chain(&self.more)
    }

    /// Bytes of memory beside itself.
    fn memory(&self) -> usize {
        self.iter().map(Reader::memory).sum::<usize>() + self.more.capacity() * size_of::<Reader>()
    }
}

impl Group {
    /// A group that waits for what this fill fetches.
    pub(in crate::route) const fn of(fill: Fill, readers: Readers, since: Micros) -> Self {
        let identity = fill.identity();
        Self {
            awaited: Awaited::Fill(fill),
            identity,
            since,
            readers,
            old: None,
        }
    }

    /// A group that waits for what another worker fetches.
    pub(in crate::route) const fn waiting(
        asked: OwnedQuestion,
        identity: u64,
        readers: Readers,
        since: Micros,
    ) -> Self {
        Self {
            awaited: Awaited::Other(asked),
            identity,
            since,
            readers,
            old: None,
        }
    }

    /// From now on it waits for what this fill fetches.
    pub(in crate::route) fn fetch(&mut self, fill: Fill) {
        self.awaited = Awaited::Fill(fill);
    }

    /// What is being fetched to be kept. `None`: nothing is.
    pub(in crate::route) const fn fill(&self) -> Option<&Fill> {
        match &self.awaited {
            Awaited::Fill(fill) => Some(fill),
            Awaited::Other(_) => None,
        }
    }

    /// What is being fetched to be kept, to end it. `None`: nothing is.
    pub(in crate::route) const fn fill_mut(&mut self) -> Option<&mut Fill> {
        match &mut self.awaited {
            Awaited::Fill(fill) => Some(fill),
            Awaited::Other(_) => None,
        }
    }

    fn asked(&self) -> &OwnedQuestion {
        match &self.awaited {
            Awaited::Fill(fill) => fill.asked(),
            Awaited::Other(asked) => asked,
        }
    }

    pub(in crate::route) fn question(&self) -> Question<'_> {
        self.asked().question()
    }

    /// May a reader that comes now with this question have the group's answer?
    pub(in crate::route) fn admits(&self, question: &Question<'_>) -> bool {
        // What another worker fetches is looked at again before anybody gets it.
        self.asked().is(question) && self.fill().is_none_or(Fill::may_be_joined)
    }

    /// The largest reply that it takes, in bytes.
    pub(in crate::route) fn largest(&self) -> u64 {
        self.question().rule.settings().largest
    }

    /// Bytes of memory.
    pub(in crate::route) fn memory(&self) -> usize {
        size_of::<Self>() + self.asked().memory() + self.readers.memory()
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
