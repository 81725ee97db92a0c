//! Routes, which form the tree of a configuration. What a configuration says of a route stands in the file of
//! its family, once: its settings, its keys and how they are read, its name, its meaning for the reference,
//! and its rule about copies. How it decides and how it is built stands in a file of its own, in
//! `route/handle`.
//!
//! * `leaves`: routes that ask one server, or none; `choices`: one child of several
//! * `gathers`: all children; `failovers`: another child after an error, by a `policy`
//! * `keyed`: the child for a key, a command or a login; `keys`: changed keys and expiry times; `splits`:
//!   several copies of a key
//! * `consistency`: how fresh reads are
//! * `migrations`: from one set of servers to another; `caches`: two caches, and large values
//! * `limits`, `shadows`, `records` (what is written down), `faults`
//! * `near`, `near_rule`, `origin`: kept replies, and where they come from
//! * `form`: how a route stands in our format; `spec`: what every family says of a route

mod caches;
mod choices;
mod consistency;
mod failovers;
mod faults;
mod form;
mod gathers;
mod keyed;
mod keys;
mod leaves;
mod limits;
mod migrations;
mod near;
mod near_rule;
mod origin;
mod policy;
mod records;
mod shadows;
mod spec;
mod splits;

use std::collections::BTreeMap;

pub use self::{
    caches::{BigValue, L1L2Cache, SizeSplit},
    choices::{ByClient, ByHash, HostId, Latest, Nearest, Random, RoundRobin},
    consistency::{Consistency, ConsistencyRoute},
    failovers::{Failover, FailoverErrors, FailoverLimit, FailoverRules, FailoverWithTtl, MissFailover},
    faults::Fault,
    gathers::{AllAsync, AllFastest, AllInitial, AllMajority, AllSync},
    keyed::{ByKey, ByKeyPattern, ByOperation, ByPrefix, ByRoutingPrefix, BySchema, ByUser, OfLogin},
    keys::{HashStop, KeyPart, ModifyKey, ModifyTtl, TtlAction},
    leaves::{ErrorReply, Leaf},
    limits::{OutstandingLimit, Queue, Rate, RateLimit},
    migrations::{Migrate, SlowWarmUp, Staging, WarmUp},
    near::{NearRoute, NearSource},
    near_rule::{NearKeys, NearRule, NearValues},
    origin::{BadOriginUrl, NearOrigin, OriginUrl},
    policy::{FailoverPolicy, HashOrder},
    records::{Log, Spool},
    shadows::{Shadow, ShadowKeys},
    spec::{Over, Spec},
    splits::{KeySplit, ShardCopies, ShardSplit},
};
pub(super) use self::{form::RouteForm, keyed::UserName, spec::Handle};

use self::spec::shape;
use crate::config::reading::Siblings;

shape! {
    /// Routes with one child.
    One: ModifyKey ModifyTtl KeyPart HashStop ShardSplit KeySplit OutstandingLimit BigValue Log Spool Fault
        ConsistencyRoute
}

shape! {
    /// Routes over several children: they choose one, try them in turn, or ask all.
    Of with copies: ByHash Nearest Random RoundRobin HostId ByClient Latest AllSync AllMajority AllFastest
        AllInitial AllAsync Failover MissFailover
}

shape! {
    /// Routes with two children, each with a part of its own.
    Pair: Migrate WarmUp SlowWarmUp Staging L1L2Cache SizeSplit RateLimit ByKey
}

shape! {
    /// Routes whose children have names, by which a request is led to one of them.
    Keyed: ByOperation ByPrefix ByUser BySchema ByKeyPattern ByRoutingPrefix
}

/// The routes that can be written, in the order of the reference.
pub(super) static HANDLES: &[Handle] = &[
    leaves::POOL,
    leaves::MEMBER,
    leaves::EMBEDDED,
    leaves::NULL,
    leaves::ERROR,
    choices::BY_HASH,
    choices::NEAREST,
    keyed::BY_OPERATION,
    keyed::BY_PREFIX,
    keyed::BY_USER,
    keyed::BY_SCHEMA,
    consistency::CONSISTENCY,
    keyed::BY_KEY_PATTERN,
    choices::RANDOM,
    choices::ROUND_ROBIN,
    choices::HOST_ID,
    choices::BY_CLIENT,
    choices::LATEST,
    gathers::ALL_SYNC,
    gathers::ALL_MAJORITY,
    gathers::ALL_FASTEST,
    gathers::ALL_INITIAL,
    gathers::ALL_ASYNC,
    failovers::FAILOVER,
    failovers::MISS_FAILOVER,
    near::NEAR,
    failovers::FAILOVER_WITH_TTL,
    keys::MODIFY_KEY,
    migrations::MIGRATE,
    splits::SHARD_SPLIT,
    splits::KEY_SPLIT,
    keys::KEY_PART,
    keys::HASH_STOP,
    shadows::SHADOW,
    limits::RATE_LIMIT,
    limits::OUTSTANDING_LIMIT,
    migrations::WARM_UP,
    migrations::SLOW_WARM_UP,
    migrations::STAGING,
    caches::L1_L2_CACHE,
    caches::SIZE_SPLIT,
    caches::BIG_VALUE,
    keyed::BY_KEY,
    keys::MODIFY_TTL,
    records::LOG,
    faults::FAULT,
];

