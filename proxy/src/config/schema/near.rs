//! The near cache, which keeps replies.

use std::{collections::BTreeMap, path::PathBuf};

use super::NearValues;

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

/// Settings that were kept at run time. They stand in place of the configuration's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NearKept {
    /// The memory.
    pub memory: Option<usize>,
    /// Settings of rules, by name.
    pub rules: BTreeMap<String, NearValues>,
}
