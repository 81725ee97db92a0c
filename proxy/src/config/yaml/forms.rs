//! Forms of handles' parameters.

use std::collections::BTreeMap;

use proxima_wire::message::Outcome;

use super::{
    parameters::{
        ErrorsKeys, FailoverKeys, HashRouteKeys, LatestKeys, OneShadowKeys, PolicyKeys, RateKeys,
        ShardCopiesKeys,
    },
    route::RouteForm,
};
use crate::config::{
    Diagnostic,
    document::{Name, Node, Value, shortened},
    form::{Choice, Form, List, Named, ServerAddress, Shape, Text, Word},
    operations,
    reading::{Kind, Length, Reading},
    schema::{
        Algorithm, Children, FailoverErrors, FailoverLimit, FailoverPolicy, FailoverRules, Hash, HashOrder,
        Rate, Route, Shadow, ShadowKeys, ShardCopies, TtlAction,
    },
    suggest,
};

impl Choice for TtlAction {
    const WHAT: &'static str = "what to do with the expiry time";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("set", Self::Set, "always this one"),
        ("min", Self::Min, "this one or the request's, whichever is sooner"),
    ];
}

impl Choice for Outcome {
    const WHAT: &'static str = "an error";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("timeout", Self::Timeout, "no reply in time"),
        ("connect_timeout", Self::ConnectTimeout, "no connection in time"),
        (
            "connect_error",
            Self::ConnectError,
            "the connection could not be made, or broke",
        ),
        (
            "ejected",
            Self::Ejected,
            "the server is ejected and was not asked",
        ),
        (
            "busy",
            Self::Busy,
            "the server asked to be left alone for a while",
        ),
        ("shutdown", Self::Shutdown, "the server is shutting down"),
        ("try_again", Self::TryAgain, "the server asked to try again"),
        ("deadline", Self::Deadline, "the request was too old to be sent"),
        ("overloaded", Self::Overloaded, "too much is waiting already"),
        ("remote_error", Self::RemoteError, "the server answered an error"),
        ("local_error", Self::LocalError, "the proxy could not do it"),
        ("client_error", Self::ClientError, "the request was wrong"),
    ];
}

/// Prefixes of keys.
#[derive(Debug)]
pub(super) struct Prefix;

impl Named for Prefix {
    const WHAT: &'static str = "prefix";
}

/// Names of schemas.
#[derive(Debug)]
pub(super) struct SchemaName;

impl Named for SchemaName {
    const WHAT: &'static str = "schema";
}

/// Patterns of keys.
#[derive(Debug)]
pub(super) struct Pattern;

impl Named for Pattern {
    const WHAT: &'static str = "pattern";
}

/// The order of a failover's children.
#[derive(Debug)]
pub(super) struct PolicyForm;

impl Form for PolicyForm {
    type Value = FailoverPolicy;

    fn shape() -> Shape {
        PolicyKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<FailoverPolicy, Diagnostic> {
        let keys = PolicyKeys::read(node, cx)?;
        match (keys.least_failures, keys.hash_order, keys.rendezvous) {
            (Some(tries), None, None) => Ok(FailoverPolicy::LeastFailures { tries }),
            (None, Some(keys), None) => {
                let domains = keys.domains.unwrap_or_default();
                Ok(FailoverPolicy::HashOrder(Box::new(HashOrder {
                    tries: keys.tries,
                    error_tries: keys.error_tries,
                    exclude: keys.exclude,
                    weights: keys.weights,
                    domains: domains.into_iter().map(Some).collect(),
                    knows_first: keys.knows_first,
                })))
            }
            (None, None, Some(tags)) => Ok(FailoverPolicy::Rendezvous { tags }),
            _ => {
                let problem = "a policy is one of `least_failures`, `hash_order` and `rendezvous`";
                Err(cx.refuse(node.at, problem))
            }
        }
    }

    fn show(_: &FailoverPolicy) -> Option<String> {
        None
    }
}

/// A rate.
#[derive(Debug)]
pub(super) struct RateForm;

impl Form for RateForm {
    type Value = Rate;

    fn shape() -> Shape {
        RateKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Rate, Diagnostic> {
        let RateKeys { rate, burst } = RateKeys::read(node, cx)?;
        Ok(Rate {
            per_second: rate,
            burst: burst.unwrap_or(rate.max(1.0)),
        })
    }
}

/// A route that gets copies of requests.
#[derive(Debug)]
pub(super) struct ShadowForm;

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

/// Shards of keys.
#[derive(Debug)]
pub(super) struct Shard;

impl Named for Shard {
    const WHAT: &'static str = "shard";
}

/// The copies of a shard.
#[derive(Debug)]
pub(super) struct ShardCopiesForm;

impl Form for ShardCopiesForm {
    type Value = ShardCopies;

    fn shape() -> Shape {
        ShardCopiesKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<ShardCopies, Diagnostic> {
        let keys = ShardCopiesKeys::read(node, cx)?;
        Ok(ShardCopies {
            copies: keys.copies,
            before: keys.before.unwrap_or(keys.copies),
            start: keys.start.into(),
            period: keys.period,
            all_deletes: keys.all_deletes,
        })
    }
}

/// The name of a pool.
#[derive(Debug)]
pub(super) struct PoolRef;

impl Form for PoolRef {
    type Value = String;

