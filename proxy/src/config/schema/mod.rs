//! The configuration as types. Every front door ends in them: our YAML, mcrouter's JSON and twemproxy's YAML.

mod below;
mod dedicated;
mod discovery;
mod door;
mod fleet;
mod freshness;
mod health;
mod hot_keys;
mod login;
mod near;
mod near_rules;
mod pool;
mod reply_style;
mod route_words;
mod secret;
mod server;
mod service;
mod slow_requests;
mod socket;
mod source;
mod spool;
mod tls;
mod users;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use proxima_wire::message::Class;

pub use self::{
    dedicated::{Dedicated, Reset},
    discovery::Discovery,
    door::{Door, Reads, Writes},
    fleet::{Fleet, FleetPeers, PeerTls, Peers, Role},
    health::{Drain, HealthCheck, HealthListener, Network},
    hot_keys::HotKeys,
    login::{Access, Login, Password, PasswordSource, PlainLogins},
    near::{NearCache, NearKept, Scripts},
    pool::{Eject, EjectBy, KeepAlive, OneWriter, Pool, Rejoin, Replicated},
    reply_style::ReplyStyle,
    route_words::RouteWords,
    secret::Secret,
    server::{Server, ServerPod},
    service::{Service, ServicePort},
    slow_requests::{ShownKeys, SlowRequests},
    socket::SocketOptions,
    source::{Comparable, Dns, Endpoint, Question, Record, ServerSource, Source},
    spool::SpoolOptions,
    tls::{ClientTls, Identity, ServerTls, Verify},
    users::{KnownUser, KnownUsers, Users},
};
pub use super::{
    hash::{Algorithm, Hash, KeyHash, OnEject},
    protocol::Protocol,
    routes::{
        BadOriginUrl, Children, Consistency, ErrorReply, FailoverErrors, FailoverLimit, FailoverPolicy,
        FailoverRules, HashOrder, Leaf, NearKeys, NearOrigin, NearRoute, NearRule, NearSource, NearValues,
        OfLogin, OriginUrl, Queue, Rate, Route, Shadow, ShadowKeys, ShardCopies, TtlAction,
    },
};

/// A whole configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Worker threads. `None`: one for each processor that this process may use.
    pub workers: Option<usize>,
    /// Where clients connect.
    pub listeners: Vec<Listener>,
    /// The address of the admin port. `None`: no admin port.
    pub admin: Option<String>,
    /// Further names by which operators reach the admin port.
    pub admin_hosts: Vec<String>,
    /// TLS at the admin port. `None`: it speaks plainly.
    pub admin_tls: Option<ServerTls>,
    /// The file with the tokens of those who may change something there. `None`: whoever reaches it may.
    pub admin_tokens: Option<PathBuf>,
    /// How keys are told there that clients have asked for.
    pub sampled_keys: ShownKeys,
    /// Where load balancers ask whether clients may be sent here.
    pub health: Vec<HealthListener>,
    /// How clients are led away.
    pub drain: Drain,
    /// Named sets of servers.
    pub pools: BTreeMap<String, Pool>,
    /// Named routes; a listener names the one it enters.
    pub routes: BTreeMap<String, Route>,
    /// Commands of Redis that the program does not know, by their names in small letters.
    pub commands: BTreeMap<String, DeclaredCommand>,
    /// Limits on clients.
    pub limits: Limits,
    /// The in-process store that every `embedded` route of this configuration shares.
    pub embedded: Embedded,
    /// The near cache, which every `near` route of this configuration shares.
    pub near: NearCache,
    /// The state file, which records which copies have missed writes. `None`: this is forgotten with the
    /// process.
    pub state: Option<PathBuf>,
    /// The source of the NUMA nodes of clients and servers. `None`: all servers on this host are equally
    /// near.
    pub nodes: Option<Nodes>,
    /// The fleet that this proxy is a peer of. `None`: it keeps its promise alone.
    pub fleet: Option<Fleet>,
    /// When keys that are asked for most are counted.
    pub hot_keys: HotKeys,
    /// Which requests are kept as slow. `None`: none are.
    pub slow_requests: Option<SlowRequests>,
    /// Where deletes are kept that servers have not taken, of pools that have a name there. `None`: nowhere.
    pub spool: Option<SpoolOptions>,
}

/// A command that the configuration declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeclaredCommand {
    /// The number of its words with its name; negative: at least.
    pub arity: i32,
    /// The positions of its first key, of its last (negative: counted from the end), and the step; all 0: it
    /// has no keys.
    pub keys: [i32; 3],
    /// What it does to the data.
    pub class: Class,
}

/// The source of the NUMA nodes of clients and servers.
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

