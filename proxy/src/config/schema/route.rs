//! Routes: where requests go.

use std::{collections::BTreeMap, time::Duration};

use super::Hash;

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
    /// The pool that it names by itself: as what it is, as that of its server, or as its children. Of a named route only the
    /// configuration can tell whether it is one.
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

    /// What it chooses from, or gathers, if it does.
    fn choice(&self) -> Option<&Children> {
        match self {
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
            | Self::MissFailover { children, .. }
            | Self::FailoverWithTtl {
                failover: children, ..
            } => Some(children),
            Self::Named(_)
            | Self::Pool(_)
            | Self::Member(_)
            | Self::Embedded
            | Self::Null
            | Self::Error(_)
            | Self::ByOperation { .. }
            | Self::ByPrefix { .. }
            | Self::ByKeyPattern { .. }
            | Self::ByRoutingPrefix { .. }
            | Self::ModifyKey { .. }
            | Self::ModifyTtl { .. }
            | Self::Log(_)
            | Self::Fault { .. } => None,
        }
    }

    /// Deeper trees, names followed, are refused: the state of a walk stays small.
    pub const DEPTH: usize = 64;

    /// The routes that stand directly in this one; a pool's members and named routes are not followed.
    pub fn children(&self) -> Vec<&Route> {
        let own: Vec<&Route> = match self {
            Self::ByOperation {
                operations: routes,
                default,
            }
            | Self::ByPrefix {
                prefixes: routes,
                default,
            } => routes.values().chain(default.as_deref()).collect(),
            Self::ByKeyPattern { patterns, default } => {
                let routes = patterns.iter().map(|(_, route)| route);
                routes.chain(default.as_deref()).collect()
            }
            Self::FailoverWithTtl { normal: child, .. }
            | Self::ModifyKey { child, .. }
            | Self::ModifyTtl { child, .. }
            | Self::Fault { child, .. }
            | Self::Log(child) => vec![child],
            Self::ByRoutingPrefix { routes, .. } => routes.values().collect(),
            _ => Vec::new(),
        };
        match self.choice() {
            Some(Children::List(listed)) => own.into_iter().chain(listed).collect(),
            Some(Children::Pool(_)) | None => own,
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
