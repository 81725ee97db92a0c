//! Words of a pool that all workers read and raise, without a lock: a count, and how much of what was counted
//! each member has.
//!
//! The state of a pool whose members follow each other counts what has happened at one of them. Before
//! another one is asked for a sign that it has all of that, the count is noted ([`ReachedCount::mark`]); when
//! the sign has come, the member has what was counted by then ([`ReachedCount::raise`]). Where signs are
//! counted as well, one with a higher number than a moment's count was asked for after that moment.

use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering::SeqCst},
};

use tokio::sync::{Notify, futures::Notified};

/// A count of what has happened in a pool. It stays with the pool when that gets other settings.
#[derive(Clone, Debug, Default)]
pub struct PoolCount(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted {
    last: AtomicU64,
    /// The number of the last change.
    change: AtomicU64,
}

/// The part of the [count](PoolCount) that one member has. A member that has become another server, or was
/// emptied, has nothing: it is another incarnation.
///
/// Invariant: what an earlier incarnation has reached is never taken for what this one has, however late the
/// sign for it comes. Invariant: it never sinks while the incarnation is the same.
#[derive(Clone, Debug, Default)]
pub struct ReachedCount(Arc<Reached>);

#[derive(Debug, Default)]
struct Reached {
    /// The number of the incarnation, and what that has.
    word: AtomicU64,
    /// The time since 1970, in µs, at which the latest sign was asked for that has come; 0 without one.
    signed: AtomicU64,
    /// The time since 1970, in µs, at which the sign was asked for that requests wait for; 0 without one.
    awaited: AtomicU64,
}

/// One word that the state of a pool keeps for a member, as long as anything refers to that: what the state
/// has found out about it, in the codec's words. 0 before it has found out anything.
#[derive(Clone, Debug, Default)]
pub struct MemberNote(Arc<(AtomicU32, Notify)>);

/// The count that a member will have reached when it has given a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u64);

/// A word has the number of the incarnation above these bits, and below it what that has. At a million
/// changes a second the count would take nine years to fill them. The incarnation has 16 bits: a sign would
/// have to come 65,536 incarnations late.
const COUNT_BITS: u32 = 48;
const COUNT: u64 = (1 << COUNT_BITS) - 1;

impl MemberNote {
    /// The last note.
    #[inline]
    pub fn get(&self) -> u32 {
        self.0.0.load(SeqCst)
    }

    /// Notes this in place of what was noted before.
    pub fn set(&self, word: u32) {
        self.0.0.store(word, SeqCst);
    }

    /// An observation about the member does not fit the note: the member is asked now, and not when its next
    /// question is due.
    pub fn doubt(&self) {
        self.0.1.notify_waiters();
    }

    /// Is ready when there was a [doubt](Self::doubt) since this call.
    pub fn doubted(&self) -> Notified<'_> {
        self.0.1.notified()
    }
}

