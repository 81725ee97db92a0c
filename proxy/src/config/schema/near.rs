//! The near cache: kept replies, and the rules by which they are kept.

use std::{path::PathBuf, time::Duration};

/// The near cache of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearCache {
    /// Bytes of kept replies and what finds them.
    pub memory: usize,
    /// What scripts may change.
    pub scripts: Scripts,
    /// The file with the settings that were kept at run time. `None`: none are.
    pub settings: Option<PathBuf>,
}

impl Default for NearCache {
    fn default() -> Self {
        Self {
            memory: 64 << 20,
            scripts: Scripts::Everything,
            settings: None,
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

impl NearRule {
    /// The part of `ttl` by which times are shortened by default.
    pub const JITTER: f64 = 0.1;
    /// The largest reply that is kept by default.
    pub const LARGEST: usize = 1 << 20;
    /// Above this `ttl`, what others change may be old for longer than most would expect.
    pub const LONG: Duration = Duration::from_secs(60);
}
