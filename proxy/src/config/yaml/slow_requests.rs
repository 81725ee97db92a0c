//! Slow requests.

use crate::config::{
    form::{Choice, Count, PositiveTime, Word},
    schema::{ShownKeys, SlowRequests},
    section::section,
};

impl Choice for ShownKeys {
    const WHAT: &'static str = "how keys are told";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        (Self::Hidden.name(), Self::Hidden, "they are not told"),
        (
            Self::Hashed.name(),
            Self::Hashed,
            "by a word that is the same for the same key as long as the process runs, and tells nothing else of it",
        ),
        (Self::Plain.name(), Self::Plain, "as they are"),
    ];
}

section! {
    /// Slow requests, which are kept with the times of their steps: for `/slow`, the console and the log. Their
    /// time is that from the request's way into the routes to its answer. Of more than 10,000 requests a second
    /// and worker, some are looked at by chance. Values are never kept, and neither are those in statements of
    /// MySQL.
    #[short(over)]
    pub(super) struct SlowRequestsKeys {
        /// A request that takes so long or longer is slow.
        over: PositiveTime,
        /// How many are kept: the last ones.
        keep: Count<1, { SlowRequests::MOST }> = SlowRequests::KEEP,
        /// How their keys are told.
        keys: Word<ShownKeys> = ShownKeys::Hashed,
    }
}

impl From<SlowRequestsKeys> for SlowRequests {
    fn from(SlowRequestsKeys { over, keep, keys }: SlowRequestsKeys) -> Self {
        Self {
            over,
            keep: keep as usize,
            keys,
        }
    }
}
