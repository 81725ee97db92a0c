//! The localities of clients and servers inside this host, as the node agent reports them:
//! `docs/node-agent.md` has its protocol.
//!
//! A [`Locality`] is a NUMA node or a socket. Its number depends on the machine alone, so that it means the
//! same in every snapshot. The distance between two of them is [`Distance`] first and the firmware's latency
//! second.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
};

use serde::Deserialize;
use socket2::SockAddr;

use super::{Distance, DistanceSource, Member};

/// The longest snapshot that is read.
pub const LIMIT: usize = 4 << 20;
/// The version of the protocol that is read here.
const VERSION: u64 = 1;
/// Linux supports no more NUMA nodes.
const NODES: usize = 1024;
/// Kubernetes plans for 110 pods on a node.
const CONTAINERS: usize = 16_384;
/// The firmware's word for "itself", and for what it does not tell.
const LOCAL: u16 = 10;
const UNKNOWN: u16 = 255;

/// A place inside this host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Locality(u16);

impl Locality {
    /// No agent is followed.
    pub const NONE: Self = Self(0);
    /// An agent is followed, and does not tell: anywhere on this host.
    pub const HOST: Self = Self(1);
    const FIRST_NODE: u16 = 2;
    const FIRST_SOCKET: u16 = Self::FIRST_NODE + NODES as u16;

    const fn node(id: u16) -> Self {
        Self(Self::FIRST_NODE + id)
    }

    const fn socket(rank: u16) -> Self {
        Self(Self::FIRST_SOCKET + rank)
    }

    /// Its number, for tables.
    #[inline]
    pub const fn number(self) -> usize {
        self.0 as usize
    }

    /// The distance to a server that it lets one know.
    pub const fn reach(self) -> Distance {
        match self.0 {
            0 | 1 => Distance::Host,
            number if number < Self::FIRST_SOCKET => Distance::NumaNode,
            _ => Distance::Socket,
        }
    }
}

/// How near a server is; the least is the nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// The distance, which counts first.
    pub distance: Distance,
    /// The firmware's latency between the two places, the greatest of the machine where one of them is not
    /// known.
    pub latency: u16,
}

/// The identity of a container: what 64 hexadecimal digits stand for.
pub type ContainerId = [u8; 32];

/// The source of a client's locality, besides its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientSource {
    /// Nothing.
    #[default]
    Unknown,
    /// It connected from this address.
    Address(IpAddr),
    /// It connected by a Unix socket, and had this process id. Its container is not looked up yet.
    Process(u32),
    /// It connected by a Unix socket from this container.
    Container(ContainerId),
}

/// A snapshot cannot be used. The agent is at fault, or the sender is no agent.
#[allow(missing_docs, reason = "the messages say it")]
#[derive(Debug, thiserror::Error)]
pub enum BadSnapshot {
    #[error("it is no snapshot: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("it is version {0} of the protocol, and this program reads version {VERSION}")]
    Version(u64),
    #[error("the agent refuses to tell: {0}")]
    Refused(String),
    #[error("it has {0} NUMA nodes; a machine has at least 1 and at most {NODES}")]
    Nodes(usize),
    #[error("it names NUMA node {0} twice")]
    Twice(u16),
    #[error("NUMA node {0}: their numbers are below {NODES}")]
    Number(u16),
    #[error("it has {0} containers, and {CONTAINERS} is the most that is read")]
    Containers(usize),
    #[error("container {0} is on NUMA node {1}, which the machine does not have")]
    NoNode(String, u16),
    #[error("the caches or cores of NUMA node {0} have more CPUs than it")]
    Parts(u16),
    #[error("it has {0} CPUs, and too many lists of them")]
    Cpus(usize),
}

/// The localities as the agent reports them.
#[derive(Debug, PartialEq, Eq)]
pub struct Localities {
    /// The host's name, as the agent knows it.
    pub host: String,
    nodes: BTreeMap<u16, NumaNode>,
    /// The greatest latency between two nodes.
    farthest: u16,
    addresses: HashMap<IpAddr, Locality>,
    containers: HashMap<ContainerId, Locality>,
}

#[derive(Debug, PartialEq, Eq)]
struct NumaNode {
    /// Its socket's rank among all; `None` if it has no CPUs, or CPUs of several sockets.
    socket: Option<u16>,
    /// The socket as the kernel numbers it.
    socket_id: Option<u32>,
    /// By node.
    latency: BTreeMap<u16, u16>,
}

#[derive(Deserialize)]
struct SnapshotHeader {
    version: u64,
    #[serde(default)]
    refused: Option<String>,
}

#[derive(Deserialize)]
struct Snapshot {
    #[serde(default)]
    host: String,
    nodes: Vec<SnapshotNode>,
    pods: Vec<SnapshotPod>,
}

