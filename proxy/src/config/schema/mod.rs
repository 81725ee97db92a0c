//! What a configuration says, whichever front door it came through: our YAML and mcrouter's JSON both end in these types.

mod hash;
mod pool;
mod route;
mod server;
mod source;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

pub use self::{
    hash::{Algorithm, Hash, KeyHash},
    pool::{Eject, Pool, Rejoin, Replicated},
    route::{Children, FailoverErrors, FailoverLimit, Fault, Route, TtlAction},
    server::Server,
    source::{Comparable, Dns, Record, ServerSource, Source},
};

/// A whole configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Worker threads; none = one for each processor this process may use.
    pub workers: Option<usize>,
    /// Where clients connect.
    pub listeners: Vec<Listener>,
    /// Where operators look; none = no admin port.
    pub admin: Option<String>,
    /// Names by which operators ask it, beside those that are safe anyway.
    pub admin_hosts: Vec<String>,
    /// Named sets of servers.
    pub pools: BTreeMap<String, Pool>,
    /// Named routes; a listener names the one it enters.
    pub routes: BTreeMap<String, Route>,
    /// Bounds on what clients may take.
    pub limits: Limits,
    /// The in-process store that every `embedded` route of this configuration shares.
    pub embedded: Embedded,
    /// State file; `None`: what copies missed is forgotten with the process.
    pub state: Option<PathBuf>,
    /// Who tells on which NUMA node clients and servers of this host are; `None`: nobody, and all of them are equally near.
    pub nodes: Option<Nodes>,
}

/// Who tells on which NUMA node clients and servers of this host are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// The node agent's Unix socket.
    pub from: PathBuf,
    /// Its last word holds for so long after it is gone.
    pub grace: Duration,
}

impl Nodes {
    /// The socket of a node agent that was told no other.
    pub const SOCKET: &'static str = "/run/proxima-agent/nodes.sock";
    /// Longer than an update of the agent takes.
    pub const GRACE: Duration = Duration::from_secs(60);
}

/// A protocol, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol(pub &'static str);

impl Protocol {
    /// memcached's, text and meta commands: that of whoever names none.
    pub const MEMCACHED: Self = Self("memcached");
}

/// An address that speaks one protocol and enters one route.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// What its clients speak.
    pub protocol: Protocol,
    /// `host:port`, `[v6]:port` or `unix:/path`.
    pub address: String,
    /// Where its requests enter.
    pub route: Route,
    /// Of a Unix socket.
    pub permissions: Permissions,
}

/// Who may connect to a Unix socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// As `chmod` takes it; none = what the umask leaves.
    pub mode: Option<u32>,
    /// None = the process' own.
    pub owner: Option<Ownership>,
}

/// Whose a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// Its user; `None`: the process'.
    pub user: Option<Id>,
    /// Its group; `None`: the process'.
    pub group: Option<Id>,
}

/// A user or a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Id {
    /// As the kernel knows it.
    Number(u32),
    /// Looked up in `/etc/passwd` or `/etc/group`.
    Name(String),
}

/// Bounds on what clients may take.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Connections of clients, all workers together.
    pub clients: usize,
    /// Requests of one client that may wait for replies; reading stops there.
    pub requests_in_flight: usize,
    /// Bytes buffered for one connection before reading stops.
    pub connection_bytes: usize,
    /// Bytes buffered in all before new requests are refused.
    pub total_bytes: usize,
    /// The largest value.
    pub value_bytes: usize,
    /// A client that neither sends nor is answered for this long is closed; 0 = never.
    pub idle: Duration,
    /// A client that takes nothing of what it is due for this long is closed.
    pub write_timeout: Duration,
    /// A client that has begun a request and not sent the rest after this long is closed.
    pub request_timeout: Duration,
    /// Bytes a second: a client in the middle of a large value that moves less loses its place to others who want it.
    pub minimum_rate: usize,
}

impl Limits {
    /// What an operator would choose for a machine of today.
    pub const DEFAULT: Self = Self {
        clients: 10_000,
        requests_in_flight: 10_000,
        connection_bytes: 1 << 20,
        total_bytes: 1 << 30,
        value_bytes: 64 << 20,
        idle: Duration::ZERO,
        write_timeout: Duration::from_secs(10),
        request_timeout: Duration::from_secs(30),
        minimum_rate: 64 << 10,
    };
}

/// The in-process store.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedded {
    /// Bytes of keys, values and their overhead.
    pub memory: usize,
}

impl Embedded {
    /// As much as memcached takes unless told otherwise.
    pub const DEFAULT: Self = Self { memory: 64 << 20 };
}

impl Default for Config {
    /// What runs when nothing is configured: the embedded store on memcached's port, for this machine only.
    fn default() -> Self {
        Self {
            workers: None,
            listeners: vec![Listener {
                protocol: Protocol::MEMCACHED,
                address: "127.0.0.1:11211".to_owned(),
                route: Route::Embedded,
                permissions: Permissions::default(),
            }],
            admin: Some("127.0.0.1:9150".to_owned()),
            admin_hosts: Vec::new(),
            pools: BTreeMap::new(),
            routes: BTreeMap::new(),
            limits: Limits::DEFAULT,
            embedded: Embedded::DEFAULT,
            state: None,
            nodes: None,
        }
    }
}
