//! The log of the roster, by Raft (openraft): who votes, what was agreed on, and the proof of leadership.
//!
//! * `journal`: the file that outlives the process; `log_store`, `state_machine`: what Raft reads and writes
//! * `network`: Raft's messages over the channels of the fleet
//! * `election`: which voter stands, and when; `quorum`: a leader that no majority answers gives way

mod election;
mod journal;
mod log_store;
mod network;
mod quorum;
mod state_machine;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::Path,
    sync::Arc,
    time::Duration,
};

use openraft::{BasicNode, ChangeMembers, Config, ServerState, SnapshotPolicy};
use tokio::sync::watch;

use self::{
    election::{Election, FIRST, GUARD},
    journal::Journal,
    log_store::LogStore,
    network::Network,
    state_machine::StateMachine,
};
use super::{book::Book, links::Links, types::Types};
use crate::{
    fleet::{Change, Roster},
    random::Random,
};

/// Raft's heartbeat for a lease of a second or less, in milliseconds. It is short so that a lost leader is
/// noticed soon. Where leases are longer, as networks or hosts are slow, it is longer in proportion.
const HEARTBEAT: u64 = 50;

/// The agreement of the voters: views are proposed, committed, and read; leadership is proved.
pub(super) trait Consensus {
    /// Proposes a change of the roster, and waits until it is committed; `false`: it changed nothing.
    async fn propose(&self, change: Change) -> Result<bool, NotLeader>;
    /// The newest committed roster.
    fn committed(&self) -> watch::Receiver<Roster>;
    /// Proves, by a round of messages that begins now, that this node leads a majority.
    async fn confirm(&self) -> Result<(), NotLeader>;
}

/// This node does not lead, or cannot prove it. Another node may; a retry helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this node does not lead the fleet's voters")]
pub(super) struct NotLeader;

/// One node of the agreement.
#[derive(Clone)]
pub(super) struct Node {
    raft: openraft::Raft<Types>,
    committed: watch::Receiver<Roster>,
    id: u64,
    election: Arc<Election>,
}

impl Node {
    /// Opens the node whose journal is in `dir`, in a fleet with leases of this length.
    ///
    /// # Errors
    /// The journal cannot be read or written, or Raft finds it damaged.
    pub(super) async fn open(
        dir: &Path,
        (id, lease): (u64, Duration),
        book: Arc<Book>,
        links: Arc<Links>,
    ) -> io::Result<Self> {
        let heartbeat = HEARTBEAT.max(HEARTBEAT * lease.as_millis() as u64 / 1000);
        let config = Config {
            cluster_name: "proxima".to_owned(),
            heartbeat_interval: heartbeat,
            // Elections are begun by `election`. What is left of these times is how long no vote is granted.
            enable_elect: false,
            election_timeout_min: heartbeat * u64::from(FIRST),
            election_timeout_max: heartbeat * u64::from(GUARD),
            snapshot_policy: SnapshotPolicy::LogsSinceLast(1000),
            max_in_snapshot_log_to_keep: 200,
            ..Config::default()
        };
        let config = Arc::new(config.validate().map_err(io::Error::other)?);
        let (journal, kept) = Journal::open(&dir.join("journal"))?;
        let (machine, committed) = StateMachine::new(journal.clone(), kept.snapshot.clone())?;
        let store = LogStore::new(journal, kept);
        let network = Network::new(Arc::clone(&book), Arc::clone(&links));
        let raft = openraft::Raft::new(id, config, network, store, machine)
            .await
            .map_err(io::Error::other)?;
        let node = Self {
            raft,
            committed,
            id,
            election: Arc::new(Election::new(Duration::from_millis(heartbeat))),
        };
        tokio::spawn(node.clone().stand(book, links, Random(id)));
        Ok(node)
    }

    /// Begins a fleet of these voters.
    pub(super) async fn begin(&self, voters: BTreeMap<u64, BasicNode>) -> io::Result<()> {
        self.raft.initialize(voters).await.map_err(io::Error::other)
    }

    /// Has the node a log?
    pub(super) async fn has_begun(&self) -> bool {
        self.raft.is_initialized().await.unwrap_or(false)
    }

    /// Does the node lead, as far as it knows, and in which term? One that no majority answers does not.
    pub(super) fn leads(&self) -> Option<u64> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        let leads = metrics.state == ServerState::Leader && !self.election.is_alone();
        leads.then_some(metrics.current_term)
    }

    /// The node that leads, as far as this one knows, and the term.
    pub(super) fn leader(&self) -> (Option<u64>, u64) {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        let leader = metrics.current_leader;
        let leader = leader.filter(|leader| *leader != self.id || !self.election.is_alone());
        (leader, metrics.current_term)
    }

    /// The voters, with the addresses at which they were when they became voters.
    pub(super) fn voters(&self) -> BTreeMap<u64, BasicNode> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        let membership = metrics.membership_config.membership();
        let voters: BTreeSet<u64> = membership.voter_ids().collect();
        membership
            .nodes()
            .filter(|(id, _)| voters.contains(id))
            .map(|(id, node)| (*id, node.clone()))
            .collect()
    }

    /// Replaces the voters by these.
    pub(super) async fn set_voters(&self, voters: BTreeMap<u64, BasicNode>) -> io::Result<()> {
        let ids: BTreeSet<u64> = voters.keys().copied().collect();
        let known = self.voters();
        for (id, node) in &voters {
            if known.get(id).is_some_and(|known| known == node) {
                continue;
            }
            if known.contains_key(id) {
                let nodes = BTreeMap::from([(*id, node.clone())]);
                let set = ChangeMembers::SetNodes(nodes);
                self.raft
                    .change_membership(set, false)
                    .await
                    .map_err(io::Error::other)?;
            } else {
                self.raft
                    .add_learner(*id, node.clone(), true)
                    .await
                    .map_err(io::Error::other)?;
            }
        }
        if ids != known.keys().copied().collect() {
            self.raft
                .change_membership(ids, false)
                .await
                .map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// This node's number.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Why the node has stopped; `None`: it runs.
    pub(super) fn stopped(&self) -> Option<String> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        metrics.running_state.as_ref().err().map(ToString::to_string)
    }

    /// Ends the node.
    pub(super) async fn end(&self) {
        let _ = tokio::time::timeout(Duration::from_secs(1), self.raft.shutdown()).await;
    }
}

impl Consensus for Node {
    async fn propose(&self, change: Change) -> Result<bool, NotLeader> {
        let written = self.raft.client_write(change).await.map_err(|_| NotLeader)?;
        Ok(written.data)
    }

    fn committed(&self) -> watch::Receiver<Roster> {
        self.committed.clone()
    }

    async fn confirm(&self) -> Result<(), NotLeader> {
        self.raft.ensure_linearizable().await.map_err(|_| NotLeader)?;
        Ok(())
    }
}
