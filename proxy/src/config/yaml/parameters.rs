//! What the handles need: their sections, and the forms that only they have.

use std::{collections::BTreeMap, time::Duration};

use proxima_wire::message::Outcome;

use super::{
    hash::HashForm,
    route::{ChildrenForm, RouteForm},
};
use crate::config::{
    Complaint,
    document::{Name, Node, Value, shortened},
    form::{
        Amount, ByName, Choice, Count, Flag, Form, List, Named, Optional, Seconds, ServerAddress, Shape,
        Share, Text, Time, Word,
    },
    operations,
    reading::{Kind, Length, Reading},
    schema::{Algorithm, Children, FailoverErrors, Hash, Route, TtlAction},
    section::section,
    suggest,
};

section! {
    /// Children and a hash. The children alone are enough.
    #[short(children)]
    pub(super) struct HashRouteKeys {
        /// A pool's name for all its servers, or a list of routes.
        children: ChildrenForm,
        /// How the key chooses; without it as the pool says, or `ch3` for a list.
        hash: Optional<HashForm>,
    }
}

section! {
    /// Routes by prefix of the key.
    pub(super) struct ByPrefixKeys {
        /// Prefix: route.
        prefixes: ByName<RouteForm, Prefix>,
        /// For keys with no such prefix; without it they are answered with an error.
        default: Optional<RouteForm>,
    }
}

section! {
    /// Routes by pattern of the key.
    pub(super) struct ByKeyPatternKeys {
        /// Pattern: route, tried in the order of the text. `*` stands for any characters, `?` for one.
        patterns: ByName<RouteForm, Pattern>,
        /// For keys that match none; without it they are answered with an error.
        default: Optional<RouteForm>,
    }
}

section! {
    /// Children, of which each host has its own. The children alone are enough.
    #[short(children)]
    pub(super) struct HostIdKeys {
        /// A pool's name for all its servers, or a list of routes.
        children: ChildrenForm,
        /// Mixed into the choice, so that two such routes do not choose alike.
        salt: Text = String::new(),
    }
}

section! {
    /// Children in the order in which they are asked. The children alone are enough.
    #[short(children)]
    pub(super) struct FailoverKeys {
        /// A pool's name for all its servers, or a list of routes.
        children: ChildrenForm,
        /// The errors that make it go on.
        errors: ErrorsForm,
        /// How many failovers there may be.
        limit: Optional<LimitKeys>,
    }
}

section! {
    /// How many failovers there may be: each request earns, each failover costs one.
    pub(super) struct LimitKeys {
        /// What a request earns.
        rate: Share,
        /// The most that can be saved up.
        burst: Amount = 1000.0,
    }
}

section! {
    /// The errors that make a failover go on, by group; a group left out has all of them.
    pub(super) struct ErrorsKeys {
        /// For reads.
        gets: Optional<List<Word<Outcome>>>,
        /// For writes.
        updates: Optional<List<Word<Outcome>>>,
        /// For deletes.
        deletes: Optional<List<Word<Outcome>>>,
    }
}

section! {
    /// Children in the order in which they are asked. The children alone are enough.
    #[short(children)]
    pub(super) struct MissFailoverKeys {
        /// A pool's name for all its servers, or a list of routes.
        children: ChildrenForm,
        /// When none has the key: the least bad reply instead of the last one.
        best_on_error: Flag = false,
    }
}

section! {
    /// A route and those that stand in for it.
    pub(super) struct FailoverWithTtlKeys {
        /// The route that is asked first.
        normal: RouteForm,
        /// Those that stand in: a pool's name for all its servers, or a list of routes.
        failover: ChildrenForm,
        /// Seconds that values stored in them live.
        ttl: Count<1, { i32::MAX as u32 }> = 60,
        /// The errors that make it go on.
        errors: ErrorsForm,
    }
}

section! {
    /// What is done to the key.
    pub(super) struct ModifyKeyKeys {
        /// Where requests go on.
        child: RouteForm,
        /// Put before keys that do not begin with it.
        ensure_prefix: Text = String::new(),
        /// Keys that begin with this have it replaced by `ensure_prefix`.
        replace_prefix: Optional<Text>,
        /// `ensure_prefix` is written over the key's first bytes instead of before them.
        in_place: Flag = false,
        /// Put behind every key.
        suffix: Text = String::new(),
    }
}