/// A listener: an address with its protocol and its route.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// The protocol of its clients.
    pub protocol: Protocol,
    /// `host:port`, `[v6]:port`, `unix:/path`, or `fd:N` for an inherited socket.
    pub address: String,
    /// The route of its requests.
    pub route: Route,
    /// What its clients must say before they are served.
    pub access: Access,
    /// Permissions of the file, if the listener is a Unix socket.
    pub permissions: Permissions,
    /// What clients are told of the proxies that they may use. `None`: nothing.
    pub discovery: Option<Discovery>,
    /// How its socket is made.
    pub socket: SocketOptions,
    /// How it words replies that no server has made.
    pub reply_style: ReplyStyle,
    /// What it serves.
    pub door: Door,
    /// TLS with its clients. `None`: they speak plainly.
    pub tls: Option<ServerTls>,
    /// The version of servers that its clients are greeted with before any server has told its own, where the
    /// protocol greets clients. `None`: that of the protocol.
    pub server_version: Option<String>,
}

/// Permissions of a Unix socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// The mode as `chmod` takes it. `None`: what the umask leaves.
    pub mode: Option<u32>,
    /// The owner. `None`: the process' own.
    pub owner: Option<Ownership>,
}

/// The owner of a file.
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
    /// A number as the kernel knows it.
    Number(u32),
    /// A name in `/etc/passwd` or `/etc/group`.
    Name(String),
}

/// Limits on clients, and on connections to servers.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Connections of clients, all workers together.
    pub clients: usize,
    /// Requests of one client that may wait for replies. At this limit the client is not read.
    pub requests_in_flight: usize,
    /// Bytes buffered for one connection. At this limit it is not read.
    pub connection_bytes: usize,
    /// Bytes of all buffers. At this limit requests wait for room.
    pub total_bytes: usize,
    /// The largest value.
    pub value_bytes: usize,
    /// Time after which a client that neither sends nor waits for a reply is closed; 0: never.
    pub idle: Duration,
    /// Time after which a client in a transaction that neither sends nor waits for a reply is closed; 0:
    /// never.
    pub idle_in_transaction: Duration,
    /// Time after which a server is asked to end a statement of MySQL; 0: never.
    pub statement_timeout: Duration,
    /// The greatest age of a client, at which it is closed when nothing is due to it; 0: there is none.
    pub age: Duration,
    /// Time after which a client that takes no bytes that wait for it is closed.
    pub write_timeout: Duration,
    /// Time from the first byte of a request to its last, after which the client is closed.
    pub request_timeout: Duration,
    /// Logins of clients at servers that one worker knows at a time.
    pub logins: usize,
    /// Bytes a second that a client in the middle of a large value must move while others wait for its place.
    pub minimum_rate: usize,
    /// Time after which a connection to a server is closed on which nothing was asked; 0: never.
    pub server_idle: Duration,
}

impl Limits {
    /// Limits that suit a machine of today.
    pub const DEFAULT: Self = Self {
        clients: 10_000,
        requests_in_flight: 10_000,
        connection_bytes: 1 << 20,
        total_bytes: 1 << 30,
        value_bytes: 64 << 20,
        idle: Duration::ZERO,
        idle_in_transaction: Duration::ZERO,
        statement_timeout: Duration::ZERO,
        age: Duration::ZERO,
        write_timeout: Duration::from_secs(10),
        request_timeout: Duration::from_secs(30),
        logins: 256,
        minimum_rate: 64 << 10,
        server_idle: Duration::ZERO,
    };
}

/// The in-process store.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedded {
    /// Bytes of keys, values and their overhead.
    pub memory: usize,
}

impl Embedded {
    /// The memory that memcached takes by default.
    pub const DEFAULT: Self = Self { memory: 64 << 20 };
}

impl Default for Config {
    /// The embedded store on memcached's port, for this machine only.
    fn default() -> Self {
        Self {
            workers: None,
            listeners: vec![Listener {
                protocol: Protocol::MEMCACHED,
                address: "127.0.0.1:11211".to_owned(),
                route: Route::Leaf(Leaf::Embedded),
                access: Access::Open,
                permissions: Permissions::default(),
                discovery: None,
                socket: SocketOptions::default(),
                reply_style: ReplyStyle::Own,
                door: Door::default(),
                tls: None,
                server_version: None,
            }],
            admin: Some("127.0.0.1:9150".to_owned()),
            admin_hosts: Vec::new(),
            admin_tls: None,
            admin_tokens: None,
            sampled_keys: ShownKeys::Plain,
            health: Vec::new(),
            drain: Drain::DEFAULT,
            pools: BTreeMap::new(),
            routes: BTreeMap::new(),
            commands: BTreeMap::new(),
            limits: Limits::DEFAULT,
            embedded: Embedded::DEFAULT,
            near: NearCache::default(),
            state: None,
            nodes: None,
            fleet: None,
            hot_keys: HotKeys::Watched,
            slow_requests: None,
            spool: None,
        }
    }
}
