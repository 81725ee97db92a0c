//! Routes, which form the tree of a configuration.

use std::{collections::BTreeMap, time::Duration};

use proxima_wire::message::Outcome;

use super::{Hash, NearOrigin, NearRule};

/// The children of a route.
#[derive(Clone, Debug, PartialEq)]
pub enum Children {
    /// Every member of this pool, in the pool's order.
    Pool(String),
    /// These routes.
    List(Vec<Route>),
}

/// A node of the tree.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // the handles' own files describe them
pub enum Route {
    /// The route of that name, or else the pool of that name, as `Pool`.
    Named(String),
    /// One member of the pool by its hash.
    Pool(String),
    /// One server: `host:port`, or `pool/name`.
    Member(String),
    Embedded,
    Null,
    /// mcrouter's DevNullRoute: the same as null, and counted.
    Discard,
    Error(ErrorReply),
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
    /// The child by what a client has said of itself.
    ByLogin {
        of: OfLogin,
        names: BTreeMap<String, Route>,
        default: Option<Box<Route>>,
    },
    /// The first pattern that matches wins. Patterns are globs (`*`, `?`).
    ByKeyPattern {
        patterns: Vec<(String, Route)>,
        default: Option<Box<Route>>,
    },
    /// Keeps deletes that a server has not taken, under the name of a pool.
    Spool {
        child: Box<Route>,
        name: String,
    },
    Random(Children),
    RoundRobin(Children),
    HostId {
        children: Children,
        salt: String,
    },
    ByClient {
        children: Children,
        offset: u64,
    },
    Latest {
        children: Children,
        count: usize,
        /// The weights by child; `None`: all are equal.
        weights: Option<Vec<f64>>,
        salt: String,
        per_worker: bool,
        rules: Box<FailoverRules>,
    },
    AllSync(Children),
    AllMajority(Children),
    AllFastest(Children),
    AllInitial(Children),
    AllAsync(Children),
    Failover {
        children: Children,
        rules: Box<FailoverRules>,
    },
    MissFailover {
        children: Children,
        best_on_error: bool,
    },
    FailoverWithTtl {
        normal: Box<Route>,
        failover: Children,
        ttl: u32,
        rules: Box<FailoverRules>,
    },
    ModifyKey {
        child: Box<Route>,
        /// The routing prefix that servers get which keep it; empty: none. `None`: that of the key.
        routing_prefix: Option<String>,
        ensure_prefix: String,
        replace_prefix: Option<String>,
        in_place: bool,
        suffix: String,
    },
    /// From one route to another, as mcrouter migrates.
    Migrate {
        from: Box<Route>,
        to: Box<Route>,
        /// Seconds since 1970.
        start: u64,
        interval: Duration,
    },
    ShardSplit {
        child: Box<Route>,
        splits: BTreeMap<String, ShardCopies>,
    },
    KeySplit {
        child: Box<Route>,
        copies: u32,
        all_sync: bool,
        first_hit: bool,
    },
    KeyPart {
        child: Box<Route>,
        parts: usize,
        delimiter: u8,
    },
    HashStop {
        child: Box<Route>,
        prefixes: Vec<String>,
    },
    ModifyTtl {
        child: Box<Route>,
        ttl: i64,
        action: TtlAction,
    },
    Shadow {
        child: Box<Route>,
        shadows: Vec<Shadow>,
    },
    RateLimit {
        child: Box<Route>,
        rates: Rates,
        fallback: Option<Box<Route>>,
    },
    OutstandingLimit {
        child: Box<Route>,
        most: usize,
        queue: Option<Queue>,
    },
    /// The first route for these keys, the second one for all others.
    ByKey {
        keys: Vec<String>,
        listed: Box<Route>,
        default: Box<Route>,
    },
    WarmUp {
        cold: Box<Route>,
        warm: Box<Route>,
        /// Seconds that added values live; `None`: as long as in the warm route.
        ttl: Option<i64>,
    },
    SlowWarmUp {
        child: Box<Route>,
        failover: Box<Route>,
        settings: SlowWarmUpSettings,
    },
    Staging {
        warm: Box<Route>,
        staging: Box<Route>,
    },
    L1L2Cache {
        l1: Box<Route>,
        l2: Box<Route>,
        /// Seconds that values live in the first cache.
        ttl: i64,
        /// Seconds that a miss is remembered there, and reads after which it is looked up again.
        misses: Option<(i64, u32)>,
    },
    SizeSplit {
        l1: Box<Route>,
        l2: Box<Route>,
        threshold: usize,
        ttl_threshold: i64,
        failure_ttl: i64,
        both: bool,
        retries: u32,
        /// The error of a second cache that cannot be reached does not name the server, as with mcrouter.
        hides_server: bool,
    },
    BigValue {
        child: Box<Route>,
        threshold: usize,
        batch: u32,
        hides_flag: bool,
    },
    Log(Box<Route>),
    /// Keeps replies of the route below.
    Near(NearRoute),
    Fault {
        child: Box<Route>,
        fault: Fault,
    },
    /// mcrouter's prefixes: `/region/cluster/` → route. The default one serves keys without a prefix, and may
    /// take those with an unknown one.
    ByRoutingPrefix {
        routes: BTreeMap<String, Route>,
        default: String,
        /// Keys that lead to no route go to the default one.
        takes_unknown: bool,
    },
}

