//! What a configuration says, whichever front door it came through: our YAML and mcrouter's JSON both end in these types.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, time::Duration};

/// A whole configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Worker threads; none = one for each processor this process may use.
    pub workers: Option<usize>,
    /// Where clients connect.
    pub listeners: Vec<Listener>,
    /// Where operators look; none = no admin port.
    pub admin: Option<String>,
    /// Named sets of servers.
    pub pools: BTreeMap<String, Pool>,
    /// Named routes; a listener names the one it enters.
    pub routes: BTreeMap<String, Route>,
    /// Bounds on what clients may take.
    pub limits: Limits,
    /// The in-process store that every `embedded` route of this configuration shares.
    pub embedded: Embedded,
    /// Where it is kept which copies owe writes; none = nowhere, forgotten with the process.
    pub state: Option<PathBuf>,
}

/// An address that speaks one protocol and enters one route.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// `host:port`, `[v6]:port` or `unix:/path`.
    pub address: String,
    /// Where its requests enter.
    pub route: Route,
}

/// A named set of servers.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// Where the list of servers comes from.
    pub source: Source,
    /// How a key chooses a server where a route does not say otherwise.
    pub hash: Hash,
    /// Time for a reply, from the moment the request was handed to the connection.
    pub timeout: Duration,
    /// Time for a connection to be made.
    pub connect_timeout: Duration,
    /// When a server is left out.
    pub eject: Eject,
    /// mcrouter: `/region/cluster/` is sent to the server with the key.
    pub keep_routing_prefix: bool,
    /// Every server holds a copy of everything; none: each holds a share of the keys.
    pub replicated: Option<Replicated>,
}

impl Pool {
    /// These servers and the defaults.
    pub fn of(servers: Vec<Server>) -> Self {
        Self {
            source: Source::Static(servers),
            hash: Hash::of(Algorithm::Ketama),
            timeout: Self::TIMEOUT,
            connect_timeout: Self::CONNECT_TIMEOUT,
            eject: Eject::DEFAULT,
            keep_routing_prefix: false,
            replicated: None,
        }
    }

    /// Default of `timeout`.
    pub const TIMEOUT: Duration = Duration::from_secs(1);
    /// Default of `connect_timeout`.
    pub const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
}

/// How a pool of copies is kept in agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replicated {
    /// Copies that must have taken a write; none = a majority of the pool.
    pub min_acks: Option<u32>,
    /// What becomes of a copy that missed writes.
    pub rejoin: Rejoin,
    /// A copy that is named no more and returns within this time is the same copy; zero = it is a new one.
    pub grace: Duration,
    /// Values that a command computes (add, cas, incr, append, touch, …) are decided at one copy and passed on to the others.
    pub decide_at_home: bool,
}

impl Replicated {
    /// A majority, repair, a minute, one place that decides.
    pub const DEFAULT: Self = Self {
        min_acks: None,
        rejoin: Rejoin::Repair,
        grace: Duration::from_secs(60),
        decide_at_home: true,
    };

    /// Copies of `pool` that must have taken a write.
    pub fn acks_of(&self, pool: usize) -> usize {
        self.min_acks.map_or(pool / 2 + 1, |acks| acks as usize).max(1)
    }
}

/// What becomes of a copy that missed writes, before it is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejoin {
    /// The keys that it owes are deleted there; all of it is flushed when they are not all known.
    Repair,
    /// It is flushed.
    Flush,
    /// Nothing: it is trusted to hold what it should.
    Trust,
    /// It is not read before it has been restarted.
    Wait,
}

/// Where a pool's list of servers comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Written in the configuration.
    Static(Vec<Server>),
    /// A file, one server a line, followed by change.
    File(PathBuf),
    /// What DNS answers to a question that is asked again and again.
    Dns(Dns),
}

/// A question to DNS whose answer is a list of servers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dns {
    /// Asked as it stands, without search domains.
    pub name: String,
    /// Which records name servers.
    pub record: Record,
    /// Time from one question to the next, whatever the TTL says.
    pub interval: Duration,
    /// Who is asked; none = whom the system asks, after `/etc/hosts`.
    pub server: Option<SocketAddr>,
}