section! {
    /// What is done to the expiry time.
    pub(super) struct ModifyTtlKeys {
        /// Where requests go on.
        child: RouteForm,
        /// Seconds, or a duration; 0 = never.
        ttl: Seconds,
        /// Which expiry time holds.
        action: Word<TtlAction> = TtlAction::Set,
    }
}

section! {
    /// What is done to requests.
    pub(super) struct FaultKeys {
        /// Where requests go on.
        child: RouteForm,
        /// Hold each request this long.
        delay: Time = Duration::ZERO,
        /// Answer this share of them with an error.
        error_rate: Share = 0.0,
    }
}

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
    ];
}

/// Prefixes of keys, for messages.
#[derive(Debug)]
pub(super) struct Prefix;

impl Named for Prefix {
    const WHAT: &'static str = "prefix";
}

/// Patterns of keys, for messages.
#[derive(Debug)]
pub(super) struct Pattern;

impl Named for Pattern {
    const WHAT: &'static str = "pattern";
}

pub(super) fn by_name(entries: Vec<(Name, Route)>) -> BTreeMap<String, Route> {
    entries
        .into_iter()
        .map(|(name, route)| (name.text, route))
        .collect()
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

    fn read(node: &Node, cx: &mut Reading) -> Result<String, Complaint> {
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

    fn read(node: &Node, cx: &mut Reading) -> Result<String, Complaint> {
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

    fn read(node: &Node, cx: &mut Reading) -> Result<String, Complaint> {
        let text = Text::read(node, cx)?;
        match text.len() > 1024 || text.chars().any(char::is_control) {
            true => Err(cx.refuse(node.at, "the text is not one line of at most 1024 bytes")),
            false => Ok(text),
        }
    }
}

/// The hash handle; the lists of its hash are as long as its children.
#[derive(Debug)]
pub(super) struct HashRouteForm;

impl Form for HashRouteForm {
    type Value = Route;

    fn shape() -> Shape {
        HashRouteKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Route, Complaint> {
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
                    children: children.clone(),
                });
            }
            weights_given(hash, &children).map_err(|problem| cx.refuse(node.at, problem))?;
        }
        Ok(Route::Hash { children, hash })
    }
}

/// Routes have no weights and names of their own: a hash that needs them must say them.
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

/// Routes by command or group of commands, and the one for the rest.
#[derive(Debug)]
pub(super) struct OperationsForm;

impl Form for OperationsForm {
    type Value = (BTreeMap<String, Route>, Option<Box<Route>>);

    fn shape() -> Shape {
        let words = operations::words().chain([("default", "all others")]).collect();
        Shape::ByWord {
            words,
            of: Box::new(Shape::Route),
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Self::Value, Complaint> {
        let Value::Map(entries) = &node.value else {
            return Err(cx.expected(
                node,
                "a map, each route with a command or `default` before a colon",
            ));
        };
        let known = operations::words().map(|(word, _)| word).chain(["default"]);
        let (mut operations, mut default) = (BTreeMap::new(), None);
        for (name, node) in entries {
            if !known.clone().any(|word| word == name.text) {
                return Err(Complaint {
                    remedy: suggest::remedy(&name.text, known),
                    ..cx.refuse(name.at, format!("unknown operation `{}`", shortened(&name.text)))
                });
            }
            let route = cx.within(&*name.text, |cx| RouteForm::read(node, cx))?;
            match name.text.as_str() {
                "default" => default = Some(Box::new(route)),
                word => drop(operations.insert(word.to_owned(), route)),
            }
        }
        Ok((operations, default))
    }
}

/// Errors for all groups as a list, or by group.
#[derive(Debug)]
pub(super) struct ErrorsForm;

impl Form for ErrorsForm {
    type Value = FailoverErrors;

    fn shape() -> Shape {
        Shape::AnyOf(vec![List::<Word<Outcome>>::shape(), ErrorsKeys::shape()])
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<FailoverErrors, Complaint> {
        if let Value::List(_) = node.value {
            let all = Some(List::<Word<Outcome>>::read(node, cx)?);
            return Ok(FailoverErrors {
                gets: all.clone(),
                updates: all.clone(),
                deletes: all,
            });
        }
        let ErrorsKeys {
            gets,
            updates,
            deletes,
        } = ErrorsKeys::read(node, cx)?;
        Ok(FailoverErrors {
            gets,
            updates,
            deletes,
        })
    }

    fn absent() -> Option<FailoverErrors> {
        Some(FailoverErrors::default())
    }
}