/// The route `near`.
#[derive(Clone, Debug, PartialEq)]
pub struct NearRoute {
    /// Where what is not kept comes from.
    pub source: NearSource,
    /// The rules; the first that matches a request counts.
    pub rules: Vec<NearRule>,
}

/// Where replies come from that a route `near` keeps.
#[derive(Clone, Debug, PartialEq)]
pub enum NearSource {
    /// From the servers below this route.
    Child(Box<Route>),
    /// From an HTTP origin.
    Origin(NearOrigin),
}

impl NearRoute {
    /// The route below it. `None`: there is an HTTP origin.
    pub fn child(&self) -> Option<&Route> {
        match &self.source {
            NearSource::Child(child) => Some(child),
            NearSource::Origin(_) => None,
        }
    }
}

impl Route {
    /// The pool that the route names by itself, as such, as the pool of its server, or as its children. Only
    /// the configuration can tell whether the name of a named route is a pool's.
    pub fn pool(&self) -> Option<&str> {
        match self {
            Self::Named(name) | Self::Pool(name) => Some(name),
            Self::Member(member) => member.split_once('/').map(|(pool, _)| pool),
            _ => match self.choice()? {
                Children::Pool(pool) => Some(pool),
                Children::List(_) => None,
            },
        }
    }

    /// The children from which the route chooses, or which it gathers. `None`: it does neither.
    fn choice(&self) -> Option<&Children> {
        match self {
            Self::Hash { children, .. }
            | Self::Nearest(children)
            | Self::Random(children)
            | Self::RoundRobin(children)
            | Self::HostId { children, .. }
            | Self::ByClient { children, .. }
            | Self::Latest { children, .. }
            | Self::AllSync(children)
            | Self::AllMajority(children)
            | Self::AllFastest(children)
            | Self::AllInitial(children)
            | Self::AllAsync(children)
            | Self::Failover { children, .. }
            | Self::MissFailover { children, .. }
            | Self::FailoverWithTtl {
                failover: children, ..
            } => Some(children),
            Self::Named(_)
            | Self::Pool(_)
            | Self::Member(_)
            | Self::Embedded
            | Self::Null
            | Self::Discard
            | Self::Error(_)
            | Self::ByOperation { .. }
            | Self::ByPrefix { .. }
            | Self::ByLogin { .. }
            | Self::ByKeyPattern { .. }
            | Self::ByRoutingPrefix { .. }
            | Self::ModifyKey { .. }
            | Self::Migrate { .. }
            | Self::ShardSplit { .. }
            | Self::KeySplit { .. }
            | Self::Shadow { .. }
            | Self::RateLimit { .. }
            | Self::OutstandingLimit { .. }
            | Self::ByKey { .. }
            | Self::WarmUp { .. }
            | Self::SlowWarmUp { .. }
            | Self::Staging { .. }
            | Self::L1L2Cache { .. }
            | Self::SizeSplit { .. }
            | Self::BigValue { .. }
            | Self::KeyPart { .. }
            | Self::HashStop { .. }
            | Self::ModifyTtl { .. }
            | Self::Log(_)
            | Self::Near(_)
            | Self::Spool { .. }
            | Self::Fault { .. } => None,
        }
    }

    /// The depth of the deepest tree, names followed. It bounds the state of a walk.
    pub const DEPTH: usize = 64;

