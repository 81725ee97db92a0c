//! The near cache, its routes and rules.

use std::time::Duration;

use super::route::RouteForm;
use crate::config::{
    Diagnostic,
    document::Node,
    form::{
        Choice, Count, Form, List, Optional, PathText, PositiveTime, Shape, Share, Size, Text, Time, Word,
    },
    reading::Reading,
    schema::{
        NearCache, NearKept, NearKeys, NearOrigin, NearRoute, NearRule, NearSource, OriginUrl, Scripts,
    },
    section::section,
};

impl Choice for Scripts {
    const WHAT: &'static str = "what scripts may change";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        (
            "everything",
            Self::Everything,
            "any key: each script empties the near cache",
        ),
        ("keys", Self::Keys, "the keys that they are given, and no others"),
    ];
}

/// Whether others change the keys of a rule, too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Others {
    Some,
    None,
}

impl Choice for Others {
    const WHAT: &'static str = "who else changes the keys";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("some", Self::Some, "other proxies or clients may change them too"),
        ("none", Self::None, "every change comes through this proxy"),
    ];
}

section! {
    /// The near cache of the process, which all `near` routes share.
    pub(super) struct NearCacheKeys {
        /// Bytes for kept replies and what finds them. At this limit the least recently used are dropped.
        memory: Size = NearCache::default().memory,
        /// What scripts of Redis (EVAL, FCALL) may change. Servers do not check it.
        scripts: Word<Scripts> = Scripts::Everything,
        /// A file that keeps what `proxima near set --keep` has changed, relative to this file. Without it
        /// such changes end with the process.
        settings: Optional<PathText>,
    }
}

impl From<NearCacheKeys> for NearCache {
    fn from(keys: NearCacheKeys) -> Self {
        let NearCacheKeys {
            memory,
            scripts,
            settings,
        } = keys;
        Self {
            memory,
            scripts,
            settings,
            kept: NearKept::default(),
        }
    }
}

section! {
    /// A route whose replies are kept, and the rules for them.
    pub(super) struct NearRouteKeys {
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

section! {
    /// Which replies are kept, and for how long.
    pub(super) struct NearRuleKeys {
        /// Its name, by which operators change it while the process runs.
        name: Text,
        /// The beginning of the keys that it is for. Without it and without `pattern` it is for all keys.
        prefix: Optional<Text>,
        /// A glob for the keys that it is for: `*` stands for any characters, `?` for one.
        pattern: Optional<Text>,
        /// The commands that it is for. The default is every command whose replies can be kept.
        commands: List<Text> = Vec::new(),
        /// A reply is fresh for so long; `0s`: none is kept. What other proxies or clients change at the
        /// servers is seen after `ttl` and `stale` at most.
        ttl: Time,
        /// The part of `ttl` by which the time of each reply may be shorter, so that they do not all end
        /// together.
        jitter: Share = NearRule::JITTER,
        /// After `ttl`, clients get the old reply for so long while one request renews it.
        stale: Time = Duration::ZERO,
        /// After `ttl`, clients get the old reply for so long in place of an error.
        stale_on_error: Time = Duration::ZERO,
        /// A miss is kept for so long; `0s`: it is not.
        negative: Time = Duration::ZERO,
        /// The largest reply that is kept. A larger one is passed on as it comes.
        largest: Size = NearRule::LARGEST,
        /// Whether others change the keys, too. With `none`, a long `ttl` is not warned of.
        others: Word<Others> = Others::Some,
    }
}

/// The route as it stands in a configuration.
#[derive(Debug)]
pub(super) struct NearRouteForm;

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
pub(super) struct OriginText;

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

/// A rule as it stands in a configuration.
#[derive(Debug)]
pub(super) struct NearRuleForm;

impl Form for NearRuleForm {
    type Value = NearRule;

    fn shape() -> Shape {
        NearRuleKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<NearRule, Diagnostic> {
        let keys = NearRuleKeys::read(node, cx)?;
        let of = match (keys.prefix, keys.pattern) {
            (None, None) => NearKeys::All,
            (Some(prefix), None) => NearKeys::Prefix(prefix),
            (None, Some(pattern)) => NearKeys::Pattern(pattern),
            (Some(_), Some(_)) => {
                let problem = "a rule is for the keys of a `prefix` or of a `pattern`, not of both";
                return Err(cx
                    .refuse(node.at, problem)
                    .with_remedy("write `pattern: \"PREFIX*…\"`, or two rules"));
            }
        };
        let is_word = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if keys.name.is_empty() || keys.name.len() > 64 || !keys.name.chars().all(is_word) {
            let problem = format!("`{}` is no name for a rule", keys.name.escape_debug());
            return Err(cx
                .refuse(node.at, problem)
                .with_remedy("use up to 64 letters, digits and `-`, `_`, `.`"));
        }
        if keys.ttl.is_zero() && !keys.negative.is_zero() {
            let problem = format!(
                "rule `{}` is off (`ttl: 0s`), so that `negative` keeps nothing",
                keys.name
            );
            cx.warn(node.at, problem);
        }
        Ok(NearRule {
            name: keys.name,
            keys: of,
            commands: keys.commands,
            ttl: keys.ttl,
            jitter: keys.jitter,
            stale: keys.stale,
            stale_on_error: keys.stale_on_error,
            negative: keys.negative,
            largest: keys.largest,
            is_alone: keys.others == Others::None,
        })
    }
}
