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
}
