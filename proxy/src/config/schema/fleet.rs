//! A fleet: proxies that keep one promise together.

use std::{path::PathBuf, time::Duration};

use super::{Identity, Question, Service};

/// A fleet, as one of its peers is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Fleet {
    /// Where the other peers connect.
    pub listen: String,
    /// The address under which the other peers reach this one. `None`: that of `listen`, or of the list of
    /// peers.
    pub announce: Option<String>,
    /// Where the other peers are.
    pub peers: FleetPeers,
    /// This peer's name, unique and stable. `None`: the name of the host.
    pub name: Option<String>,
    /// The directory that outlives the process.
    pub dir: PathBuf,
    /// The names of the voters. `None`: the fleet chooses.
    pub voters: Option<Vec<String>>,
    /// The least number of peers at the first start.
    pub expect: usize,
    /// What this proxy is in the fleet.
    pub role: Role,
    /// How long a peer may answer after it was last heard of.
    pub lease: Duration,
    /// A change that a peer leaves unanswered for this long is complained of.
    pub suspect: Duration,
    /// How the channels between peers are protected. `None`: they are not.
    pub tls: Option<PeerTls>,
}

impl Fleet {
    /// Default of `lease`.
    pub const LEASE: Duration = Duration::from_secs(1);
    /// Default of `suspect`.
    pub const SUSPECT: Duration = Duration::from_millis(300);

    /// The question whose answer is where the peers are. `None`: nobody is asked.
    pub fn question(&self) -> Option<Question> {
        match &self.peers {
            FleetPeers::At(_) => None,
            FleetPeers::Service(service) => Some(Question::Peers(service.clone())),
        }
    }
}

/// Where the peers of a fleet are.
#[derive(Clone, Debug, PartialEq)]
pub enum FleetPeers {
    /// At these addresses.
    At(Peers),
    /// They are the pods of this Service. The API server says which of them are there.
    Service(Service),
}

/// Where other proxies are.
#[derive(Clone, Debug, PartialEq)]
pub enum Peers {
    /// A name whose addresses they have, and their port.
    Dns(String),
    /// These addresses.
    Listed(Vec<String>),
    /// The addresses in this file, one a line. The file is followed.
    File(PathBuf),
}

/// What a proxy is in a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It serves clients.
    Peer,
    /// It only votes.
    Witness,
}

/// The files of mutual TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerTls {
    /// This peer's certificate and its key.
    pub identity: Identity,
    /// The authority that has signed the certificates of all peers, and of nobody else.
    pub ca: PathBuf,
}
