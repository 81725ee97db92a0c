//! What the control threads of peers say to each other.

use std::{collections::BTreeMap, net::SocketAddr};

use openraft::{
    error::{InstallSnapshotError, RaftError},
    raft::{
        AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
        VoteRequest, VoteResponse,
    },
};
use serde::{Deserialize, Serialize};

use super::{settings::Settings, types::Types};
use crate::fleet::{Candidate, Difference, Grant, Heartbeat, Roster, Stay, keeper::MissedByPeer};

/// A request of a peer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Message {
    /// Asks for the name and the stay of the other.
    Probe,
    /// A message of Raft to the node of this number.
    Raft(u64, Box<RaftMessage>),
    /// A peer lives.
    Heartbeat(Heartbeat),
    /// A peer asks to join.
    Join(Candidate),
    /// A peer leaves.
    Goodbye { name: String, stay: Stay },
    /// The leader takes a peer's lease away.
    Stop { stay: Stay, term: u64 },
    /// The roster, whole.
    Roster(Box<Roster>),
    /// The roster has changed.
    Difference(Box<Difference>),
    /// Asks what a peer missed that has joined again.
    #[serde(rename = "Owed")]
    Missed { name: String, identity: u128, view: u64 },
    /// An operator removes a peer.
    Remove { name: String },
}

impl Message {
    /// The first version of the protocol that has it.
    pub(super) fn version(&self) -> u16 {
        match self {
            Self::Difference(_) => 2,
            _ => 1,
        }
    }
}

/// The answer of a peer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    /// Its identity.
    Probe(Introduction),
    Raft(Box<RaftReply>),
    Grant(Box<Grant>),
    /// Another one leads; `None`: nobody knows who.
    NotLeader(Option<SocketAddr>),
    /// What a peer missed, and the clock of this one.
    #[serde(rename = "Owed")]
    Missed(Gift),
    Done,
    Refused(String),
}

/// The identity of a proxy of a fleet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Introduction {
    pub(super) name: String,
    pub(super) identity: u128,
    /// Its fleet; `None`: its directory is empty.
    pub(super) fleet: Option<u128>,
    /// The least name among those that it knows to have empty directories, itself included.
    pub(super) lowest: String,
    /// The node that leads, as far as it knows.
    pub(super) leader: Option<u64>,
    /// The term that it knows.
    #[serde(default)]
    pub(super) term: u64,
    /// It leads, hears the leader, or has stopped voting.
    #[serde(default)]
    pub(super) votes_for_nobody: bool,
    /// Is it a witness?
    pub(super) witness: bool,
    /// Its Unix time, in microseconds; 0: it does not say.
    #[serde(default)]
    pub(super) time: u64,
    /// What must be equal at all peers.
    #[serde(default)]
    pub(super) settings: Settings,
    /// Microseconds from its questions to the answers of others, by their names; empty: it does not say, or has
    /// more of them than [`MATRIX`]. Only people read it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) round_trips: BTreeMap<String, u64>,
}

/// Fleets of more peers show no matrix of round trips, which grows with the square of their number.
pub(super) const MATRIX: usize = 64;

/// What a peer gives to one that has joined again.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Gift {
    /// The keys that changed meanwhile; `None`: this peer was not there all the time.
    #[serde(rename = "owed")]
    pub(super) missed: Option<MissedByPeer>,
    /// The bits of the stamp up to which changes are not to be stored; `None`: this peer has no floor itself.
    pub(super) clock: Option<u64>,
}

/// A message of Raft.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum RaftMessage {
    Append(AppendEntriesRequest<Types>),
    Vote(VoteRequest<u64>),
    Snapshot(InstallSnapshotRequest<Types>),
}

/// The answer of a node, or its error.
type RaftAnswer<T, E = openraft::error::Infallible> = Result<T, RaftError<u64, E>>;

/// The answer to a message of Raft.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum RaftReply {
    Append(RaftAnswer<AppendEntriesResponse<u64>>),
    Vote(RaftAnswer<VoteResponse<u64>>),
    Snapshot(RaftAnswer<InstallSnapshotResponse<u64>, InstallSnapshotError>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_told_to_peers_that_do_not_know_them_and_missing_at_those_who_do_not_tell() {
        let mut who = Introduction {
            name: "a".to_owned(),
            identity: 7,
            fleet: None,
            lowest: "a".to_owned(),
            leader: None,
            term: 0,
            votes_for_nobody: false,
            witness: false,
            time: 0,
            settings: Settings::default(),
            round_trips: BTreeMap::new(),
        };
        let older = serde_json::to_value(&who).unwrap();
        assert!(older.get("round_trips").is_none());
        assert_eq!(serde_json::from_value::<Introduction>(older).unwrap(), who);
        who.round_trips = [("b".to_owned(), 250)].into();
        let newer = serde_json::to_value(&who).unwrap();
        assert_eq!(newer["round_trips"], serde_json::json!({"b": 250}));

        /// What an older peer reads of it.
        #[derive(Deserialize)]
        struct Older {
            identity: u128,
        }
        assert_eq!(serde_json::from_value::<Older>(newer).unwrap().identity, 7);
    }

    #[test]
    fn what_a_peer_missed_has_its_old_name_for_peers_of_other_versions() {
        let (name, identity, view) = ("a".to_owned(), 7, 3);
        let asked = serde_json::to_string(&Message::Missed { name, identity, view }).unwrap();
        assert_eq!(asked, r#"{"Owed":{"name":"a","identity":7,"view":3}}"#);
        let (missed, clock) = (None, Some(5));
        let told = serde_json::to_string(&Reply::Missed(Gift { missed, clock })).unwrap();
        assert_eq!(told, r#"{"Owed":{"owed":null,"clock":5}}"#);
    }
}
