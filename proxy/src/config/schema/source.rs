//! Sources of servers. `config/source/` has the kinds of them.

use std::{
    any::Any,
    fmt::Debug,
    net::SocketAddr,
    ops::Deref,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use super::{ClientTls, Server, Service};
use crate::config::ConfigError;

/// The questions of the program to a source of servers.
pub trait ServerSource: Any + Comparable + Debug + Send + Sync {
    /// The servers as they are now. The list is empty where the network is asked.
    ///
    /// # Errors
    /// The source is refused. It never turns a failure into an empty list.
    fn read(&self) -> Result<Vec<Server>, ConfigError>;

    /// The servers that the configuration itself names, which stay as they are. `None`: they come and go.
    fn fixed(&self) -> Option<&[Server]> {
        None
    }

    /// The server at this proxy's side, or none, where the others are those of the fleet's other peers.
    /// `None`: the servers are all of the pool.
    fn own(&self) -> Option<&[Server]> {
        None
    }

    /// Beside [`own`](Self::own), the servers of all peers, where the configuration lists them.
    fn listed_copies(&self) -> &[Server] {
        &[]
    }

    /// The file that names the servers, to be read again when it changes.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// The question over the network that names the servers, to be asked again and again.
    fn question(&self) -> Option<Question> {
        None
    }

    /// Whether the servers come over the network, so that a pool may have none yet.
    fn may_be_empty(&self) -> bool {
        self.question().is_some()
    }

    /// The same source, where the servers of the pool have this TLS. `None`: it is the same without.
    fn behind(&self, _tls: &ClientTls) -> Option<Source> {
        None
    }

    /// The same source with its paths relative to `folder`. `None`: it has no paths.
    fn below(&self, _folder: &Path) -> Option<Source> {
        None
    }
}

/// Compares sources of any kind.
pub trait Comparable {
    /// Whether the other one is of the same kind and says the same.
    fn equals(&self, other: &dyn Any) -> bool;
}

impl<T: Any + PartialEq> Comparable for T {
    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref() == Some(self)
    }
}

/// Where a pool's list of servers comes from.
#[derive(Clone, Debug)]
pub struct Source(Arc<dyn ServerSource>);

impl Source {
    /// A source of this kind.
    pub fn new(source: impl ServerSource) -> Self {
        Self(Arc::new(source))
    }
}

impl Deref for Source {
    type Target = dyn ServerSource;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        let other: &dyn Any = &*other.0;
        self.0.equals(other)
    }
}

/// Servers that the configuration itself names.
impl ServerSource for Vec<Server> {
    fn read(&self) -> Result<Vec<Server>, ConfigError> {
        Ok(self.clone())
    }

    fn fixed(&self) -> Option<&[Server]> {
        Some(self)
    }
}

/// A question over the network whose answer is a list of servers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// DNS is asked.
    Dns(Dns),
    /// The configuration endpoint of a cluster is asked.
    Endpoint(Endpoint),
    /// The API server of Kubernetes is asked for the endpoints of a Service that are servers.
    Service(Service),
    /// The API server of Kubernetes is asked for all endpoints of a Service, which are peers.
    Peers(Service),
}

impl Question {
    /// The one that is asked, as messages name it.
    pub fn asked(&self) -> &'static str {
        match self {
            Self::Dns(_) => "DNS",
            Self::Endpoint(_) => "the endpoint",
            Self::Service(_) | Self::Peers(_) => "the API server",
        }
    }

    /// The name that is asked for, or who is asked by it.
    pub fn name(&self) -> &str {
        match self {
            Self::Dns(dns) => &dns.name,
            Self::Endpoint(endpoint) => &endpoint.address,
            Self::Service(service) | Self::Peers(service) => &service.name,
        }
    }
}

/// A configuration endpoint, which tells the nodes of its cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// `host:port`. The address of the host is looked up before each question.
    pub address: String,
    /// Time from one question to the next.
    pub interval: Duration,
    /// The file in which the last good list is kept. `None`: one in the folder for what the process keeps.
    pub keep: Option<PathBuf>,
    /// TLS with it, as with the nodes. `None`: it speaks plainly.
    pub tls: Option<ClientTls>,
}

impl Endpoint {
    /// Default of `interval`, as the cluster's own clients have it.
    pub const INTERVAL: Duration = Duration::from_secs(60);
}

/// A question to DNS whose answer is a list of servers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dns {
    /// The name that is asked for, as it stands, without search domains.
    pub name: String,
    /// Which records name servers.
    pub record: Record,
    /// Time from one question to the next, whatever the TTL says.
    pub interval: Duration,
    /// The DNS server to ask. `None`: `/etc/hosts`, then the servers of the system's resolver.
    pub server: Option<SocketAddr>,
}

impl Dns {
    /// Default of `interval`.
    pub const INTERVAL: Duration = Duration::from_secs(1);
}

/// Records of DNS that name servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Record {
    /// IPv4 addresses, and the port of all servers.
    A(u16),
    /// IPv6 addresses, and the port of all servers.
    Aaaa(u16),
    /// Names, each with port, weight and priority.
    Srv,
}
