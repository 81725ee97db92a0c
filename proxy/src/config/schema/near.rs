//! The near cache: kept replies, and the rules by which they are kept.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

/// The near cache of the process.
#[derive(Clone, Debug, PartialEq)]
pub struct NearCache {
    /// Bytes of kept replies and what finds them.
    pub memory: usize,
    /// What scripts may change.
    pub scripts: Scripts,
    /// The file with the settings that were kept at run time. `None`: none are.
    pub settings: Option<PathBuf>,
    /// What that file says.
    pub kept: NearKept,
}

impl NearCache {
    /// The memory, where nothing was changed since the files were read.
    pub fn memory(&self) -> usize {
        self.kept.memory.unwrap_or(self.memory)
    }
}

impl Default for NearCache {
    fn default() -> Self {
        Self {
            memory: 64 << 20,
            scripts: Scripts::Everything,
            settings: None,
            kept: NearKept::default(),
        }
    }
}

/// What a script at a server may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scripts {
    /// Any key.
    Everything,
    /// The keys that it is given, and no others.
    Keys,
}

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
    /// After `ttl`, the old reply is given for so long while one request renews it.
    pub stale: Duration,
    /// After `ttl`, the old reply stands for an error for so long.
    pub stale_on_error: Duration,
    /// A miss is kept for so long; zero: it is not.
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

/// Settings that were kept at run time. They stand in place of the configuration's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NearKept {
    /// The memory.
    pub memory: Option<usize>,
    /// Settings of rules, by name.
    pub rules: BTreeMap<String, NearValues>,
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