#[derive(Deserialize)]
struct SnapshotNode {
    id: u16,
    #[serde(default)]
    sockets: Vec<u32>,
    #[serde(default)]
    distances: BTreeMap<u16, u16>,
}

#[derive(Deserialize)]
struct SnapshotPod {
    /// Texts: one that is no address says nothing, and the others count.
    #[serde(default)]
    ips: Vec<String>,
    #[serde(default)]
    containers: Vec<SnapshotContainer>,
}

#[derive(Deserialize)]
struct SnapshotContainer {
    #[serde(default)]
    id: String,
    #[serde(default)]
    nodes: Vec<u16>,
}

impl Localities {
    /// Reads a snapshot of the agent.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn read(text: &[u8]) -> Result<Self, BadSnapshot> {
        // First, as another version may look otherwise.
        let SnapshotHeader { version, refused } = serde_json::from_slice(text)?;
        if version != VERSION {
            return Err(BadSnapshot::Version(version));
        }
        if let Some(why) = refused {
            return Err(BadSnapshot::Refused(why.escape_debug().to_string()));
        }
        let snapshot: Snapshot = serde_json::from_slice(text)?;
        if !(1..=NODES).contains(&snapshot.nodes.len()) {
            return Err(BadSnapshot::Nodes(snapshot.nodes.len()));
        }
        let containers: usize = snapshot.pods.iter().map(|pod| pod.containers.len()).sum();
        if containers > CONTAINERS || snapshot.pods.len() > CONTAINERS {
            return Err(BadSnapshot::Containers(containers.max(snapshot.pods.len())));
        }
        let nodes = nodes(snapshot.nodes)?;
        let latencies = nodes.values().flat_map(|node| node.latency.values());
        let mut read = Self {
            host: snapshot.host,
            farthest: latencies.copied().max().unwrap_or(UNKNOWN),
            nodes,
            addresses: HashMap::new(),
            containers: HashMap::new(),
        };
        read.locate(&snapshot.pods)?;
        Ok(read)
    }

    fn locate(&mut self, pods: &[SnapshotPod]) -> Result<(), BadSnapshot> {
        for pod in pods {
            // A container that may run everywhere does not show where the pod's work is done; the other
            // containers give its locality.
            let mut nodes = BTreeSet::new();
            for container in &pod.containers {
                if let Some(&node) = container.nodes.iter().find(|node| !self.nodes.contains_key(node)) {
                    return Err(BadSnapshot::NoNode(container.id.escape_debug().to_string(), node));
                }
                let locality = self.locality(&container.nodes);
                if let Some(id) = container_id(&container.id) {
                    self.containers.insert(id, locality);
                }
                if locality != Locality::HOST {
                    nodes.extend(&container.nodes);
                }
            }
            let nodes: Vec<u16> = nodes.into_iter().collect();
            let locality = self.locality(&nodes);
            let addresses = pod.ips.iter().filter_map(|ip| ip.parse::<IpAddr>().ok());
            let addresses: BTreeSet<IpAddr> = addresses.map(|address| address.to_canonical()).collect();
            for address in addresses {
                // An address of several pods is the host's: it does not tell its pods apart.
                self.addresses
                    .entry(address)
                    .and_modify(|locality| *locality = Locality::HOST)
                    .or_insert(locality);
            }
        }
        Ok(())
    }

    /// The smallest place that holds all these nodes.
    fn locality(&self, nodes: &[u16]) -> Locality {
        let sockets: BTreeSet<Option<u16>> = nodes
            .iter()
            .map(|node| self.nodes.get(node).and_then(|node| node.socket))
            .collect();
        match (nodes, sockets.first()) {
            (&[node], _) => Locality::node(node),
            (_, Some(&Some(socket))) if sockets.len() == 1 => Locality::socket(socket),
            _ => Locality::HOST,
        }
    }

    /// The locality of this client.
    pub fn of_client(&self, client: &ClientSource) -> Locality {
        let found = match client {
            ClientSource::Address(address) => self.addresses.get(&address.to_canonical()),
            ClientSource::Container(id) => self.containers.get(id),
            ClientSource::Unknown | ClientSource::Process(_) => None,
        };
        found.copied().unwrap_or(Locality::HOST)
    }

    /// The locality of this server; `None` if the agent does not know its address.
    pub fn of_member(&self, member: &Member) -> Option<Locality> {
        let at = member.socket.as_ref().and_then(SockAddr::as_socket)?;
        self.addresses.get(&at.ip().to_canonical()).copied()
    }

    /// How near a member is to a client, and from what that is known.
    pub fn rank(&self, client: Locality, member: &Member) -> (Rank, DistanceSource) {
        match self.of_member(member) {
            Some(server) => (self.between(client, server), DistanceSource::Agent),
            None => {
                let rank = Rank {
                    distance: member.distance,
                    latency: self.farthest,
                };
                (rank, member.distance_source)
            }
        }
    }

    /// Every place that a client or server has.
    pub fn used(&self) -> BTreeSet<Locality> {
        let all = self.addresses.values().chain(self.containers.values());
        all.copied().chain([Locality::HOST]).collect()
    }

    /// How many containers, and how many addresses, the agent tells of.
    pub fn counts(&self) -> (usize, usize) {
        (self.containers.len(), self.addresses.len())
    }

    /// A locality in words for operators.
    pub fn describe(&self, locality: Locality) -> String {
        let nodes = self.nodes_of(locality);
        match (&nodes[..], self.socket_of(locality)) {
            ([], _) => "anywhere on this host".into(),
            ([node], _) if locality.reach() == Distance::NumaNode => format!("NUMA node {node}"),
            (_, Some(socket)) => format!("socket {socket}"),
            (_, None) => "anywhere on this host".into(),
        }
    }

    /// The NUMA nodes of a place; none: it may be any.
    pub fn nodes_of(&self, locality: Locality) -> Vec<u16> {
        let node = |(&id, node): (&u16, &NumaNode)| {
            let socket = node.socket.map(Locality::socket);
            (Locality::node(id) == locality || socket == Some(locality)).then_some(id)
        };
        self.nodes.iter().filter_map(node).collect()
    }

    /// The socket of a place, as the kernel numbers it.
    pub fn socket_of(&self, locality: Locality) -> Option<u32> {
        let node = self.nodes_of(locality).first().copied()?;
        self.nodes.get(&node)?.socket_id
    }

    fn between(&self, client: Locality, server: Locality) -> Rank {
        let (from, to) = (self.nodes_of(client), self.nodes_of(server));
        let pairs = from.iter().flat_map(|from| to.iter().map(move |to| (from, to)));
        let latency = pairs.map(|(from, to)| self.latency(*from, *to)).max();
        let socket = |locality| self.socket_rank(locality);
        let distance = match (from.is_empty() || to.is_empty(), client == server) {
            (true, _) => Distance::Host,
            (false, true) => client.reach(),
            (false, false) if socket(client).is_some() && socket(client) == socket(server) => {
                Distance::Socket
            }
            _ => Distance::Host,
        };
        Rank {
            distance,
            latency: latency.unwrap_or(self.farthest),
        }
    }

    fn socket_rank(&self, locality: Locality) -> Option<u16> {
        let node = self.nodes_of(locality).first().copied()?;
        self.nodes.get(&node)?.socket
    }

    fn latency(&self, from: u16, to: u16) -> u16 {
        let told = self.nodes.get(&from).and_then(|node| node.latency.get(&to));
        told.copied().unwrap_or(match from == to {
            true => LOCAL,
            false => self.farthest,
        })
    }
}

