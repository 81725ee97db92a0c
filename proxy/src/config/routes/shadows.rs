//! Routes that get copies of requests.

use super::{
    Route, Spec,
    form::RouteForm,
    spec::{Handle, handle},
};
use crate::config::{
    Diagnostic,
    document::Node,
    form::{Count, Form, List, Optional, Shape, Share, Text},
    reading::Reading,
    section::section,
};

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

impl Spec for Shadow {
    const NAME: &'static str = "shadow";
}

pub(super) const SHADOW: Handle = handle! {
    /// Copies of some requests go to other routes, whose replies nobody gets. The first route answers.
    Shadow::NAME, ShadowKeysOf => |keys: ShadowKeysOf| {
        Route::Shadow(Box::new(keys.child), keys.shadows)
    }
};

section! {
    /// A route, and others that get copies of its requests.
    struct ShadowKeysOf {
        /// The route that answers.
        child: RouteForm,
        /// The routes that get copies.
        shadows: List<ShadowForm>,
    }
}

section! {
    /// A route that gets copies of requests.
    struct OneShadowKeys {
        /// The route.
        target: RouteForm,
        /// The keys whose requests are copied. Without them it is `key_range` that decides.
        keys: Optional<List<Text>>,
        /// The part of all keys whose requests are copied: two shares, of the first and the last one.
        key_range: Optional<List<Share>>,
        /// Share of these requests that are copied.
        share: Share = 1.0,
        /// Copies under way that a worker has at most; more are dropped.
        in_flight: Count<1> = Shadow::IN_FLIGHT as u32,
    }
}

/// A route that gets copies of requests.
#[derive(Debug)]
struct ShadowForm;

impl Form for ShadowForm {
    type Value = Shadow;

    fn shape() -> Shape {
        OneShadowKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Shadow, Diagnostic> {
        let read = OneShadowKeys::read(node, cx)?;
        let keys = match (read.keys, read.key_range.as_deref()) {
            (None, None) => ShadowKeys::Between(0.0, 1.0),
            (Some(keys), None) => ShadowKeys::Listed(keys),
            (None, Some(&[from, to])) if from <= to => ShadowKeys::Between(from, to),
            (None, Some(_)) => return Err(cx.refuse(node.at, "`key_range` is not two shares in their order")),
            (Some(_), Some(_)) => return Err(cx.refuse(node.at, "both `keys` and `key_range` are there")),
        };
        Ok(Shadow {
            target: read.target,
            keys,
            share: read.share,
            in_flight: read.in_flight as usize,
        })
    }
}
