//! The writes that a session must see, by the count of its pool.
//!
//! The steps are those of a clock: writes are counted before their clients are told of them, and the barriers
//! by which readers prove what they have are counted as well, before they are sent. A reader whose barrier
//! has a higher number than a moment's count has all that was visible anywhere at that moment.
//!
//! A reader may show a write before the server that takes writes has committed it: Galera orders a write
//! before any server does. So that server, which shows all that was acknowledged, is asked for the same proof
//! behind a read elsewhere.
//!
//! Invariant: what a session has written, or was shown, is shown by whatever it reads next.

use crate::protocol::{Consistency, PoolCount, ReachedCount};

/// The writes that a session must see in the pool that it has used last.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// The count of that pool; `None` before the first reply.
    pool: Option<PoolCount>,
    /// The reader that has answered last, and its incarnation. Another server at the same address is another
    /// reader; the connections to the one before have ended when it is asked.
    reader: Option<(ReachedCount, u16)>,
    /// The count that this reader must have reached.
    there: u64,
    /// The count that every other reader must have reached.
    elsewhere: u64,
    /// The count that the server that takes writes must have reached, for what readers have shown.
    at_writer: u64,
    /// The last write that was counted when the statement under way came.
    arrived: u64,
}

impl Seen {
    /// The statement that is answered may have written.
    pub(super) fn write(&mut self, count: &PoolCount) {
        self.enter(count);
        let number = count.change();
        (self.there, self.elsewhere) = (number, number);
    }

    /// A read is answered by the server that takes writes, which shows a write before its own client is told
    /// of it: a reader needs a barrier that begins behind this.
    pub(super) fn read_at_writer(&mut self, count: &PoolCount) {
        self.enter(count);
        let next = count.get() + 1;
        (self.there, self.elsewhere) = (next, next);
    }

    /// A read is answered by this reader, which may have more than any barrier has proved: another one needs
    /// a barrier that begins behind this.
    pub(super) fn read_at(&mut self, reader: &ReachedCount, count: &PoolCount) {
        self.enter(count);
        if !self.is_at(reader) {
            self.there = self.elsewhere;
            self.reader = Some((reader.clone(), reader.incarnation()));
        }
        let next = count.get() + 1;
        self.elsewhere = self.elsewhere.max(next);
        self.at_writer = next;
    }

    /// A statement has come: it need not see what is written from now on.
    pub(super) fn arrive(&mut self) {
        self.arrived = self.pool.as_ref().map_or(0, PoolCount::changed);
    }

    /// The last write that was counted when the statement came. Where that is not known, it is the last one
    /// now.
    pub(super) fn arrived(&self, count: &PoolCount) -> u64 {
        let is_same = self.pool.as_ref().is_some_and(|pool| pool.is_same(count));
        if is_same { self.arrived } else { count.changed() }
    }

    /// Is this the reader that has answered last?
    pub(super) fn is_at(&self, reader: &ReachedCount) -> bool {
        let own = self.reader.as_ref();
        own.is_some_and(|(own, incarnation)| own.is_same(reader) && *incarnation == reader.incarnation())
    }

    /// The count that this reader must have reached. `None`: the session has used another pool, and it is not
    /// known what it has seen in this one.
    pub(super) fn needs(&self, reader: &ReachedCount, count: &PoolCount) -> Option<u64> {
        match &self.pool {
            None => Some(0),
            Some(pool) if !pool.is_same(count) => None,
            Some(_) if self.is_at(reader) => Some(self.there),
            Some(_) => Some(self.elsewhere),
        }
    }

    /// The count that this reader must have reached for a read by this word. `None`: that is not known.
    pub(super) fn needs_for(
        &self,
        word: Consistency,
        reader: &ReachedCount,
        count: &PoolCount,
    ) -> Option<u64> {
        match word {
            Consistency::Eventual => Some(0),
            Consistency::Session => self.needs(reader, count),
            Consistency::Causal | Consistency::Strict => {
                let needed = self.needs(reader, count)?;
                Some(needed.max(self.arrived(count)))
            }
        }
    }

    /// The count that the server that takes writes must have reached for a read by this word. `None`: that is
    /// not known.
    pub(super) fn needs_at_writer(&self, word: Consistency, count: &PoolCount) -> Option<u64> {
        match &self.pool {
            _ if word == Consistency::Eventual => Some(0),
            None => Some(0),
            Some(pool) => pool.is_same(count).then_some(self.at_writer),
        }
    }

    /// The session uses this pool. What it has seen there before is not known if it has used another one
    /// since: no reader has more than what a barrier proves that begins now.
    fn enter(&mut self, count: &PoolCount) {
        match &self.pool {
            Some(pool) if pool.is_same(count) => {}
            before => {
                let next = before.as_ref().map_or(0, |_| count.get() + 1);
                *self = Self {
                    pool: Some(count.clone()),
                    reader: None,
                    there: next,
                    elsewhere: next,
                    at_writer: next,
                    arrived: count.changed(),
                };
            }
        }
    }
}