impl PoolCount {
    /// The count so far.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.last.load(SeqCst)
    }

    /// Counts one more. Returns the count with it.
    #[inline]
    pub fn raise(&self) -> u64 {
        self.0.last.fetch_add(1, SeqCst) + 1
    }

    /// Counts a change, which others may have to see. Returns the count with it.
    #[inline]
    pub fn change(&self) -> u64 {
        let number = self.raise();
        self.0.change.fetch_max(number, SeqCst);
        number
    }

    /// The count with the last change; 0 before there was one.
    #[inline]
    pub fn changed(&self) -> u64 {
        self.0.change.load(SeqCst)
    }

    /// Is this the count of the same pool?
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl ReachedCount {
    /// The count that the member has reached.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.word.load(SeqCst) & COUNT
    }

    /// The number of the incarnation, which is another one after each [new beginning](Self::begin_anew).
    #[inline]
    pub fn incarnation(&self) -> u16 {
        (self.0.word.load(SeqCst) >> COUNT_BITS) as u16
    }

    /// Is this the word of the same member?
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The time since 1970, in µs, at which the member was asked for the latest sign that it has given; 0 if
    /// this incarnation has given none.
    #[inline]
    pub fn signed(&self) -> u64 {
        self.0.signed.load(SeqCst)
    }

    /// A sign for which requests wait is about to be asked for, at this time since 1970 in µs. Returns `false`
    /// if one is awaited already.
    pub fn begin_wait(&self, unix: u64) -> bool {
        self.0
            .awaited
            .compare_exchange(0, unix.max(1), SeqCst, SeqCst)
            .is_ok()
    }

    /// The time since 1970, in µs, at which the sign was asked for that is awaited; `None` if none is.
    #[inline]
    pub fn awaits(&self) -> Option<u64> {
        Some(self.0.awaited.load(SeqCst)).filter(|&since| since > 0)
    }

    /// The sign that was [awaited](Self::begin_wait) will not come. Until [another one](Self::end_wait) comes,
    /// nobody waits for one.
    pub fn fail_wait(&self) {
        self.0.awaited.store(1, SeqCst);
    }

    /// The sign that was [awaited](Self::begin_wait) has come, or another one. Returns the time at which it was
    /// asked for.
    pub fn end_wait(&self) -> u64 {
        self.0.awaited.swap(0, SeqCst)
    }

    /// The count that this incarnation will have reached when it has given the sign that it is asked for
    /// next. `count`: that of the pool now.
    pub fn mark(&self, count: u64) -> Mark {
        Mark(self.0.word.load(SeqCst) & !COUNT | count & COUNT)
    }

    /// The sign has come for which this was noted. Returns whether it counts: the member may be another
    /// incarnation since.
    pub fn raise(&self, Mark(mark): Mark) -> bool {
        let raised = self.0.word.fetch_update(SeqCst, SeqCst, |word| {
            let is_same = word & !COUNT == mark & !COUNT;
            is_same.then_some(word.max(mark))
        });
        raised.is_ok()
    }

    /// The same for a sign that was asked for at this time since 1970, in µs.
    pub fn raise_since(&self, mark: Mark, unix: u64) -> bool {
        let raised = self.raise(mark);
        if raised {
            self.0.signed.fetch_max(unix, SeqCst);
        }
        raised
    }

    /// Resets the state for a new incarnation of the member. It is called before a connection to that is
    /// used.
    pub fn begin_anew(&self) {
        let next = |word: u64| Some((word >> COUNT_BITS).wrapping_add(1) << COUNT_BITS);
        let _ = self.0.word.fetch_update(SeqCst, SeqCst, next);
        self.0.signed.store(0, SeqCst);
    }
}

impl Mark {
    /// The mark as the token of a [question](super::PoolQuestion).
    pub const fn token(self) -> u64 {
        self.0
    }

