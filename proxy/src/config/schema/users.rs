//! The users that clients of a listener may be.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use super::Secret;

/// The file of a listener's users, and what is in it once it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Users {
    /// The file.
    pub file: PathBuf,
    /// Files of passwords that it names.
    pub passwords: Vec<PathBuf>,
    /// The users.
    pub known: Arc<KnownUsers>,
}

/// Users with what is known of their passwords. Nothing shows it.
#[derive(Default, PartialEq, Eq)]
pub struct KnownUsers(pub BTreeMap<Vec<u8>, Secret>);

impl fmt::Debug for KnownUsers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} users", self.0.len())
    }
}