    /// The routes that stand directly in this one. The members of a pool and named routes are not followed.
    pub fn children(&self) -> Vec<&Route> {
        let own: Vec<&Route> = match self {
            Self::ByOperation {
                operations: routes,
                default,
            }
            | Self::ByPrefix {
                prefixes: routes,
                default,
            }
            | Self::ByLogin {
                names: routes,
                default,
                ..
            } => routes.values().chain(default.as_deref()).collect(),
            Self::ByKeyPattern { patterns, default } => {
                let routes = patterns.iter().map(|(_, route)| route);
                routes.chain(default.as_deref()).collect()
            }
            Self::FailoverWithTtl { normal: child, .. }
            | Self::ModifyKey { child, .. }
            | Self::ShardSplit { child, .. }
            | Self::KeySplit { child, .. }
            | Self::OutstandingLimit { child, .. }
            | Self::BigValue { child, .. }
            | Self::KeyPart { child, .. }
            | Self::HashStop { child, .. }
            | Self::ModifyTtl { child, .. }
            | Self::Fault { child, .. }
            | Self::Spool { child, .. }
            | Self::Log(child) => vec![child],
            Self::Migrate {
                from: one, to: other, ..
            }
            | Self::WarmUp {
                cold: one,
                warm: other,
                ..
            }
            | Self::SlowWarmUp {
                child: one,
                failover: other,
                ..
            }
            | Self::Staging {
                warm: one,
                staging: other,
            }
            | Self::L1L2Cache {
                l1: one, l2: other, ..
            }
            | Self::SizeSplit {
                l1: one, l2: other, ..
            } => vec![one, other],
            Self::Near(near) => near.child().into_iter().collect(),
            Self::ByKey { listed, default, .. } => vec![listed, default],
            Self::RateLimit { child, fallback, .. } => {
                std::iter::once(&**child).chain(fallback.as_deref()).collect()
            }
            Self::Shadow { child, shadows } => std::iter::once(&**child)
                .chain(shadows.iter().map(|shadow| &shadow.target))
                .collect(),
            Self::ByRoutingPrefix { routes, .. } => routes.values().collect(),
            Self::Named(_)
            | Self::Pool(_)
            | Self::Member(_)
            | Self::Embedded
            | Self::Null
            | Self::Discard
            | Self::Error(_)
            | Self::Hash { .. }
            | Self::Nearest(_)
            | Self::Random(_)
            | Self::RoundRobin(_)
            | Self::HostId { .. }
            | Self::ByClient { .. }
            | Self::Latest { .. }
            | Self::AllSync(_)
            | Self::AllMajority(_)
            | Self::AllFastest(_)
            | Self::AllInitial(_)
            | Self::AllAsync(_)
            | Self::Failover { .. }
            | Self::MissFailover { .. } => Vec::new(),
        };
        match self.choice() {
            Some(Children::List(listed)) => own.into_iter().chain(listed).collect(),
            Some(Children::Pool(_)) | None => own,
        }
    }
}

/// What a client says of itself at its login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfLogin {
    /// The user.
    User,
    /// The default schema, which it may change later.
    Schema,
}

impl OfLogin {
    /// The name of the route that looks at it.
    pub const fn route(self) -> &'static str {
        match self {
            Self::User => "by_user",
            Self::Schema => "by_schema",
        }
    }

    /// Its name.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Schema => "schema",
        }
    }
}

/// An error that is answered without asking a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorReply {
    /// The kind of the error.
    pub outcome: Outcome,
    /// Its text.
    pub text: String,
}

/// An error of the proxy's own.
impl<T: Into<String>> From<T> for ErrorReply {
    fn from(text: T) -> Self {
        Self {
            outcome: Outcome::LocalError,
            text: text.into(),
        }
    }
}

/// When a failover goes on, and how.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FailoverRules {
    /// The errors after which it goes on.
    pub errors: FailoverErrors,
    /// The limit of failovers; `None`: no limit.
    pub limit: Option<FailoverLimit>,
    /// Keys with a `|#|` get `:failover=1` at their end on the way to all children but the first.
    pub tag: bool,
    /// The order of the children.
    pub policy: FailoverPolicy,
    /// A miss is filled where its token comes from; the name tells the route's leases from others'. `None`:
    /// it is filled as everything is stored.
    pub pairs_leases: Option<String>,
}

/// The order in which a failover asks its children. The first one is always the first of the list.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum FailoverPolicy {
    /// That of the list.
    #[default]
    InOrder,
    /// Those with the fewest failures in a row come first.
    LeastFailures {
        /// The most tries.
        tries: u32,
    },
    /// An order by a hash of the key, mcrouter's DeterministicOrderPolicy.
    HashOrder(Box<HashOrder>),
    /// By their scores for the key.
    Rendezvous {
        /// A name for each child but the first.
        tags: Vec<String>,
    },
}

