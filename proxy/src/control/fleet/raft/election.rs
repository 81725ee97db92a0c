//! Elections: which voter stands, and when.
//!
//! openraft 0.9 has a voter that hears no leader stand again and again, whether it can win or not. One whose
//! cable was pulled for three seconds came back ten terms ahead: the leader that all others heard gave way to
//! it, and leases ended. A voter asks the others first here, and stands if a majority hears no leader either
//! (the pre-vote of section 9.6 of Ongaro's thesis on Raft).
//!
//! Each voter has its own place in the order of all, and stands a heartbeat behind the one before it.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use openraft::ServerState;
use tokio::{task::JoinSet, time::sleep};

use super::{
    super::{
        book::Book,
        links::Links,
        message::{Message, Reply},
    },
    Node, quorum,
};
use crate::{event_log::kind, random::Random};

/// Interval between two looks.
const LOOK: Duration = Duration::from_millis(10);
/// Voters grant no vote for so many heartbeats after they have heard their leader.
pub(super) const GUARD: u32 = 6;
/// The first voter stands so many heartbeats later.
pub(super) const FIRST: u32 = 3;
/// The same where the leader has said that it goes, so that all wait for the first of them.
const FIRST_BEHIND_GOODBYE: f64 = 0.5;
/// Heartbeats in which the others have to say whether they hear a leader.
const ANSWER: u32 = 6;

/// What this voter has heard of the others.
pub(super) struct Election {
    begun: Instant,
    /// When the leader was last heard, in microseconds after `begun`; 0: never.
    leader: AtomicU64,
    /// When the leader was heard, this node voted for another, or last thought of standing.
    quiet: AtomicU64,
    /// This node was elected, and no majority answers it.
    alone: AtomicBool,
    /// The number of the leader that has said that it goes; 0: none has.
    goes: AtomicU64,
    heartbeat: Duration,
}

