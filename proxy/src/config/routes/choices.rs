//! Routes that choose one child of several.

use super::{
    Children, FailoverRules, Over, Route, Spec,
    failovers::ErrorsForm,
    form::ChildrenForm,
    spec::{Handle, handle},
};
use crate::config::{
    Diagnostic,
    document::Node,
    form::{Count, Flag, Form, List, Optional, Shape, Share, Text},
    hash::{Algorithm, Hash, HashForm},
    reading::{Length, Reading},
    section::section,
};

/// The child that the key chooses.
#[derive(Clone, Debug, PartialEq)]
pub struct ByHash {
    /// The hash to use. `None`: the pool's, or `ch3`.
    pub hash: Option<Hash>,
}

impl Spec for ByHash {
    const NAME: &'static str = "hash";
}

impl Over for ByHash {
    const REACHES_ALL_COPIES: bool = false;
}

pub(super) const BY_HASH: Handle = handle! {
    /// One child, chosen by the key.
    ByHash::NAME, HashRouteForm => |route| route
};

section! {
    /// Children and a hash. The children alone are enough.
    #[short(children)]
    struct HashRouteKeys {
        /// A pool's name for all its servers, or a list of routes.
        children: ChildrenForm,
        /// How the key chooses. The default is the pool's hash, or `ch3` for a list.
        hash: Optional<HashForm>,
    }
}

/// The hash handle. The lists in its hash are as long as its children.
#[derive(Debug)]
struct HashRouteForm;

impl Form for HashRouteForm {
    type Value = Route;

    fn shape() -> Shape {
        HashRouteKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Route, Diagnostic> {
        let HashRouteKeys { children, hash } = HashRouteKeys::read(node, cx)?;
        if let Some(hash) = &hash {
            for found in [
                hash.weights.as_ref().map(Vec::len),
                hash.tags.as_ref().map(Vec::len),
            ]
            .into_iter()
            .flatten()
            {
                let site = cx.site(node.at);
                cx.index.lengths.push(Length {
                    site,
                    found,
                    without: 0,
                    children: children.siblings(),
                });
            }
            weights_given(hash, &children).map_err(|problem| cx.refuse(node.at, problem))?;
        }
        Ok(Route::of(ByHash { hash }, children))
    }
}

/// Refuses a hash without the weights or names that it needs: routes have none of their own.
fn weights_given(hash: &Hash, children: &Children) -> Result<(), &'static str> {
    match (children, hash.algorithm) {
        (Children::Pool(_), _) => Ok(()),
        (_, Algorithm::WeightedCh3 | Algorithm::WeightedRendezvous) if hash.weights.is_none() => {
            Err("this hash needs `weights`, one for each child")
        }
        (_, Algorithm::Rendezvous | Algorithm::WeightedRendezvous) if hash.tags.is_none() => {
            Err("this hash needs `tags`, one for each child")
        }
        _ => Ok(()),
    }
}

/// The nearest child that is up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nearest;

impl Spec for Nearest {
    const NAME: &'static str = "nearest";
}

impl Over for Nearest {
    const REACHES_ALL_COPIES: bool = false;
}

pub(super) const NEAREST: Handle = handle! {
    /// The nearest child that is up: same process, same NUMA node and socket as the client (where `nodes` is
    /// set), same host, same zone, elsewhere.
    Nearest::NAME, ChildrenForm => |children| Route::of(Nearest, children)
};

/// Any child.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Random;

impl Spec for Random {
    const NAME: &'static str = "random";
}

impl Over for Random {
    const REACHES_ALL_COPIES: bool = false;
}

pub(super) const RANDOM: Handle = handle! {
    /// Any child.
    Random::NAME, ChildrenForm => |children| Route::of(Random, children)
};

/// The children in turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundRobin;

impl Spec for RoundRobin {
    const NAME: &'static str = "round_robin";
}

impl Over for RoundRobin {
    const REACHES_ALL_COPIES: bool = false;
}

pub(super) const ROUND_ROBIN: Handle = handle! {
    /// The children in turn, counted by each worker.
    RoundRobin::NAME, ChildrenForm => |children| Route::of(RoundRobin, children)
};

