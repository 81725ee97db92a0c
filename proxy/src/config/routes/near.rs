//! Routes that keep replies.

use super::{
    NearKeys, NearOrigin, NearRule, OriginUrl, Route, Spec,
    form::RouteForm,
    near_rule::NearRuleForm,
    spec::{Handle, handle},
};
use crate::config::{
    Diagnostic,
    document::Node,
    form::{Count, Form, List, Optional, PositiveTime, Shape},
    reading::Reading,
    section::section,
};

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

impl Spec for NearRoute {
    const NAME: &'static str = "near";
}

pub(super) const NEAR: Handle = handle! {
    /// Keeps replies of the child as the bytes that clients get, and answers with them until their time is
    /// over or a request changes their key. What changes a key drops it before its client is answered. Many
    /// that miss one key cause one request.
    NearRoute::NAME, NearRouteForm => Route::Near
};

section! {
    /// A route whose replies are kept, and the rules for them.
    struct NearRouteKeys {
        /// Where requests go that are not answered from what is kept. No route below may change keys or look
        /// at the client.
        child: Optional<RouteForm>,
        /// In place of `child`: the URL of an HTTP origin whose replies are the values of keys, such as
        /// `http://HOST:PORT/path/{key}`. It serves `get`, `mg`, GET and MGET; `delete` and DEL drop what is
        /// kept of a key.
        origin: Optional<OriginText>,
        /// The time for a whole fetch from the origin, by default `1s`.
        timeout: Optional<PositiveTime>,
        /// The most requests to the origin at once, by default 64. Further ones wait.
        requests: Optional<Count<1, 4096>>,
        /// The rules. The first that matches a request counts; a request that none matches passes.
        rules: List<NearRuleForm>,
    }
}

/// The route as it stands in a configuration.
#[derive(Debug)]
struct NearRouteForm;

impl Form for NearRouteForm {
    type Value = NearRoute;

    fn shape() -> Shape {
        NearRouteKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<NearRoute, Diagnostic> {
        let NearRouteKeys {
            child,
            origin,
            timeout,
            requests,
            rules,
        } = NearRouteKeys::read(node, cx)?;
        let source = match (child, origin) {
            (Some(child), None) if timeout.is_none() && requests.is_none() => {
                NearSource::Child(Box::new(child))
            }
            (None, Some(url)) => NearSource::Origin(NearOrigin {
                url,
                timeout: timeout.unwrap_or(NearOrigin::TIMEOUT),
                requests: requests.unwrap_or(NearOrigin::REQUESTS),
            }),
            (child, origin) => return Err(no_source(child.is_some(), origin.is_some(), node, cx)),
        };
        for (number, rule) in rules.iter().enumerate() {
            let hides = |earlier: &&NearRule| earlier.keys == NearKeys::All && earlier.commands.is_empty();
            if let Some(all) = rules[..number].iter().find(hides) {
                let (name, all) = (&rule.name, &all.name);
                cx.warn(
                    node.at,
                    format!("rule `{name}` is never used: rule `{all}` before it takes all keys"),
                );
            }
        }
        Ok(NearRoute { source, rules })
    }
}

/// Why these keys do not say where replies come from.
fn no_source(has_child: bool, has_origin: bool, node: &Node, cx: &Reading) -> Diagnostic {
    let (problem, remedy) = match (has_child, has_origin) {
        (true, true) => (
            "`near` has a `child` and an `origin`: what is not kept comes from one of them",
            "leave one, or write two routes",
        ),
        (true, false) => (
            "`timeout` and `requests` of `near` are for an `origin`",
            "leave them out: the pools below have their own",
        ),
        _ => (
            "`near` has neither `child` nor `origin`: nothing says where what is not kept comes from",
            "write `child: POOL`, or `origin: \"http://HOST:PORT/path/{key}\"`",
        ),
    };
    cx.refuse(node.at, problem).with_remedy(remedy)
}

/// The URL of an HTTP origin.
#[derive(Debug)]
struct OriginText;

impl Form for OriginText {
    type Value = OriginUrl;

    fn shape() -> Shape {
        Shape::Text {
            what: "URL with `{key}`",
            pattern: Some(r"^http://[^@{]+[/?].*\{key\}"),
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<OriginUrl, Diagnostic> {
        let url = node.scalar().unwrap_or_default().parse::<OriginUrl>();
        url.map_err(|why| {
            let problem = why.to_string();
            cx.refuse(node.at, problem).with_remedy(why.remedy())
        })
    }
}
