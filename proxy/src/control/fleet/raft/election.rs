//! Who stands for election, and when.
//!
//! openraft 0.9 has a voter that hears no leader stand again and again, whether it can win or not. One whose
//! cable was pulled for three seconds came back ten terms ahead: the leader that all others heard gave way to
//! it, and leases ended. A voter asks the others first here, and stands if a majority hears no leader either
//! (the pre-vote of section 9.6 of Ongaro's thesis on Raft).
//!
//! Each voter has its own place in the order of all, and stands a heartbeat behind the one before it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use openraft::BasicNode;
use tokio::{task::JoinSet, time::sleep};

use super::{
    super::{
        book::Book,
        links::Links,
        message::{Message, Reply},
    },
    Node,
};
use crate::route::Random;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(10);
/// Voters grant no vote for so many heartbeats after they have heard their leader.
pub(super) const GUARD: u32 = 6;
/// The first voter stands so many heartbeats later.
pub(super) const FIRST: u32 = 3;
/// So many heartbeats are given to the others to say whether they hear a leader.
const ANSWER: u32 = 2;

/// What this voter has heard of the others.
pub(super) struct Election {
    begun: Instant,
    /// When the leader was last heard, in microseconds after `begun`; 0: never.
    leader: AtomicU64,
    /// When the leader was heard, this node voted for another, or last thought of standing.
    quiet: AtomicU64,
    heartbeat: Duration,
}

impl Election {
    /// Nobody was heard yet. `heartbeat`: that of the leader.
    pub(super) fn new(heartbeat: Duration) -> Self {
        Self {
            begun: Instant::now(),
            leader: AtomicU64::new(0),
            quiet: AtomicU64::new(0),
            heartbeat,
        }
    }

    fn now(&self) -> u64 {
        self.begun.elapsed().as_micros() as u64
    }

    /// The leader was heard.
    pub(super) fn hear_leader(&self) {
        let now = self.now().max(1);
        self.leader.store(now, Relaxed);
        self.quiet.store(now, Relaxed);
    }

    /// This node does not stand for a while: it has voted for another, or has just tried.
    pub(super) fn hold(&self) {
        self.quiet.store(self.now(), Relaxed);
    }

    fn since(&self, at: u64) -> Duration {
        Duration::from_micros(self.now().saturating_sub(at))
    }

    /// Was the leader heard a moment ago, so that nobody else is voted for?
    fn hears_leader(&self) -> bool {
        let at = self.leader.load(Relaxed);
        at != 0 && self.since(at) < self.heartbeat * GUARD
    }

    /// For how long nobody is heard before this node stands. `has_led`: there was a leader. `place`: how many
    /// voters stand before this one. `drawn`: a part of half a heartbeat, so that an order in which nobody wins
    /// is not repeated exactly.
    fn patience(&self, has_led: bool, place: usize, drawn: f64) -> Duration {
        let guard = if has_led { GUARD } else { 0 };
        let heartbeats = f64::from(guard + FIRST) + place as f64 + drawn / 2.0;
        self.heartbeat.mul_f64(heartbeats)
    }
}

impl Node {
    /// Does this node lead, or has it heard the leader a moment ago?
    pub(in crate::control::fleet) fn hears_leader(&self) -> bool {
        self.leads().is_some() || self.election.hears_leader()
    }

    /// Has this node stand when it is its turn, until Raft ends.
    pub(super) async fn stand(self, book: Arc<Book>, links: Arc<Links>, mut random: Random) {
        let mut drawn = random.fraction();
        while self.stopped().is_none() {
            sleep(LOOK).await;
            let voters = self.voters();
            if self.leads().is_some() || !voters.contains_key(&self.id) {
                self.election.hold();
                continue;
            }
            let (leader, _) = self.leader();
            // The leader that is lost does not stand.
            let before = |voter: &&u64| **voter < self.id && Some(**voter) != leader;
            let patience = match voters.len() {
                1 => self.election.heartbeat,
                _ => self
                    .election
                    .patience(leader.is_some(), voters.keys().filter(before).count(), drawn),
            };
            if self.election.since(self.election.quiet.load(Relaxed)) < patience {
                continue;
            }
            self.election.hold();
            drawn = random.fraction();
            if self.may_win(&voters, &book, &links).await {
                // It fails only when Raft has ended.
                let _ = self.raft.trigger().elect().await;
            }
        }
    }

    /// Does a majority of the voters, this one included, answer and hear no leader?
    async fn may_win(&self, voters: &BTreeMap<u64, BasicNode>, book: &Book, links: &Arc<Links>) -> bool {
        let limit = self.election.heartbeat * ANSWER;
        let mut asked = JoinSet::new();
        for (voter, at) in voters.iter().filter(|(voter, _)| **voter != self.id) {
            let Some(address) = book.address_of(*voter).or_else(|| at.addr.parse().ok()) else {
                continue;
            };
            let links = Arc::clone(links);
            asked.spawn(async move {
                let asked = links.ask(address, Message::Probe, limit).await;
                matches!(asked, Ok(Reply::Probe(who)) if !who.hears_leader)
            });
        }
        let mut agree = 1;
        while agree <= voters.len() / 2 {
            match asked.join_next().await {
                Some(answer) => agree += usize::from(answer.unwrap_or(false)),
                None => return false,
            }
        }
        true
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

    #[test]
    fn a_voter_that_only_thinks_of_standing_hears_no_leader() {
        let election = Election::new(Duration::from_secs(60));
        election.hold();
        assert!(!election.hears_leader());
        election.hear_leader();
        assert!(election.hears_leader());
    }
}
