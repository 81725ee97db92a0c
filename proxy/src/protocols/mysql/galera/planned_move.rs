//! A planned move: another server takes writes, and no client sees an error.
//!
//! ```text
//!  begun ──▶ emptying ──▶ proving ──▶ done        writes wait from the begin on
//!               │  (time)    │ (time)
//!               ├─ forced ─▶ closing ─▶ proving
//!               └─ not ────▶ given up             the former writer goes on
//! ```
//!
//! One that is held has no aim at first, and is not done before its order says so: proxies that move together are
//! all empty before any of them proves, and have all proved before any of them writes.
//!
//! While it is emptied, no worker gives the former writer anything that writes, and each ends the connections
//! that it has to that: idle ones at once, the others when their transaction is over. When every worker has
//! said so, the new writer is asked for a barrier, and takes writes when it has answered.
//!
//! Invariant: no worker writes at the former writer once any worker writes at the new one.

use std::time::{Duration, Instant};

/// The longest time for the barrier of the new writer, behind the time for the former writer's connections to
/// end.
const PROVING: Duration = Duration::from_secs(2);

/// The longest time for which those who move the writer at several proxies have writes wait.
pub(super) const LONGEST_HOLD: Duration = Duration::from_secs(5);

/// A move that is under way.
#[derive(Clone, Debug)]
pub(super) struct PlannedMove {
    /// Its own number: one order may make several.
    number: u64,
    /// The number of the server that is to take writes; `None`: it is not known yet.
    to: Option<u32>,
    /// The number of the hold by which it waits for a word; `None`: it waits for none.
    hold: Option<u64>,
    /// The time at which the former writer must be empty, and that at which the move must be over.
    until: Instant,
    over: Instant,
    is_forced: bool,
    step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Writes wait.
    Begun,
    /// Each worker ends its connections to the former writer when nothing is under way there.
    Emptying,
    /// Each worker ends what is left.
    Closing,
    /// There are none since then.
    Proving(Instant),
}

/// What has to be done for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing for now.
    Wait,
    /// The connections that are left to the former writer are to end.
    Close,
    /// The new writer takes writes.
    Done,
    /// The former writer goes on, for this reason.
    GiveUp(&'static str),
}

impl PlannedMove {
    /// Begins the move with this number to the server `to`. `within`: the time for the former writer to be
    /// empty, `limit`: the longest time that writes may wait. `earlier`: the move whose place it takes.
    /// Writes wait since that, and it gets no further time.
    pub(super) fn new(
        number: u64,
        to: u32,
        (within, is_forced): (Duration, bool),
        limit: Duration,
        now: Instant,
        earlier: Option<&Self>,
    ) -> Self {
        let until = now + within.min(limit / 2);
        let until = earlier.map_or(until, |earlier| until.min(earlier.until.max(now)));
        Self {
            number,
            to: Some(to),
            hold: None,
            until,
            over: until + PROVING.min(limit / 4),
            is_forced,
            step: Step::Begun,
        }
    }

    /// Begins the move with this number for a hold, whose end comes before the time is over.
    pub(super) fn held(
        number: u64,
        hold: u64,
        (within, limit): (Duration, Duration),
        now: Instant,
        earlier: Option<&Self>,
    ) -> Self {
        Self {
            to: None,
            hold: Some(hold),
            ..Self::new(number, 0, (within, false), limit, now, earlier)
        }
    }

    /// The number of the server that is to take writes; `None`: it is not known yet.
    pub(super) const fn to(&self) -> Option<u32> {
        self.to
    }

    /// Is it the move for this hold?
    pub(super) fn is_for(&self, hold: u64) -> bool {
        self.hold == Some(hold)
    }

    /// Is it one for a hold?
    pub(super) const fn is_held(&self) -> bool {
        self.hold.is_some()
    }

