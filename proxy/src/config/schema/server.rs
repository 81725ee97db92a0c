//! Servers of pools.

/// One server.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// `host:port`, `[v6]:port` or `unix:/path`. The address of a host name may change.
    pub address: String,
    /// The name in consistent hashing. `None`: the address as written, without port 11211, as ketama does.
    pub name: Option<String>,
    /// Share of the keys relative to the others.
    pub weight: f64,
    /// The failure domain, compared with `--zone`.
    pub zone: Option<String>,
    /// Its pod. `None`: the API server of Kubernetes has not named it.
    pub pod: Option<ServerPod>,
}

/// The pod of a server, as the API server of Kubernetes names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerPod {
    /// Its unique id. Another pod at the same address, or with the same name, is another process. `None`: the
    /// endpoint is no pod's.
    pub uid: Option<String>,
    /// Its node.
    pub node: Option<String>,
    /// It is about to end: it is given nothing new.
    pub ends: bool,
    /// It is not ready, and others are.
    pub is_away: bool,
}
