//! The choice of the server for a read.
//!
//! A reader is asked if it has what the read must see, by the count of the pool and the barriers that the
//! reader has answered. A read that finds none waits for a barrier, for a short time; then it goes to the
//! writer, which has everything. Reads that are `strict` wait where they run.

use std::{
    sync::atomic::{
        AtomicBool, AtomicU32, AtomicU64,
        Ordering::{Relaxed, SeqCst},
    },
    time::Duration,
};

use super::{ASK_PROOF, Word};
use crate::protocol::{
    Consistency, MemberFacts, OneWriter, PoolCount, PoolMembers, PoolQuestion, PoolRequest, Role,
};
use crate::protocols::mysql::{
    commands::{self, append_query},
    found::{consistency, is_blind},
    seen::Seen,
    state::Client,
};

/// What the readers of a pool have, and how often that was not enough.
#[derive(Debug)]
pub(super) struct Reading {
    count: PoolCount,
    wait: u64,
    age: u64,
    serves_at_writer: bool,
    /// The turn of readers.
    turn: AtomicU32,
    /// Reads wait for a barrier.
    has_waiters: AtomicBool,
    /// Another proxy may write, which this one does not count.
    may_have_others: AtomicBool,
    /// Reads that a reader was given, and those that none could be given.
    at_reader: AtomicU64,
    at_writer: AtomicU64,
}

impl Reading {
    /// The readers of a pool with these settings.
    pub(super) fn new(settings: &OneWriter, count: PoolCount) -> Self {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Self {
            count,
            wait: micros(settings.read_wait),
            age: micros(settings.read_age),
            serves_at_writer: settings.reads,
            turn: AtomicU32::new(0),
            has_waiters: AtomicBool::new(false),
            may_have_others: AtomicBool::new(settings.is_only_proxy),
            at_reader: AtomicU64::new(0),
            at_writer: AtomicU64::new(0),
        }
    }

    /// The time for which a read waits, before it goes to the writer.
    pub(super) const fn wait(&self) -> Duration {
        Duration::from_micros(self.wait)
    }

    /// The count of the pool's writes and barriers.
    pub(super) fn count(&self) -> &PoolCount {
        &self.count
    }

    /// Notes whether another proxy may write, in a pool that is said to have one.
    pub(super) fn note_others(&self, may_be: bool) {
        self.may_have_others.store(may_be, SeqCst);
    }

    /// How fresh this read is.
    fn word(&self, asked: &PoolRequest<'_>) -> Consistency {
        match consistency(asked.request) {
            Consistency::Causal if self.may_have_others.load(SeqCst) => Consistency::Strict,
            word => word,
        }
    }

    /// Must this read wait? Not one that waits where it runs, nor one whose session has a connection, nor one
    /// for which a reader has what it must see. If no reader may have that soon, it goes to the writer, if
    /// there is one; so it does if it would have to wait where it runs, and cannot.
    pub(super) fn waits(
        &self,
        asked: &PoolRequest<'_>,
        writer: Option<usize>,
        members: &dyn PoolMembers,
    ) -> bool {
        if asked.session.has_lane() {
            return false;
        }
        if self.word(asked) == Consistency::Strict {
            return is_blind(asked.request) && writer.is_none();
        }
        let look = Look::new(self, asked, writer, members);
        if look.candidates().any(|(at, member)| look.has_all(at, &member)) {
            return false;
        }
        let has_time = asked.unix.saturating_sub(asked.since) < self.wait;
        let mut candidates = look.candidates();
        writer.is_none() || has_time && candidates.any(|(_, member)| look.is_worth_waiting(&member))
    }

    /// Has a reader what this read must see, so that the writer is not asked for it?
    pub(super) fn has_reader(
        &self,
        asked: &PoolRequest<'_>,
        writer: Option<usize>,
        members: &dyn PoolMembers,
    ) -> bool {
        let look = Look::new(self, asked, writer, members);
        let mut readers = look.candidates().filter(|(at, _)| writer != Some(*at));
        readers.any(|(at, member)| look.has_all(at, &member))
    }

    /// Does any server serve this read while no server takes writes?
    pub(super) fn has_candidate(&self, asked: &PoolRequest<'_>, members: &dyn PoolMembers) -> bool {
        Look::new(self, asked, None, members)
            .candidates()
            .next()
            .is_some()
    }

    /// The barrier that one of the readers is asked for, so that this read need not wait for long. All that
    /// wait share it: one is under way for each reader, and those that need a later one ask for that when it
    /// is back.
    pub(super) fn barrier(
        &self,
        asked: &PoolRequest<'_>,
        writer: Option<usize>,
        members: &dyn PoolMembers,
    ) -> Option<PoolQuestion> {
        // Before a look at what is under way: the answer to that wakes this read, or another one is asked for.
        self.has_waiters.store(true, SeqCst);
        let look = Look::new(self, asked, writer, members);
        let rests = |member: &MemberFacts<'_>| member.reached.awaits().is_none();
        let member = self.in_turn(|| look.candidates().filter(|(_, member)| rests(member)))?;
        let reached = members.at(member)?.reached;
        if !reached.begin_wait(asked.unix) {
            return None;
        }
        let mut message = Vec::new();
        append_query(ASK_PROOF, &mut message);
        Some(PoolQuestion {
            member,
            command: commands::MONITOR,
            message,
            // The number is taken before the barrier leaves: what is counted behind it may not be there.
            token: reached.mark(self.count.raise()).token(),
        })
    }

    /// A barrier has come back, or not: do reads wait for that?
    pub(super) fn take_waiters(&self) -> bool {
        self.has_waiters.swap(false, SeqCst)
    }

