//! Who stands for election, and when.
//!
//! openraft 0.9 draws the time of its own timer once for the life of a process, and looks at it every one and a
//! half heartbeats: two followers whose times fall together stand against each other, and do so again in every
//! round. Here each voter has its own place in the order of all, and stands a heartbeat behind the one before.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

use openraft::{Raft, ServerState};
use tokio::time::sleep;

use super::super::types::Types;
use crate::route::Random;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(10);
/// Voters grant no vote for so many heartbeats after they have heard their leader.
pub(super) const GUARD: u64 = 6;
/// The first voter stands so many heartbeats later.
pub(super) const FIRST: u64 = 3;

/// What this voter has heard of the others.
pub(super) struct Election {
    begun: Instant,
    /// When a leader, or a candidate who has this node's vote, was last heard: microseconds after `begun`.
    heard: AtomicU64,
    heartbeat: Duration,
}

impl Election {
    /// Nobody was heard yet. `heartbeat`: that of the leader.
    pub(super) fn new(heartbeat: Duration) -> Self {
        Self {
            begun: Instant::now(),
            heard: AtomicU64::new(0),
            heartbeat,
        }
    }

    /// A leader, or a candidate who has this node's vote, was heard.
    pub(super) fn hear(&self) {
        self.heard.store(self.begun.elapsed().as_micros() as u64, Relaxed);
    }

    fn silence(&self) -> Duration {
        let heard = Duration::from_micros(self.heard.load(Relaxed));
        self.begun.elapsed().saturating_sub(heard)
    }

    /// For how long nobody is heard before this node stands. `place`: how many voters stand before it. `drawn`: a
    /// part of half a heartbeat, so that an order in which nobody wins is not repeated exactly.
    fn patience(&self, has_led: bool, place: usize, drawn: f64) -> Duration {
        let guard = if has_led { GUARD } else { 0 };
        let heartbeats = (guard + FIRST) as f64 + place as f64 + drawn / 2.0;
        self.heartbeat.mul_f64(heartbeats)
    }

    /// Has this node stand when it is its turn, until Raft ends.
    pub(super) async fn run(&self, raft: Raft<Types>, id: u64, mut random: Random) {
        let mut drawn = random.fraction();
        loop {
            sleep(LOOK).await;
            let (leads, leader, voters) = {
                let metrics = raft.metrics();
                let metrics = metrics.borrow();
                if metrics.running_state.is_err() {
                    return;
                }
                let membership = metrics.membership_config.membership();
                let voters: Vec<u64> = membership.voter_ids().collect();
                (
                    metrics.state == ServerState::Leader,
                    metrics.current_leader,
                    voters,
                )
            };
            if leads || !voters.contains(&id) {
                self.hear();
                continue;
            }
            // The leader that is lost does not stand.
            let others = voters.iter().filter(|voter| Some(**voter) != leader);
            let place = others.filter(|voter| **voter < id).count();
            let is_alone = voters.len() == 1;
            if is_alone || self.silence() > self.patience(leader.is_some(), place, drawn) {
                self.hear();
                drawn = random.fraction();
                if raft.trigger().elect().await.is_err() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn voters_stand_one_behind_the_other_and_not_before_a_vote_can_be_granted() {
        let election = Election::new(Duration::from_millis(50));
        for has_led in [true, false] {
            let latest = |place| election.patience(has_led, place, 1.0);
            let earliest = |place| election.patience(has_led, place, 0.0);
            let apart = Duration::from_millis(25);
            assert!((0..5).all(|place| earliest(place + 1) >= latest(place) + apart));
        }
        let guard = Duration::from_millis(300);
        assert_eq!(
            election.patience(true, 0, 0.0),
            guard + Duration::from_millis(150)
        );
        assert_eq!(election.patience(false, 2, 0.0), Duration::from_millis(250));
    }
}