impl Election {
    /// Nobody was heard yet. `heartbeat`: that of the leader.
    pub(super) fn new(heartbeat: Duration) -> Self {
        Self {
            begun: Instant::now(),
            leader: AtomicU64::new(0),
            quiet: AtomicU64::new(0),
            alone: AtomicBool::new(false),
            goes: AtomicU64::new(0),
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

    /// Whether this node was elected and no majority answers it.
    pub(super) fn is_alone(&self) -> bool {
        self.alone.load(Relaxed)
    }

    /// Whether the leader was heard so recently that no vote is granted.
    fn hears_leader(&self) -> bool {
        let at = self.leader.load(Relaxed);
        at != 0 && self.since(at) < self.heartbeat * GUARD
    }

    /// How long nobody is heard before this node stands. `leader`: who has led until now. `place`: how many
    /// voters stand before this one. `drawn`: a part of half a heartbeat, so that an order in which nobody
    /// wins is not repeated exactly.
    fn timeout(&self, leader: Option<u64>, place: usize, drawn: f64) -> Duration {
        let guard = if leader.is_some() { f64::from(GUARD) } else { 0.0 };
        let goes = leader.is_some_and(|leader| leader == self.goes.load(Relaxed));
        let first = if goes {
            FIRST_BEHIND_GOODBYE
        } else {
            f64::from(FIRST)
        };
        self.heartbeat.mul_f64(guard + first + place as f64 + drawn / 2.0)
    }
}

impl Node {
    /// Whether this node leads, or heard the leader a moment ago.
    pub(in crate::control::fleet) fn hears_leader(&self) -> bool {
        self.leads().is_some() || self.election.hears_leader()
    }

    /// This leader has said that it goes: the next one is elected as soon as votes are granted.
    pub(in crate::control::fleet) fn hear_goodbye(&self, leader: u64) {
        self.election.goes.store(leader, Relaxed);
    }

    /// Has this node stand when it is its turn, until Raft ends.
    pub(super) async fn stand(self, book: Arc<Book>, links: Arc<Links>, mut random: Random) {
        let mut drawn = random.fraction();
        let mut elected = None;
        while self.stopped().is_none() {
            sleep(LOOK).await;
            let (is_elected, answered) = {
                let metrics = self.raft.metrics();
                let metrics = metrics.borrow();
                let is_elected = metrics.state == ServerState::Leader;
                (
                    is_elected,
                    metrics.millis_since_quorum_ack.map(Duration::from_millis),
                )
            };
            elected = is_elected.then(|| elected.unwrap_or_else(Instant::now));
            if let Some(since) = elected {
                self.election.hold();
                self.look_for_quorum(answered.unwrap_or_else(|| since.elapsed()));
                continue;
            }
            self.election.alone.store(false, Relaxed);
            let voters = self.voters();
            if !voters.contains_key(&self.id) {
                self.election.hold();
                continue;
            }
            let (leader, _) = self.leader();
            // The leader that is lost does not stand.
            let before = |voter: &&u64| **voter < self.id && Some(**voter) != leader;
            let timeout = match voters.len() {
                1 => self.election.heartbeat,
                _ => self
                    .election
                    .timeout(leader, voters.keys().filter(before).count(), drawn),
            };
            if self.election.since(self.election.quiet.load(Relaxed)) < timeout {
                continue;
            }
            self.election.hold();
            drawn = random.fraction();
            if self.may_win(&book, &links).await {
                // It fails only when Raft has ended.
                let _ = self.raft.trigger().elect().await;
            }
        }
    }

    /// This node is elected, and a majority has last answered so long ago.
    fn look_for_quorum(&self, unanswered: Duration) {
        let conduct = quorum::conduct(unanswered, self.election.heartbeat);
        let was_alone = self.election.alone.swap(!conduct.leads, Relaxed);
        if !conduct.leads && !was_alone {
            tracing::warn!(target: kind::PEER,
                "fleet: no majority of the voters answers this leader: it leads no more until one does"
            );
        }
        self.raft.runtime_config().heartbeat(conduct.beats);
    }

    /// Whether a majority, this node included, answers and hears no leader. While the voters are being
    /// replaced, it takes a majority of those before and of those after.
    async fn may_win(&self, book: &Book, links: &Arc<Links>) -> bool {
        let limit = self.election.heartbeat * ANSWER;
        let groups: Vec<BTreeSet<u64>> = {
            let metrics = self.raft.metrics();
            let metrics = metrics.borrow();
            metrics.membership_config.membership().get_joint_config().clone()
        };
        let mut asked = JoinSet::new();
        for (voter, at) in self.voters().into_iter().filter(|(voter, _)| *voter != self.id) {
            let Some(address) = book.address_of(voter).or_else(|| at.addr.parse().ok()) else {
                continue;
            };
            let links = Arc::clone(links);
            asked.spawn(async move {
                let asked = links.ask(address, Message::Probe, limit).await;
                let agrees =
                    matches!(asked, Ok(Reply::Probe(who)) if who.identity as u64 == voter && !who.votes_for_nobody);
                agrees.then_some(voter)
            });
        }
        let mut agree = BTreeSet::from([self.id]);
        loop {
            if groups
                .iter()
                .all(|group| group.intersection(&agree).count() > group.len() / 2)
            {
                return true;
            }
            match asked.join_next().await {
                Some(answer) => agree.extend(answer.ok().flatten()),
                None => return false,
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
        for leader in [Some(7), None] {
            let latest = |place| election.timeout(leader, place, 1.0);
            let earliest = |place| election.timeout(leader, place, 0.0);
            let apart = Duration::from_millis(25);
            assert!((0..5).all(|place| earliest(place + 1) >= latest(place) + apart));
        }
        let guard = Duration::from_millis(300);
        assert_eq!(
            election.timeout(Some(7), 0, 0.0),
            guard + Duration::from_millis(150)
        );
        assert_eq!(election.timeout(None, 2, 0.0), Duration::from_millis(250));
        election.goes.store(7, Relaxed);
        assert_eq!(
            election.timeout(Some(7), 0, 0.0),
            guard + Duration::from_millis(25)
        );
        assert_eq!(
            election.timeout(Some(8), 0, 0.0),
            guard + Duration::from_millis(150),
            "another one"
        );
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