/// The children of a route.
#[derive(Clone, Debug, PartialEq)]
pub enum Children {
    /// Every member of this pool, in the pool's order.
    Pool(String),
    /// These routes.
    List(Vec<Route>),
}

impl Children {
    /// What a list with one entry for each child is compared with.
    fn siblings(&self) -> Siblings {
        match self {
            Self::Pool(name) => Siblings::Pool(name.clone()),
            Self::List(routes) => Siblings::Routes(routes.len()),
        }
    }

    /// The routes that are listed; empty for a pool.
    fn listed(&self) -> &[Route] {
        match self {
            Self::Pool(_) => &[],
            Self::List(routes) => routes,
        }
    }
}

/// A node of the tree, by its shape: what is said of it, and the routes below it.
#[derive(Clone, Debug, PartialEq)]
pub enum Route {
    /// The route of that name, or else the pool of that name, as [`Leaf::Pool`].
    Named(String),
    /// A route without routes below it.
    Leaf(Leaf),
    /// A route with one child.
    One(One, Box<Route>),
    /// A route over several children.
    Of(Of, Children),
    /// A route with two children.
    Pair(Pair, Box<Route>, Box<Route>),
    /// A route whose children have names, and the child for what none of them is for.
    Keyed(Keyed, Vec<(String, Route)>, Option<Box<Route>>),
    /// A route, and those that stand in for it after an error.
    FailoverWithTtl(FailoverWithTtl, Box<Route>, Children),
    /// A route, and others that get copies of its requests.
    Shadow(Box<Route>, Vec<Shadow>),
    /// A route that keeps replies of the one below it.
    Near(NearRoute),
}

impl Route {
    /// The greatest depth of a tree, through named routes. It bounds the state of a walk.
    pub const DEPTH: usize = 64;

    /// A route with one child.
    pub fn one(spec: impl Into<One>, child: impl Into<Box<Self>>) -> Self {
        Self::One(spec.into(), child.into())
    }

    /// A route over several children.
    pub fn of(spec: impl Into<Of>, children: Children) -> Self {
        Self::Of(spec.into(), children)
    }

    /// A route with two children.
    pub fn pair(spec: impl Into<Pair>, first: impl Into<Box<Self>>, second: impl Into<Box<Self>>) -> Self {
        Self::Pair(spec.into(), first.into(), second.into())
    }

    /// A route whose children have names. They stand in the order of their names.
    pub fn keyed(
        spec: impl Into<Keyed>,
        children: BTreeMap<String, Self>,
        default: Option<Box<Self>>,
    ) -> Self {
        Self::Keyed(spec.into(), children.into_iter().collect(), default)
    }

    /// The name of this kind of route. `None`: the route only names another one.
    pub const fn name(&self) -> Option<&'static str> {
        Some(match self {
            Self::Named(_) => return None,
            Self::Leaf(leaf) => leaf.name(),
            Self::One(one, _) => one.name(),
            Self::Of(of, _) => of.name(),
            Self::Pair(pair, ..) => pair.name(),
            Self::Keyed(keyed, ..) => keyed.name(),
            Self::FailoverWithTtl(..) => FailoverWithTtl::NAME,
            Self::Shadow(..) => Shadow::NAME,
            Self::Near(_) => NearRoute::NAME,
        })
    }

    /// The pool that the route names directly: as the route, as its server's pool, or as its children. Only
    /// the configuration can tell whether the name of a named route is a pool's.
    pub fn pool(&self) -> Option<&str> {
        match self {
            Self::Named(name) | Self::Leaf(Leaf::Pool(name)) => Some(name),
            Self::Leaf(Leaf::Member(member)) => member.split_once('/').map(|(pool, _)| pool),
            Self::Of(_, Children::Pool(pool)) | Self::FailoverWithTtl(.., Children::Pool(pool)) => Some(pool),
            _ => None,
        }
    }

    /// The routes that stand directly in this one. The members of a pool and named routes are not followed.
    pub fn children(&self) -> Vec<&Self> {
        match self {
            Self::Named(_) | Self::Leaf(_) => Vec::new(),
            Self::One(_, child) => vec![child],
            Self::Of(_, children) => children.listed().iter().collect(),
            Self::Pair(_, first, second) => vec![first, second],
            Self::Keyed(_, routes, default) => {
                let routes = routes.iter().map(|(_, route)| route);
                routes.chain(default.as_deref()).collect()
            }
            Self::FailoverWithTtl(_, normal, failover) => {
                std::iter::once(&**normal).chain(failover.listed()).collect()
            }
            Self::Shadow(child, shadows) => {
                let targets = shadows.iter().map(|shadow| &shadow.target);
                std::iter::once(&**child).chain(targets).collect()
            }
            Self::Near(near) => near.child().into_iter().collect(),
        }
    }
}