/// The order of a failover by a hash of the key.
#[derive(Clone, Debug, PartialEq)]
pub struct HashOrder {
    /// The most tries.
    pub tries: u32,
    /// The most errors, those of ejected children not counted.
    pub error_tries: u32,
    /// The errors that count against neither limit.
    pub exclude: Vec<Outcome>,
    /// The weights of the children; `None`: all are equal.
    pub weights: Option<Vec<f64>>,
    /// The failure domain of each child; empty: no domains.
    pub domains: Vec<Option<u32>>,
    /// The first child is a pool of the others: the server that it chooses is not asked again.
    pub knows_first: bool,
}

impl From<FailoverErrors> for Box<FailoverRules> {
    fn from(errors: FailoverErrors) -> Self {
        Self::new(FailoverRules {
            errors,
            ..FailoverRules::default()
        })
    }
}

/// The errors after which a failover goes on, by group. `None`: the defaults (`Outcome::is_failover`).
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct FailoverErrors {
    pub gets: Option<Vec<Outcome>>,
    pub updates: Option<Vec<Outcome>>,
    pub deletes: Option<Vec<Outcome>>,
    /// `incr`, `decr` and `touch`. mcrouter's configurations cannot name their errors.
    pub others: Option<Vec<Outcome>>,
}

/// mcrouter's `failover_limit`: each request earns `rate` tokens, each failover costs one.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct FailoverLimit {
    pub rate: f64,
    pub burst: f64,
}

/// The copies of one shard.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardCopies {
    /// The number of copies.
    pub copies: u32,
    /// The number that it was before, while it changes.
    pub before: u32,
    /// Seconds since 1970 at which it begins to change.
    pub start: u64,
    /// The time in which one host after the other takes the new number.
    pub period: Duration,
    /// Whether deletes go to all copies.
    pub all_deletes: bool,
}

impl ShardCopies {
    /// So many copies, which do not change.
    pub const fn of(copies: u32) -> Self {
        Self {
            copies,
            before: copies,
            start: 0,
            period: Duration::ZERO,
            all_deletes: true,
        }
    }

    /// The most copies of a shard: their names end with two letters.
    pub const MOST: u32 = 26 * 26 + 1;
}

/// When a server is cold, and what it gets then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowWarmUpSettings {
    /// A warm server becomes cold when it finds a smaller share of keys than this.
    pub enable_threshold: f64,
    /// A cold server becomes warm when it finds this share of keys.
    pub disable_threshold: f64,
    /// The share of reads that a cold server gets which finds nothing.
    pub start: f64,
    /// What is added to that, times the share of keys that it finds.
    pub step: f64,
    /// The least requests before a server can be cold.
    pub min_requests: u64,
}

impl Default for SlowWarmUpSettings {
    fn default() -> Self {
        Self {
            enable_threshold: 0.7,
            disable_threshold: 0.9,
            start: 0.1,
            step: 1.0,
            min_requests: 100,
        }
    }
}

/// How many requests may wait.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// The most, for each worker.
    pub most: usize,
    /// What further ones are answered.
    pub full: ErrorReply,
}

/// A route that gets copies of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Shadow {
    /// The route.
    pub target: Route,
    /// The keys whose requests are copied.
    pub keys: ShadowKeys,
    /// The share of these requests, 0 to 1.
    pub share: f64,
    /// The most copies that are under way for each worker; more are dropped.
    pub in_flight: usize,
}

impl Shadow {
    /// The most copies under way, unless something else is said.
    pub const IN_FLIGHT: usize = 1000;
}

/// The keys that a shadow gets.
#[derive(Clone, Debug, PartialEq)]
pub enum ShadowKeys {
    /// The keys whose hash lies in this part of all hashes, from 0 to 1.
    Between(f64, f64),
    /// These keys.
    Listed(Vec<String>),
}

/// The limits of `rate_limit`. `None`: no limit.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Rates {
    pub gets: Option<Rate>,
    pub sets: Option<Rate>,
    pub deletes: Option<Rate>,
}

/// A rate, and what may come at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Requests a second.
    pub per_second: f64,
    /// Requests at once.
    pub burst: f64,
}

/// How `modify_ttl` changes the expiry time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TtlAction {
    /// It becomes the given one.
    Set,
    /// It becomes the smaller one; 0 (never) counts as the largest.
    Min,
}

/// Faults of requests, for tests of clients.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fault {
    /// Delay of each request.
    pub delay: Duration,
    /// Delay of each reply.
    pub delay_after: Duration,
    /// Shares of the requests, ascending, each with the time that a reply takes at least. Requests beyond the
    /// last share have the last time; empty: no such time.
    pub total: Vec<(f64, Duration)>,
    /// Share of the requests that are answered with an error, 0 to 1.
    pub error_rate: f64,
}