    /// The server that is to take writes is this one, from now on. What it has proved before counts for nothing.
    pub(super) fn aim(&mut self, to: Option<u32>, now: Instant) {
        if self.to != to {
            self.to = to;
            if self.is_empty() {
                self.step = Step::Proving(now);
            }
        }
    }

    /// Has every connection to the former writer ended?
    pub(super) const fn is_empty(&self) -> bool {
        matches!(self.step, Step::Proving(_))
    }

    /// Has the server that is to take writes waited for the others since? `proved` as for [`next`](Self::next).
    pub(super) fn is_proved(&self, proved: Option<Instant>) -> bool {
        matches!((self.step, proved), (Step::Proving(since), Some(proved)) if proved > since)
    }

    /// Is this the move to that server? An order that repeats the one by which it has begun gets no further
    /// time, as writes wait since the first one; it may have less.
    pub(super) fn takes_over(
        &mut self,
        to: u32,
        (within, is_forced): (Duration, bool),
        now: Instant,
    ) -> bool {
        let is_it = self.to == Some(to);
        if is_it {
            self.hold = None;
            self.is_forced = is_forced;
            let saved = self.until.saturating_duration_since(now + within);
            self.until -= saved;
            self.over -= saved;
        }
        is_it
    }

    /// The number of the move, for which connections to the former writer are to end when nothing is under
    /// way on them. It is returned once.
    pub(super) fn begin_emptying(&mut self) -> Option<u64> {
        let is_new = self.step == Step::Begun;
        is_new.then(|| {
            self.step = Step::Emptying;
            self.number
        })
    }

    /// Does the move with this number wait for connections to the former writer to end?
    pub(super) fn is_emptying(&self, number: u64) -> bool {
        self.number == number && matches!(self.step, Step::Emptying | Step::Closing)
    }

    /// In every worker the connections have ended that there were when the move with this number was named.
    pub(super) fn emptied(&mut self, number: u64, now: Instant) {
        if self.is_emptying(number) {
            self.step = Step::Proving(now);
        }
    }

    /// What was left has ended as well.
    pub(super) fn closed(&mut self, now: Instant) {
        if self.step == Step::Closing {
            self.step = Step::Proving(now);
        }
    }

