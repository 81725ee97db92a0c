//! Rules by which replies are kept.

use std::time::Duration;

use crate::config::{
    Diagnostic,
    document::Node,
    form::{Choice, Form, List, Optional, Shape, Share, Size, Text, Time, Word},
    reading::Reading,
    section::section,
};

/// Which replies are kept, and for how long.
#[derive(Clone, Debug, PartialEq)]
pub struct NearRule {
    /// Its name, which no other rule of the configuration has.
    pub name: String,
    /// The keys that it is for.
    pub keys: NearKeys,
    /// The commands that it is for; empty: all that can be kept.
    pub commands: Vec<String>,
    /// A reply is fresh for so long; zero: none is kept.
    pub ttl: Duration,
    /// The part of `ttl` by which the time of a single reply may be shorter, from 0 to 1.
    pub jitter: f64,
    /// The time after `ttl` in which the old reply is given while one request renews it.
    pub stale: Duration,
    /// The time after `ttl` in which the old reply is given in place of an error.
    pub stale_on_error: Duration,
    /// The time for which a miss is kept; zero: it is not.
    pub negative: Duration,
    /// The largest reply that is kept, in bytes.
    pub largest: usize,
    /// Nobody but this proxy changes the keys.
    pub is_alone: bool,
}

/// The keys that a rule is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NearKeys {
    /// All keys.
    All,
    /// Those that begin so.
    Prefix(String),
    /// Those that match this glob as a whole.
    Pattern(String),
}

/// Some settings of a rule.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "`NearRule` says it")]
pub struct NearValues {
    pub ttl: Option<Duration>,
    pub jitter: Option<f64>,
    pub stale: Option<Duration>,
    pub stale_on_error: Option<Duration>,
    pub negative: Option<Duration>,
    pub largest: Option<usize>,
}

impl NearValues {
    /// These values, and the others where there is none.
    pub fn or(&self, others: &Self) -> Self {
        Self {
            ttl: self.ttl.or(others.ttl),
            jitter: self.jitter.or(others.jitter),
            stale: self.stale.or(others.stale),
            stale_on_error: self.stale_on_error.or(others.stale_on_error),
            negative: self.negative.or(others.negative),
            largest: self.largest.or(others.largest),
        }
    }

    /// Those of them that differ from the others.
    pub fn other_than(&self, others: &Self) -> Self {
        fn differing<T: PartialEq>(own: Option<T>, other: Option<T>) -> Option<T> {
            if own == other { None } else { own }
        }
        let own = self.clone();
        Self {
            ttl: differing(own.ttl, others.ttl),
            jitter: differing(own.jitter, others.jitter),
            stale: differing(own.stale, others.stale),
            stale_on_error: differing(own.stale_on_error, others.stale_on_error),
            negative: differing(own.negative, others.negative),
            largest: differing(own.largest, others.largest),
        }
    }
}

impl NearRule {
    /// Its settings.
    pub fn values(&self) -> NearValues {
        NearValues {
            ttl: Some(self.ttl),
            jitter: Some(self.jitter),
            stale: Some(self.stale),
            stale_on_error: Some(self.stale_on_error),
            negative: Some(self.negative),
            largest: Some(self.largest),
        }
    }

    /// The part of `ttl` by which times are shortened by default.
    pub const JITTER: f64 = 0.1;
    /// The largest reply that is kept by default.
    pub const LARGEST: usize = 1 << 20;
    /// Above this `ttl`, what others change may be old for longer than most would expect.
    pub const LONG: Duration = Duration::from_secs(60);
}

/// Whether others change the keys of a rule, too.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Others {
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
    /// Which replies are kept, and for how long.
    struct NearRuleKeys {
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