    /// The mark of this token.
    pub const fn of(token: u64) -> Self {
        Self(token)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn only_signs_of_the_same_incarnation_count_and_none_lowers_it() {
        let reached = ReachedCount::default();
        let (early, late) = (reached.mark(3), reached.mark(7));
        assert!(reached.raise(late) && reached.raise(early));
        assert_eq!(reached.get(), 7);
        reached.begin_anew();
        assert_eq!(reached.get(), 0);
        assert!(!reached.raise(late) && reached.get() == 0);
        let mark = Mark::of(reached.mark(9).token());
        assert!(reached.raise(mark) && reached.get() == 9);
        for _ in 0..1 << 16 {
            reached.begin_anew();
            assert!(!reached.raise(mark) || reached.get() == 9);
        }
    }

    #[test]
    fn one_sign_is_awaited_at_a_time_and_none_behind_one_that_failed() {
        let reached = ReachedCount::default();
        assert!(reached.awaits().is_none() && reached.begin_wait(5));
        assert!(!reached.begin_wait(6) && reached.awaits() == Some(5));
        assert_eq!((reached.end_wait(), reached.awaits()), (5, None));
        assert!(reached.begin_wait(7));
        reached.fail_wait();
        assert!(!reached.begin_wait(8) && reached.awaits().is_some_and(|since| since < 7));
        reached.end_wait();
        assert!(reached.begin_wait(9));
    }

    #[test]
    fn a_change_is_the_last_one_until_the_next_whatever_else_is_counted() {
        let count = PoolCount::default();
        assert_eq!((count.change(), count.raise(), count.changed()), (1, 2, 1));
        assert_eq!((count.change(), count.changed(), count.get()), (3, 3, 3));
        assert!(count.is_same(&count.clone()) && !count.is_same(&PoolCount::default()));
    }

    #[test]
    fn threads_lose_no_count_and_lower_nothing() {
        let (count, reached) = (PoolCount::default(), ReachedCount::default());
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        let mark = reached.mark(count.raise());
                        let before = reached.get();
                        assert!(reached.raise(mark) && reached.get() >= before);
                    }
                });
            }
        });
        assert_eq!((count.get(), reached.get()), (40_000, 40_000));
    }

    /// The steps of a writer, of a sign, of a reader and of a member that becomes another server.
    const STEPS: [usize; 4] = [3, 3, 3, 2];
    const WRITER: usize = 0;
    const SIGN: usize = 1;
    const READER: usize = 2;
    const OTHER: usize = 3;

    /// The rules that are kept to.
    #[derive(Clone, Copy)]
    struct Keeps {
        /// A write is counted before its client is told of it.
        counted_first: bool,
        /// The count is noted before the sign is asked for.
        marked_first: bool,
        /// A sign counts for its incarnation alone.
        by_incarnation: bool,
        /// A new incarnation is known before a connection to it is used.
        known_first: bool,
    }

    const ALL: Keeps = Keeps {
        counted_first: true,
        marked_first: true,
        by_incarnation: true,
        known_first: true,
    };

    /// One pool with one writer and one follower, and what its clients know.
    #[derive(Default)]
    struct World {
        count: PoolCount,
        reached: ReachedCount,
        /// Writes that the writer has, and those that the follower has.
        written: u64,
        followed: u64,
        /// The number of times that the follower has become another server, and that number as the
        /// connections in use know it.
        server: u32,
        connected: u32,
        /// The count that a client was told of, which its reads need.
        told: u64,
        needs: u64,
        /// The sign that is under way: what is noted, and the server that is asked.
        noted: u64,
        mark: Option<Mark>,
        asked: u32,
        has_answered: bool,
        /// The reader: what it must see and may need, and the server that it was sent to.
        must_see: u64,
        may_need: u64,
    }

    impl World {
        /// Takes this step. Returns whether a read was stale.
        fn step(&mut self, who: usize, step: usize, keeps: Keeps) -> bool {
            match (who, step) {
                (WRITER, 0) => self.written += 1,
                (WRITER, 1) if keeps.counted_first => self.needs = self.count.raise(),
                (WRITER, 1) => self.told = self.written,
                (WRITER, _) if keeps.counted_first => self.told = self.written,
                (WRITER, _) => self.needs = self.count.raise(),
                (SIGN, 0) => {
                    self.asked = self.connected;
                    if keeps.marked_first {
                        self.note();
                    }
                }
                (SIGN, 1) => {
                    self.has_answered = self.asked == self.server;
                    if self.has_answered {
                        self.followed = self.written;
                    }
                }
                (SIGN, _) if self.has_answered => {
                    if !keeps.marked_first {
                        self.note();
                    }
                    if !keeps.by_incarnation {
                        self.mark = Some(self.reached.mark(self.noted));
                    }
                    self.reached.raise(self.mark.unwrap());
                }
                (SIGN, _) => {}
                (READER, 0) => (self.must_see, self.may_need) = (self.told, self.needs),
                (READER, 1) => {}
                // A connection to a server that is gone answers nothing.
                (READER, _) if self.reached.get() >= self.may_need && self.connected == self.server => {
                    return self.followed < self.must_see;
                }
                (READER, _) => {}
                (OTHER, 0) => {
                    self.followed = 0;
                    self.server += 1;
                    if !keeps.known_first {
                        self.connected = self.server;
                    }
                }
                (_, _) => {
                    self.reached.begin_anew();
                    self.connected = self.server;
                }
            }
            false
        }

        fn note(&mut self) {
            self.noted = self.count.get();
            self.mark = Some(self.reached.mark(self.noted));
        }
    }

    /// The number of interleavings with a stale read, and of all.
    fn stale(keeps: Keeps) -> (usize, usize) {
        fn go(order: &mut Vec<usize>, left: [usize; 4], keeps: Keeps, found: &mut (usize, usize)) {
            if left == [0; 4] {
                let (mut world, mut taken) = (World::default(), [0; 4]);
                let is_stale = order.iter().any(|&who| {
                    taken[who] += 1;
                    world.step(who, taken[who] - 1, keeps)
                });
                *found = (found.0 + usize::from(is_stale), found.1 + 1);
                return;
            }
            for who in 0..4 {
                if left[who] > 0 {
                    let mut left = left;
                    left[who] -= 1;
                    order.push(who);
                    go(order, left, keeps, found);
                    order.pop();
                }
            }
        }
        let mut found = (0, 0);
        go(&mut Vec::new(), STEPS, keeps, &mut found);
        found
    }

    #[test]
    fn no_interleaving_has_a_stale_read_and_each_rule_is_needed() {
        assert_eq!(stale(ALL), (0, 92_400));
        let without = [
            Keeps {
                counted_first: false,
                ..ALL
            },
            Keeps {
                marked_first: false,
                ..ALL
            },
            Keeps {
                by_incarnation: false,
                ..ALL
            },
            Keeps {
                known_first: false,
                ..ALL
            },
        ];
        for (rule, keeps) in without.into_iter().enumerate() {
            assert!(stale(keeps).0 > 0, "rule {rule} is not needed");
        }
    }
}
