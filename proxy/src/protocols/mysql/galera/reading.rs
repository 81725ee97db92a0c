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
    Consistency, HoldLimit, MemberFacts, OneWriter, PoolCount, PoolMembers, PoolQuestion, PoolRequest, Role,
};
use crate::protocols::mysql::{
    commands::{self, append_query},
    found::consistency,
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
    /// Reads that a reader was given, and those that none could be given.
    at_reader: AtomicU64,
    at_writer: AtomicU64,
}

/// A reader that may be asked.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    member: MemberFacts<'a>,
    /// It has what the read must see.
    has_all: bool,
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
            at_reader: AtomicU64::new(0),
            at_writer: AtomicU64::new(0),
        }
    }

    /// The time for which a read waits.
    pub(super) fn limit(&self) -> HoldLimit {
        HoldLimit {
            time: Duration::from_micros(self.wait),
            ..HoldLimit::DEFAULT
        }
    }

    /// The count of the pool's writes and barriers.
    pub(super) fn count(&self) -> &PoolCount {
        &self.count
    }

    /// Must this read wait? Not one that waits where it runs, nor one whose session has a connection, nor one
    /// for which a reader has what it must see. If none may have that soon, it goes to the writer, if there is
    /// one.
    pub(super) fn waits(
        &self,
        asked: &PoolRequest<'_>,
        writer: Option<usize>,
        members: &dyn PoolMembers,
    ) -> bool {
        if consistency(asked.request) == Consistency::Strict || asked.session.has_lane() {
            return false;
        }
        let nearest = self.nearest(writer, asked, members);
        let mut is_awaited = false;
        for at in 0..members.count() {
            match self.candidate(at, nearest, writer, asked, members) {
                Some(one) if one.has_all => return false,
                Some(one) => is_awaited |= self.is_worth_waiting(&one, asked),
                None => {}
            }
        }
        let has_time = asked.unix.saturating_sub(asked.since) < self.wait;
        writer.is_none() || has_time && is_awaited
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
        // Before a look at what is under way: the answer to that wakes this read, or another barrier is asked for.
        self.has_waiters.store(true, SeqCst);
        let nearest = self.nearest(writer, asked, members);
        let member = self.in_turn(members, |at| {
            let one = self.candidate(at, nearest, writer, asked, members)?;
            one.member.reached.awaits().is_none().then_some(one.member.weight)
        })?;
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
            is_patient: true,
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
        let nearest = self.nearest(writer, asked, members);
        let found = self.in_turn(members, |at| {
            let one = self.candidate(at, nearest, writer, asked, members)?;
            one.has_all.then_some(one.member.weight)
        });
        if consistency(asked.request) != Consistency::Strict {
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

    /// The place of this read's reader: the session's own, if that is one of the nearest that serve, and else
    /// any of those. `None` if no reader serves.
    fn nearest(
        &self,
        writer: Option<usize>,
        asked: &PoolRequest<'_>,
        members: &dyn PoolMembers,
    ) -> Option<Nearest> {
        let serving = |at: usize| Some((at, self.serving(at, writer, members)?));
        let all = || (0..members.count()).filter_map(serving);
        let distance = all().map(|(_, member)| member.distance).min()?;
        let keeps = matches!(
            consistency(asked.request),
            Consistency::Session | Consistency::Causal
        );
        let seen = Client::of(asked.session)
            .filter(|_| keeps)
            .map(|client| &client.seen);
        let own = seen.and_then(|seen| {
            all().find(|(_, member)| member.distance == distance && seen.is_at(member.reached))
        });
        // One that lags is left: another one may have everything.
        let own = own.filter(|(_, member)| {
            let has_all = self.has_all(member, asked);
            has_all
                || self.is_worth_waiting(
                    &Candidate {
                        member: *member,
                        has_all,
                    },
                    asked,
                )
        });
        Some(Nearest {
            distance,
            own: own.map(|(at, _)| at),
        })
    }

    /// The member at this position, if it serves reads.
    fn serving<'a>(
        &self,
        at: usize,
        writer: Option<usize>,
        members: &'a dyn PoolMembers,
    ) -> Option<MemberFacts<'a>> {
        let member = members.at(at)?;
        let may_read = writer != Some(at) || self.serves_at_writer;
        let serves = may_read && member.is_up && Word(member.noted.get()).serves();
        (serves && member.weight > 0.0).then_some(member)
    }

    fn candidate<'a>(
        &self,
        at: usize,
        nearest: Option<Nearest>,
        writer: Option<usize>,
        asked: &PoolRequest<'_>,
        members: &'a dyn PoolMembers,
    ) -> Option<Candidate<'a>> {
        let nearest = nearest.filter(|nearest| nearest.own.is_none_or(|own| own == at))?;
        let member = self.serving(at, writer, members)?;
        (member.distance == nearest.distance).then(|| Candidate {
            member,
            has_all: writer == Some(at) || self.has_all(&member, asked),
        })
    }

    /// Has this reader what the read must see? The writer has.
    fn has_all(&self, member: &MemberFacts<'_>, asked: &PoolRequest<'_>) -> bool {
        let word = consistency(asked.request);
        if word == Consistency::Strict {
            // The statement itself waits there.
            return true;
        }
        if asked.unix.saturating_sub(member.reached.signed()) > self.age {
            return false;
        }
        let none = Seen::default();
        let seen = Client::of(asked.session).map_or(&none, |client| &client.seen);
        let own = || seen.needs(member.reached, &self.count);
        let needed = match word {
            Consistency::Eventual => Some(0),
            Consistency::Session => own(),
            Consistency::Causal | Consistency::Strict => {
                own().map(|need| need.max(seen.arrived(&self.count)))
            }
        };
        needed.is_some_and(|needed| member.reached.get() >= needed)
    }

    /// May this reader have soon what it lacks? One whose barrier is late may be cut off from the others; for
    /// a session that has used another pool, no barrier is enough.
    fn is_worth_waiting(&self, one: &Candidate<'_>, asked: &PoolRequest<'_>) -> bool {
        let late = |since: u64| asked.unix.saturating_sub(since) >= self.wait;
        let is_known = Client::of(asked.session)
            .is_none_or(|client| client.seen.needs(one.member.reached, &self.count).is_some());
        let waits = consistency(asked.request) != Consistency::Eventual;
        waits && is_known && !one.member.reached.awaits().is_some_and(late)
    }

    /// One of those that have a weight, each in its turn.
    fn in_turn(&self, members: &dyn PoolMembers, weight: impl Fn(usize) -> Option<f64>) -> Option<usize> {
        let all: f64 = (0..members.count()).filter_map(&weight).sum();
        // The turns of the golden ratio are shared out evenly, however few there were.
        let turn = self.turn.fetch_add(1, Relaxed).wrapping_mul(0x9e37_79b9);
        let mut left = all * f64::from(turn) / (f64::from(u32::MAX) + 1.0);
        let mut last = None;
        for at in 0..members.count() {
            let Some(weight) = weight(at) else { continue };
            last = Some(at);
            left -= weight;
            if left < 0.0 {
                break;
            }
        }
        last
    }
}

/// The readers that a read may be given to.
#[derive(Clone, Copy)]
struct Nearest {
    /// Their distance.
    distance: u8,
    /// The only one, to which its session keeps.
    own: Option<usize>,
}