/// The child of this host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostId {
    /// The text that is mixed into the choice.
    pub salt: String,
}

impl Spec for HostId {
    const NAME: &'static str = "host_id";
}

impl Over for HostId {
    const REACHES_ALL_COPIES: bool = false;
}

pub(super) const HOST_ID: Handle = handle! {
    /// One child, the same for every request of this host.
    HostId::NAME, HostIdKeys => |keys: HostIdKeys| Route::of(HostId { salt: keys.salt }, keys.children)
};

section! {
    /// Children, of which each host uses one. The children alone are enough.
    #[short(children)]
    struct HostIdKeys {
        /// A pool's name for all its servers, or a list of routes.
        children: ChildrenForm,
        /// Text mixed into the choice, so that two such routes do not choose alike.
        salt: Text = String::new(),
    }
}

/// The child of the client's address.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ByClient {
    /// The number that is added to the choice.
    pub offset: u64,
}

impl Spec for ByClient {
    const NAME: &'static str = "by_client";
}

impl Over for ByClient {
    const REACHES_ALL_COPIES: bool = false;
}

pub(super) const BY_CLIENT: Handle = handle! {
    /// One child for each client, chosen by the client's address. A client of a Unix socket gets an error.
    ByClient::NAME, ByClientKeys => |keys: ByClientKeys| {
        let offset = keys.offset.into();
        Route::of(ByClient { offset }, keys.children)
    }
};

section! {
    /// Children, of which each client uses one. The children alone are enough.
    #[short(children)]
    struct ByClientKeys {
        /// A pool's name for all its servers, or a list of routes.
        children: ChildrenForm,
        /// A number that is added to the choice, so that two such routes do not choose alike.
        offset: Count = 0,
    }
}

/// A few of the children, chosen once for each host.
#[derive(Clone, Debug, PartialEq)]
pub struct Latest {
    /// The number of children.
    pub count: usize,
    /// The weights by child; `None`: all are equal.
    pub weights: Option<Vec<f64>>,
    /// The text that is mixed into the choice.
    pub salt: String,
    /// Each worker chooses by itself.
    pub per_worker: bool,
    /// When the next child is asked.
    pub rules: Box<FailoverRules>,
}

impl Spec for Latest {
    const NAME: &'static str = "latest";
}

impl Over for Latest {
    const REACHES_ALL_COPIES: bool = false;
}

pub(super) const LATEST: Handle = handle! {
    /// A few of the children, chosen and put in order once for each host. The first one gets every request;
    /// after an error the next one is asked, as by `failover`.
    Latest::NAME, LatestForm => |route| route
};

section! {
    /// Children, of which each host uses a few. The children alone are enough.
    #[short(children)]
    struct LatestKeys {
        /// A pool's name for all its servers, or a list of routes.
        children: ChildrenForm,
        /// The number of children that this host uses.
        count: Count<1> = 5,
        /// Weights from 0 to 1, one for each child. A child of a smaller weight is chosen by fewer hosts.
        weights: Optional<List<Share>>,
        /// Text mixed into the choice, so that two such routes do not choose alike.
        salt: Text = String::new(),
        /// Each worker chooses by itself, not the whole host.
        per_worker: Flag = false,
        /// The errors after which the next child is asked.
        errors: ErrorsForm,
    }
}

/// The latest handle. It has one weight for each child.
#[derive(Debug)]
struct LatestForm;

impl Form for LatestForm {
    type Value = Route;

    fn shape() -> Shape {
        LatestKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Route, Diagnostic> {
        let keys = LatestKeys::read(node, cx)?;
        if let Some(weights) = &keys.weights {
            let site = cx.site(node.at);
            cx.index.lengths.push(Length {
                site,
                found: weights.len(),
                without: 0,
                children: keys.children.siblings(),
            });
        }
        let latest = Latest {
            count: keys.count as usize,
            weights: keys.weights,
            salt: keys.salt,
            per_worker: keys.per_worker,
            rules: keys.errors.into(),
        };
        Ok(Route::of(latest, keys.children))
    }
}