    fn shape() -> Shape {
        Shape::Text {
            what: "name of a pool",
            pattern: None,
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<String, Diagnostic> {
        match node.scalar() {
            Some(name) if !node.is_null() => {
                cx.mention(node.at, Kind::Pool, name);
                Ok(name.to_owned())
            }
            _ => Err(cx.expected(node, "the name of a pool")),
        }
    }
}

/// One server: an address, or `pool/name`.
#[derive(Debug)]
pub(super) struct MemberRef;

impl Form for MemberRef {
    type Value = String;

    fn shape() -> Shape {
        Shape::Text {
            what: "address, or `pool/name`",
            pattern: None,
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<String, Diagnostic> {
        match node.scalar() {
            Some(name) if name.contains('/') && !name.starts_with("unix:") => {
                cx.mention(node.at, Kind::Member, name);
                Ok(name.to_owned())
            }
            _ => ServerAddress::read(node, cx),
        }
    }
}

/// A text that fits into one line of a reply.
#[derive(Debug)]
pub(super) struct ErrorText;

impl Form for ErrorText {
    type Value = String;

    fn shape() -> Shape {
        Shape::Text {
            what: "text",
            pattern: None,
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<String, Diagnostic> {
        let text = Text::read(node, cx)?;
        match text.len() > 1024 || text.chars().any(char::is_control) {
            true => Err(cx.refuse(node.at, "the text is not one line of at most 1024 bytes")),
            false => Ok(text),
        }
    }
}

/// The hash handle. The lists in its hash are as long as its children.
#[derive(Debug)]
pub(super) struct HashRouteForm;

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
                    children: children.clone(),
                });
            }
            weights_given(hash, &children).map_err(|problem| cx.refuse(node.at, problem))?;
        }
        Ok(Route::Hash { children, hash })
    }
}

/// The failover handle. The lists of its policy are as long as its children.
#[derive(Debug)]
pub(super) struct FailoverForm;

impl Form for FailoverForm {
    type Value = Route;

    fn shape() -> Shape {
        FailoverKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Route, Diagnostic> {
        let keys = FailoverKeys::read(node, cx)?;
        let lists = match &keys.policy {
            FailoverPolicy::HashOrder(order) => {
                let domains = Some(order.domains.len()).filter(|&domains| domains > 0);
                vec![(order.weights.as_ref().map(Vec::len), 0), (domains, 0)]
            }
            FailoverPolicy::Rendezvous { tags } => vec![(Some(tags.len()), 1)],
            FailoverPolicy::InOrder | FailoverPolicy::LeastFailures { .. } => Vec::new(),
        };
        for (found, without) in lists {
            let site = cx.site(node.at);
            cx.index.lengths.extend(found.map(|found| Length {
                site,
                found,
                without,
                children: keys.children.clone(),
            }));
        }
        Ok(Route::Failover {
            children: keys.children,
            rules: Box::new(FailoverRules {
                errors: keys.errors,
                limit: keys.limit.map(|limit| FailoverLimit {
                    rate: limit.rate,
                    burst: limit.burst,
                }),
                tag: keys.tag,
                policy: keys.policy,
                pairs_leases: None,
            }),
        })
    }
}

/// The latest handle. Its weights are as many as its children.
#[derive(Debug)]
pub(super) struct LatestForm;

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
                children: keys.children.clone(),
            });
        }
        Ok(Route::Latest {
            children: keys.children,
            count: keys.count as usize,
            weights: keys.weights,
            salt: keys.salt,
            per_worker: keys.per_worker,
            rules: keys.errors.into(),
        })
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

/// Routes by command or group of commands, and the default route.
#[derive(Debug)]
pub(super) struct OperationsForm;

impl Form for OperationsForm {
    type Value = (BTreeMap<String, Route>, Option<Box<Route>>);

    fn shape() -> Shape {
        let words = operations::all_words()
            .chain([("default", "all others")])
            .collect();
        Shape::ByWord {
            words,
            of: Box::new(Shape::Route),
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Self::Value, Diagnostic> {
        let Value::Map(entries) = &node.value else {
            return Err(cx.expected(
                node,
                "a map, each route with a command or `default` before a colon",
            ));
        };
        let known = operations::all_words().map(|(word, _)| word).chain(["default"]);
        let read = |(name, node): &(Name, Node)| {
            let route = cx.within(&*name.text, |cx| RouteForm::read(node, cx))?;
            match known.clone().any(|word| word == name.text) {
                true => Ok((name.text.clone(), route)),
                false => Err(Diagnostic {
                    remedy: suggest::remedy(&name.text, known.clone()),
                    ..cx.refuse(name.at, format!("unknown operation `{}`", shortened(&name.text)))
                }),
            }
        };
        let read = entries.iter().map(read).collect();
        let mut operations: BTreeMap<String, Route> = cx.all(read)?.into_iter().collect();
        let default = operations.remove("default").map(Box::new);
        Ok((operations, default))
    }
}

/// Errors as a list for all groups, or by group.
#[derive(Debug)]
pub(super) struct ErrorsForm;

impl Form for ErrorsForm {
    type Value = FailoverErrors;

    fn shape() -> Shape {
        Shape::AnyOf(vec![List::<Word<Outcome>>::shape(), ErrorsKeys::shape()])
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<FailoverErrors, Diagnostic> {
        if let Value::List(_) = node.value {
            let all = Some(List::<Word<Outcome>>::read(node, cx)?);
            return Ok(FailoverErrors {
                gets: all.clone(),
                updates: all.clone(),
                deletes: all.clone(),
                others: all,
            });
        }
        let ErrorsKeys {
            gets,
            updates,
            deletes,
        } = ErrorsKeys::read(node, cx)?;
        Ok(FailoverErrors {
            gets,
            others: updates.clone(),
            updates,
            deletes,
        })
    }

    fn absent() -> Option<FailoverErrors> {
        Some(FailoverErrors::default())
    }
}
