//! Servers of pools.

/// One server.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// `host:port`, `[v6]:port` or `unix:/path`. What a host's name stands for may change.
    pub address: String,
    /// What consistent hashing knows it by; default: its address as written (without port 11211 for ketama's sake).
    pub name: Option<String>,
    /// Share of the keys relative to the others.
    pub weight: f64,
    /// Failure domain, compared with `--zone`.
    pub zone: Option<String>,
}
