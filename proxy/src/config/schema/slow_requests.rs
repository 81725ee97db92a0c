//! Which requests are slow, and what is kept of them.

use std::time::Duration;

/// The options of slow requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowRequests {
    /// A request that takes so long or longer is slow.
    pub over: Duration,
    /// How many are kept: the last ones.
    pub keep: usize,
    /// How their keys are told.
    pub keys: ShownKeys,
}

impl SlowRequests {
    /// The most that may be kept. Each takes some hundred bytes, and 12 KiB at most.
    pub const MOST: u32 = 1000;
    /// What is meant where only the time is said.
    pub const KEEP: u32 = 200;
}

/// How keys are told to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownKeys {
    /// They are not.
    Hidden,
    /// By a word that is the same for the same key as long as the process runs, and tells nothing else of it.
    Hashed,
    /// As they are.
    Plain,
}

impl ShownKeys {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hidden => "hidden",
            Self::Hashed => "hashed",
            Self::Plain => "plain",
        }
    }
}