fn nodes(told: Vec<SnapshotNode>) -> Result<BTreeMap<u16, NumaNode>, BadSnapshot> {
    let sockets: BTreeSet<u32> = told
        .iter()
        .filter_map(|node| match node.sockets[..] {
            [only] => Some(only),
            _ => None,
        })
        .collect();
    let rank = |id: u32| sockets.iter().position(|&socket| socket == id);
    let mut nodes = BTreeMap::new();
    for node in told {
        if usize::from(node.id) >= NODES {
            return Err(BadSnapshot::Number(node.id));
        }
        let socket_id = match node.sockets[..] {
            [only] => Some(only),
            _ => None,
        };
        let made = NumaNode {
            socket: socket_id.and_then(rank).map(|rank| rank as u16),
            socket_id,
            latency: node.distances,
        };
        if nodes.insert(node.id, made).is_some() {
            return Err(BadSnapshot::Twice(node.id));
        }
    }
    Ok(nodes)
}

/// Parses a container's ID of 64 hexadecimal digits; any other name is no container's.
fn container_id(text: &str) -> Option<ContainerId> {
    let digits: &[u8; 64] = text.as_bytes().try_into().ok()?;
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut id = [0; 32];
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(id)
}

impl ClientSource {
    /// The container of a process, by the text of its `/proc/PID/cgroup`: the outermost one, which is the one
    /// that the runtime has made. Runtimes name a container's cgroup by its identity, systemd's with a word
    /// before it and `.scope` behind.
    pub fn of_cgroup(text: &str) -> Self {
        let names = text.lines().flat_map(|line| line.split('/').skip(1));
        let ids = names.filter_map(|name| {
            let name = name.strip_suffix(".scope").unwrap_or(name);
            container_id(name.rsplit('-').next().unwrap_or(name))
        });
        ids.map(Self::Container).next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
