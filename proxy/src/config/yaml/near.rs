//! The near cache.

use crate::config::{
    form::{Choice, Optional, PathText, Size, Word},
    schema::{NearCache, NearKept, Scripts},
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