    /// What has to be done now. `proved`: the time at which the new writer was asked for the last barrier
    /// that it has answered.
    pub(super) fn next(&mut self, proved: Option<Instant>, now: Instant) -> Next {
        match self.step {
            Step::Proving(_) if self.is_proved(proved) => Next::Done,
            Step::Proving(_) | Step::Closing if now >= self.over => {
                Next::GiveUp("the server that is to be it has not waited for the others in time")
            }
            Step::Begun | Step::Emptying if now >= self.until && self.is_forced => {
                self.step = Step::Closing;
                Next::Close
            }
            Step::Begun | Step::Emptying if now >= self.until => {
                Next::GiveUp("transactions or sessions still keep connections to the writer")
            }
            _ => Next::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn begun(number: u64, is_forced: bool, limit: Duration, begin: Instant) -> PlannedMove {
        PlannedMove::new(number, 2, (5 * SECOND, is_forced), limit, begin, None)
    }

    #[test]
    fn the_new_writer_takes_writes_behind_a_barrier_that_began_when_the_former_one_was_empty() {
        let begin = Instant::now();
        let mut moving = begun(3, false, 20 * SECOND, begin);
        assert_eq!(moving.next(Some(begin + SECOND), begin + SECOND), Next::Wait);
        assert_eq!(
            (moving.begin_emptying(), moving.begin_emptying()),
            (Some(3), None)
        );
        moving.emptied(2, begin + SECOND);
        assert_eq!(
            moving.next(Some(begin + 3 * SECOND), begin + 3 * SECOND),
            Next::Wait,
            "another move"
        );
        moving.emptied(3, begin + 3 * SECOND);
        let early = Some(begin + 3 * SECOND);
        assert_eq!(
            moving.next(early, begin + 4 * SECOND),
            Next::Wait,
            "asked for before"
        );
        assert_eq!(
            moving.next(Some(begin + 4 * SECOND), begin + 4 * SECOND),
            Next::Done
        );
    }

    #[test]
    fn a_held_move_proves_behind_its_aim_and_is_done_when_it_is_held_no_longer() {
        let begin = Instant::now();
        let at = |seconds| begin + seconds * SECOND;
        let limits = (5 * SECOND, 20 * SECOND);
        let mut moving = PlannedMove::held(3, 9, limits, begin, None);
        assert!(moving.is_for(9) && !moving.is_for(8) && moving.to().is_none());
        assert_eq!(moving.begin_emptying(), Some(3));
        moving.emptied(3, at(1));
        assert!(moving.is_empty() && !moving.is_proved(Some(at(1))));
        moving.aim(Some(2), at(2));
        assert!(!moving.is_proved(Some(at(2))), "that barrier began before");
        assert!(moving.is_proved(Some(at(3))));
        moving.aim(Some(2), at(4));
        assert!(moving.is_proved(Some(at(3))), "the same aim");
        moving.aim(Some(1), at(4));
        assert!(!moving.is_proved(Some(at(3))), "another one");
        assert!(!moving.takes_over(2, (5 * SECOND, false), at(4)));
        assert!(moving.takes_over(1, (5 * SECOND, false), at(4)) && !moving.is_held());
        assert_eq!(moving.next(Some(at(5)), at(5)), Next::Done);

        let mut late = PlannedMove::held(1, 1, limits, begin, None);
        late.aim(Some(2), begin);
        assert!(
            !late.is_empty() && !late.is_proved(Some(at(1))),
            "it is not empty"
        );
    }

    #[test]
    fn an_order_that_is_repeated_gets_no_further_time() {
        let begin = Instant::now();
        let mut moving = begun(1, false, 20 * SECOND, begin);
        assert!(
            !moving.takes_over(3, (5 * SECOND, false), begin),
            "another server"
        );
        assert!(moving.takes_over(2, (5 * SECOND, true), begin + SECOND));
        let late = begin + 4 * SECOND;
        let mut other = PlannedMove::new(2, 3, (5 * SECOND, true), 20 * SECOND, late, Some(&moving));
        for moving in [&mut moving, &mut other] {
            assert_eq!(moving.next(None, begin + 5 * SECOND), Next::Close);
        }
        let mut shorter = begun(3, false, 20 * SECOND, begin);
        assert!(shorter.takes_over(2, (SECOND, true), begin + SECOND));
        assert_eq!(shorter.next(None, begin + 2 * SECOND), Next::Close);
    }

    #[test]
    fn a_move_takes_no_longer_than_its_time() {
        let begin = Instant::now();
        for (limit, is_forced) in [(5, false), (2, false), (5, true)] {
            let mut moving = begun(1, is_forced, 2 * limit * SECOND, begin);
            moving.begin_emptying();
            assert_eq!(moving.next(None, begin + limit * SECOND - SECOND / 2), Next::Wait);
            let late = moving.next(None, begin + limit * SECOND);
            match is_forced {
                false => assert!(matches!(late, Next::GiveUp(_)), "{late:?}"),
                true => {
                    assert_eq!(late, Next::Close);
                    let end = begin + limit * SECOND + SECOND;
                    assert_eq!(moving.next(None, end), Next::Wait, "they end");
                    moving.closed(end);
                    assert_eq!(moving.next(Some(end + SECOND / 2), end + SECOND / 2), Next::Done);
                    let mut late = begun(2, is_forced, 2 * limit * SECOND, begin);
                    assert_eq!(late.next(None, begin + limit * SECOND), Next::Close);
                    assert!(matches!(late.next(None, begin + 8 * SECOND), Next::GiveUp(_)));
                }
            }
        }
    }
}