impl Dns {
    /// Default of `interval`.
    pub const INTERVAL: Duration = Duration::from_secs(1);
}

/// Records of DNS that name servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Record {
    /// IPv4 addresses, and the port there.
    A(u16),
    /// IPv6 addresses, and the port there.
    Aaaa(u16),
    /// Names, each with port, weight and priority.
    Srv,
}

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

/// When a server is left out, and when it is asked again.
#[derive(Clone, Debug, PartialEq)]
pub struct Eject {
    /// Failures in a row, counted for the process; 0 = never.
    pub failures: u32,
    /// First probe after the ejection; doubled after each failed one.
    pub probe_initial: Duration,
    /// Longest time between probes.
    pub probe_max: Duration,
    /// When more than this share of the pool is ejected, all are asked again (fail-open); 1 = never.
    pub fail_open_above: f64,
}

impl Eject {
    /// Three failures, probes from 1 s to 30 s apart, no fail-open.
    pub const DEFAULT: Self = Self {
        failures: 3,
        probe_initial: Duration::from_secs(1),
        probe_max: Duration::from_secs(30),
        fail_open_above: 1.0,
    };
}

/// How a key chooses one of several children.
#[derive(Clone, Debug, PartialEq)]
pub struct Hash {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Appended to the routing key before hashing.
    pub salt: String,
    /// Two characters; only what stands between them in the key is hashed, if anything does.
    pub tag: Option<[u8; 2]>,
    /// The key ends for hashing before the first `|#|`.
    pub stop: bool,
    /// Weights by child where the children are not servers with weights of their own.
    pub weights: Option<Vec<f64>>,
    /// Names by child, for rendezvous.
    pub tags: Option<Vec<String>>,
    /// An ejected child is left out and its keys go to the others; else its keys fail (or fail over).
    pub eject: bool,
}

impl Hash {
    /// The algorithm alone: the whole key but what follows `|#|`, ejected children keep their keys.
    pub const fn of(algorithm: Algorithm) -> Self {
        Self {
            algorithm,
            salt: String::new(),
            tag: None,
            stop: true,
            weights: None,
            tags: None,
            eject: false,
        }
    }
}

/// Hash algorithms by the names users know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Consistent, libmemcached's points (40 hashes of 4 points a server, weighted as libmemcached does).
    Ketama,
    /// Consistent, twemproxy's points.
    KetamaTwemproxy(KeyHash),
    /// mcrouter's default (furc).
    Ch3,
    /// Ch3 with weights 0..1.
    WeightedCh3,
    /// mcrouter's Crc32: (crc32 & 0x7fffffff) mod n.
    Crc32,
    /// mcrouter's ConstShard.
    ConstShard,
    /// Highest random weight by tags or names.
    Rendezvous,
    /// Rendezvous with weights.
    WeightedRendezvous,
    /// Lamping and Veach's jump hash over XXH3.
    Jump,
    /// hash mod total weight, servers repeated by weight.
    Modula(KeyHash),
    /// A random live one.
    Random,
}

pub use proxima_wire::hash::KeyHash;

/// Where a route's requests may go on.
#[derive(Clone, Debug, PartialEq)]
pub enum Children {
    /// Every member of this pool, in the pool's order.
    Pool(String),
    /// These routes.
    List(Vec<Route>),
}

