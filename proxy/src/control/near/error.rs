//! Why an order for the near cache is not carried out.

use std::{io, path::PathBuf};

use crate::config::ConfigError;

/// Why an order is not carried out. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum NearError {
    /// The configuration has no such route.
    #[error("nothing is kept here: the configuration has no route `near`")]
    None,
    /// There is no such rule.
    #[error("there is no rule `{0}`; known are {1}")]
    NoRule(String, String),
    /// A value cannot be used; the text says what would be right.
    #[error("{0}")]
    Value(String),
    /// A rule that was off since the start has no time.
    #[error("rule {0} has no `ttl` to go back to: say how long its replies are kept, as in `ttl=10s`")]
    NoTime(String),
    /// The configuration names no file.
    #[error(
        "nothing says where settings are kept: write `near: {{settings: FILE}}` in the configuration, or \
         change them until the next start, without `keep`"
    )]
    NoFile,
    /// The file is damaged, and would be lost.
    #[error("what was kept before cannot be read: {0}")]
    Damaged(ConfigError),
    /// The disk has no room, or the folder cannot be written to.
    #[error("{0} cannot be written: {1}. Without `keep` the change holds until the next start")]
    Unwritten(PathBuf, io::Error),
}