    /// The reader that this read is given to; `None`: the writer.
    pub(super) fn reader(
        &self,
        asked: &PoolRequest<'_>,
        writer: Option<usize>,
        members: &dyn PoolMembers,
    ) -> Option<usize> {
        let look = Look::new(self, asked, writer, members);
        let found = self.in_turn(|| look.candidates().filter(|(at, member)| look.has_all(*at, member)));
        if look.word != Consistency::Strict {
            let count = match found {
                Some(_) => &self.at_reader,
                None => &self.at_writer,
            };
            count.fetch_add(1, Relaxed);
        }
        found
    }

    /// The numbers of such reads, by the role of the server that they were given to.
    pub(super) fn counts(&self) -> [(Role, u64); 2] {
        [
            (Role::Reader, self.at_reader.load(Relaxed)),
            (Role::Writer, self.at_writer.load(Relaxed)),
        ]
    }

    /// One of these members, each in its turn by its weight.
    fn in_turn<'a, All>(&self, all: impl Fn() -> All) -> Option<usize>
    where
        All: Iterator<Item = (usize, MemberFacts<'a>)>,
    {
        let whole: f64 = all().map(|(_, member)| member.weight).sum();
        // The turns of the golden ratio are shared out evenly, however few there were.
        let turn = self.turn.fetch_add(1, Relaxed).wrapping_mul(0x9e37_79b9);
        let mut left = whole * f64::from(turn) / (f64::from(u32::MAX) + 1.0);
        let mut last = None;
        for (at, member) in all() {
            last = Some(at);
            left -= member.weight;
            if left < 0.0 {
                break;
            }
        }
        last
    }
}

/// A look at the readers for one read.
struct Look<'a> {
    reading: &'a Reading,
    asked: &'a PoolRequest<'a>,
    word: Consistency,
    /// It would wait for nothing at a reader, and must.
    is_blind: bool,
    /// What the session of the read has written and seen; `None` without a session.
    seen: Option<&'a Seen>,
    writer: Option<usize>,
    members: &'a dyn PoolMembers,
    /// The distance of the nearest that serve.
    nearest: Option<u8>,
    /// The only one that may be asked, to which the session keeps.
    own: Option<usize>,
}

impl<'a> Look<'a> {
    fn new(
        reading: &'a Reading,
        asked: &'a PoolRequest<'a>,
        writer: Option<usize>,
        members: &'a dyn PoolMembers,
    ) -> Self {
        let word = reading.word(asked);
        let mut look = Self {
            reading,
            asked,
            word,
            is_blind: word == Consistency::Strict && is_blind(asked.request),
            seen: Client::of(asked.session).map(|client| &client.seen),
            writer,
            members,
            nearest: None,
            own: None,
        };
        look.nearest = look.serving().map(|(_, member)| member.distance).min();
        if matches!(look.word, Consistency::Session | Consistency::Causal) {
            look.own = look.sessions_own();
        }
        look
    }

    /// The reader to which the session keeps, if that is one of the nearest that serve. One that lags is left:
    /// another one may have everything.
    fn sessions_own(&self) -> Option<usize> {
        let seen = self.seen?;
        let (at, member) = self.candidates().find(|(_, member)| seen.is_at(member.reached))?;
        (self.has_all(at, &member) || self.is_worth_waiting(&member)).then_some(at)
    }

    /// The members that serve reads, with their positions.
    fn serving(&self) -> impl Iterator<Item = (usize, MemberFacts<'a>)> {
        let members = self.members;
        let (writer, serves_at_writer) = (self.writer, self.reading.serves_at_writer);
        let is_blind = self.is_blind;
        let serves = move |(at, member): &(usize, MemberFacts<'_>)| {
            let note = Word(member.noted.get());
            // While the writer moves, the one that has taken writes until now is asked for nothing.
            let may_read = match writer == Some(*at) {
                true => serves_at_writer,
                false => !is_blind && (writer.is_some() || !note.writes()),
            };
            may_read && member.is_up && member.weight > 0.0 && note.serves()
        };
        let all = (0..members.count()).filter_map(move |at| Some((at, members.at(at)?)));
        all.filter(serves)
    }

    /// Those of them that may be asked.
    fn candidates(&self) -> impl Iterator<Item = (usize, MemberFacts<'a>)> {
        let (nearest, own) = (self.nearest, self.own);
        self.serving()
            .filter(move |(at, member)| Some(member.distance) == nearest && own.is_none_or(|own| own == *at))
    }

    /// Has this member what the read must see? The writer has.
    fn has_all(&self, at: usize, member: &MemberFacts<'_>) -> bool {
        // A strict statement itself waits there.
        if self.writer == Some(at) || self.word == Consistency::Strict {
            return true;
        }
        if self.asked.unix.saturating_sub(member.reached.signed()) > self.reading.age {
            return false;
        }
        let count = &self.reading.count;
        let needed = match self.seen {
            Some(seen) => seen.needs_for(self.word, member.reached, count),
            None if self.word == Consistency::Causal => Some(count.changed()),
            None => Some(0),
        };
        needed.is_some_and(|needed| member.reached.get() >= needed)
    }

    /// May this reader have soon what it lacks? One whose barrier is late may be cut off from the others; for
    /// a session that has used another pool, no barrier is enough.
    fn is_worth_waiting(&self, member: &MemberFacts<'_>) -> bool {
        let is_known = |seen: &Seen| seen.needs(member.reached, &self.reading.count).is_some();
        let is_late = |since: u64| self.asked.unix.saturating_sub(since) >= self.reading.wait;
        self.word != Consistency::Eventual
            && self.seen.is_none_or(is_known)
            && !member.reached.awaits().is_some_and(is_late)
    }
}
