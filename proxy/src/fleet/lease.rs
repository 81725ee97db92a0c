//! The end of this peer's right to answer.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire},
};

/// The end of this peer's lease, which the control thread renews and the workers check once a turn. Times are
/// those of CLOCK_BOOTTIME, which goes on while the machine is suspended, in microseconds.
#[derive(Debug, Default)]
pub struct Lease {
    until: AtomicU64,
    /// Decisions that began before this view have ended at all peers.
    settled: AtomicU64,
}

impl Lease {
    /// The lease lasts until this time. An earlier end than the one before is not taken: the earlier grant
    /// came later.
    pub fn renew(&self, until: u64) {
        self.until.fetch_max(until, AcqRel);
    }

    /// The lease has ended: this peer has left, or the machine was suspended.
    pub fn end(&self) {
        self.until.store(0, std::sync::atomic::Ordering::Release);
    }

    /// Is it valid at this time?
    #[inline]
    pub fn is_valid(&self, now: u64) -> bool {
        now < self.until.load(Acquire)
    }

    /// When it ends.
    pub fn until(&self) -> u64 {
        self.until.load(Acquire)
    }

    /// At all peers, decisions that began before this view have ended.
    pub fn settle(&self, view: u64) {
        self.settled.fetch_max(view, AcqRel);
    }

    /// Before which view all decisions have ended at all peers.
    pub fn settled(&self) -> u64 {
        self.settled.load(Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::fleet::{Act, Change, Heartbeat, Leadership, Peer, Roster, Stay, View};

    const LEASE: u64 = 1_000_000;
    /// The step of true time, in microseconds.
    const STEP: u64 = 5_000;

    /// The clock of a machine: it began at another time than others, and runs at a speed of its own, in parts
    /// of a thousand.
    #[derive(Clone, Copy, Debug)]
    struct Clock {
        reads: u64,
        speed: u64,
    }

    impl Clock {
        fn pass(&mut self, micros: u64) {
            self.reads += micros * self.speed / 1000;
        }
    }

    fn view() -> View {
        let mut roster = Roster::default();
        let peer = Peer {
            lease: LEASE,
            ..Peer::example("p")
        };
        roster.apply(&Change::Join { peers: vec![peer] });
        roster.view
    }

    /// Microseconds of true time for which the lease runs on when the leader removes the peer; 0: it has
    /// ended. The peer sends heartbeats, each of which takes `delay` there and back again, until it is cut
    /// off at `cut`.
    fn outlasts((mut peer, mut leader): (Clock, Clock), delay: u64, cut: u64) -> u64 {
        let (view, lease) = (view(), Lease::default());
        let mut known = Leadership::new(leader.reads, LEASE);
        // When each heartbeat was sent, by the peer's clock, and when it arrives, and its grant, in true
        // time.
        let mut beats: Vec<(u64, u64)> = Vec::new();
        for now in (0..cut + 10 * LEASE).step_by(STEP as usize) {
            if now < cut && now.is_multiple_of(LEASE / 5) {
                beats.push((peer.reads, now + delay));
            }
            for &(sent, arrives) in &beats {
                if now == arrives {
                    let stay = Stay(1);
                    let beat = Heartbeat {
                        name: "p".to_owned(),
                        stay,
                        sent,
                        ..Heartbeat::default()
                    };
                    assert!(known.heartbeat(leader.reads, &view, &beat));
                }
                if now == arrives + delay {
                    lease.renew(sent + LEASE);
                }
            }
            let acts = known.decide(leader.reads, &view, &BTreeSet::new());
            if acts
                .iter()
                .any(|act| matches!(act, Act::Propose(Change::Remove { .. })))
            {
                return lease.until().saturating_sub(peer.reads);
            }
            peer.pass(STEP);
            leader.pass(STEP);
        }
        panic!("a peer that is cut off is never removed");
    }

    fn clock(reads: u64, speed: u64) -> Clock {
        Clock { reads, speed }
    }

    proptest! {
        #[test]
        fn lease_ends_before_the_removal_on_clocks_that_differ_by_one_percent(
            begins in (0..10 * LEASE, 0..10 * LEASE),
            slower in 990_u64..=1000,
            peer_is_slower in any::<bool>(),
            delay in 0..40_u64,
            cut in LEASE..2 * LEASE,
        ) {
            let (one, other) = (clock(begins.0, slower), clock(begins.1, 1000));
            let clocks = if peer_is_slower { (one, other) } else { (other, one) };
            prop_assert_eq!(outlasts(clocks, delay * STEP, cut), 0);
        }
    }

    #[test]
    fn lease_on_a_clock_that_is_slower_than_the_margin_outlasts_the_removal() {
        assert!(outlasts((clock(0, 900), clock(0, 1000)), 0, LEASE) > 0);
    }

    #[test]
    fn clock_that_jumps_while_a_machine_is_suspended_finds_the_lease_ended() {
        let (lease, mut clock) = (Lease::default(), clock(0, 1000));
        lease.renew(clock.reads + LEASE);
        clock.pass(LEASE / 2);
        assert!(lease.is_valid(clock.reads));
        clock.reads += 60 * LEASE;
        assert!(!lease.is_valid(clock.reads));
    }

    #[test]
    fn clock_that_stands_still_with_its_machine_lets_the_rest_of_one_lease_go_by_afterwards() {
        let (lease, mut clock) = (Lease::default(), clock(0, 1000));
        lease.renew(clock.reads + LEASE);
        clock.pass(LEASE / 2);
        // A minute goes by that this clock never shows, and that the peer cannot detect.
        assert!(lease.is_valid(clock.reads));
        clock.pass(LEASE - LEASE / 2);
        assert!(
            !lease.is_valid(clock.reads),
            "it answers for no longer than one lease"
        );
    }
}