/// A node of the tree.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // the handles' own files say what they do
pub enum Route {
    /// The route of that name, or else the pool of that name (as `Pool`).
    Named(String),
    /// One member of the pool by its hash.
    Pool(String),
    /// One server: `host:port`, or `pool/name`.
    Member(String),
    Embedded,
    Null,
    Error(String),
    Hash {
        children: Children,
        hash: Option<Hash>,
    },
    Nearest(Children),
    ByOperation {
        operations: BTreeMap<String, Route>,
        default: Option<Box<Route>>,
    },
    ByPrefix {
        prefixes: BTreeMap<String, Route>,
        default: Option<Box<Route>>,
    },
    /// First match wins; patterns are globs (`*`, `?`).
    ByKeyPattern {
        patterns: Vec<(String, Route)>,
        default: Option<Box<Route>>,
    },
    Random(Children),
    RoundRobin(Children),
    HostId {
        children: Children,
        salt: String,
    },
    AllSync(Children),
    AllMajority(Children),
    AllFastest(Children),
    AllInitial(Children),
    AllAsync(Children),
    Failover {
        children: Children,
        errors: FailoverErrors,
        limit: Option<FailoverLimit>,
    },
    MissFailover {
        children: Children,
        best_on_error: bool,
    },
    FailoverWithTtl {
        normal: Box<Route>,
        failover: Children,
        ttl: u32,
        errors: FailoverErrors,
    },
    ModifyKey {
        child: Box<Route>,
        ensure_prefix: String,
        replace_prefix: Option<String>,
        in_place: bool,
        suffix: String,
    },
    ModifyTtl {
        child: Box<Route>,
        ttl: i64,
        action: TtlAction,
    },
    Log(Box<Route>),
    Fault {
        child: Box<Route>,
        fault: Fault,
    },
    /// mcrouter's prefixes: `/region/cluster/` → route, with the default one for keys without.
    ByRoutingPrefix {
        routes: BTreeMap<String, Route>,
        default: String,
    },
}

impl Route {
    /// Deeper trees, names followed, are refused: the state of a walk stays small.
    pub const DEPTH: usize = 64;

    /// The routes that stand directly in this one; a pool's members and named routes are not followed.
    pub fn children(&self) -> Vec<&Route> {
        fn listed(children: &Children) -> Vec<&Route> {
            match children {
                Children::Pool(_) => Vec::new(),
                Children::List(routes) => routes.iter().collect(),
            }
        }
        match self {
            Self::Named(_)
            | Self::Pool(_)
            | Self::Member(_)
            | Self::Embedded
            | Self::Null
            | Self::Error(_) => Vec::new(),
            Self::Hash { children, .. }
            | Self::Nearest(children)
            | Self::Random(children)
            | Self::RoundRobin(children)
            | Self::HostId { children, .. }
            | Self::AllSync(children)
            | Self::AllMajority(children)
            | Self::AllFastest(children)
            | Self::AllInitial(children)
            | Self::AllAsync(children)
            | Self::Failover { children, .. }
            | Self::MissFailover { children, .. } => listed(children),
            Self::FailoverWithTtl { normal, failover, .. } => {
                [&**normal].into_iter().chain(listed(failover)).collect()
            }
            Self::ByOperation {
                operations: routes,
                default,
            }
            | Self::ByPrefix {
                prefixes: routes,
                default,
            } => routes.values().chain(default.as_deref()).collect(),
            Self::ByKeyPattern { patterns, default } => patterns
                .iter()
                .map(|(_, route)| route)
                .chain(default.as_deref())
                .collect(),
            Self::ModifyKey { child, .. } | Self::ModifyTtl { child, .. } | Self::Fault { child, .. } => {
                vec![child]
            }
            Self::Log(child) => vec![child],
            Self::ByRoutingPrefix { routes, .. } => routes.values().collect(),
        }
    }
}

/// Which errors of a reply make a failover go on; by group, none = the defaults (`Outcome::is_failover`).
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct FailoverErrors {
    pub gets: Option<Vec<proxima_wire::message::Outcome>>,
    pub updates: Option<Vec<proxima_wire::message::Outcome>>,
    pub deletes: Option<Vec<proxima_wire::message::Outcome>>,
}

/// mcrouter's failover_limit: each request earns `rate` tokens, each failover costs one.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct FailoverLimit {
    pub rate: f64,
    pub burst: f64,
}

/// What modify_ttl does with the expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TtlAction {
    /// Always this one.
    Set,
    /// The smaller one; 0 (never) counts as the largest.
    Min,
}

/// What a fault route does to requests, for tests of clients.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fault {
    /// Hold the request this long before it goes on.
    pub delay: Duration,
    /// Share of requests that are answered with an error, 0..1.
    pub error_rate: f64,
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
                address: "127.0.0.1:11211".to_owned(),
                route: Route::Embedded,
            }],
            admin: Some("127.0.0.1:9150".to_owned()),
            pools: BTreeMap::new(),
            routes: BTreeMap::new(),
            limits: Limits::DEFAULT,
            embedded: Embedded::DEFAULT,
            state: None,
        }
    }
}
