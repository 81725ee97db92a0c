//! The users that clients of a listener may be.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use super::{Consistency, Secret};

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

/// The known users. They are never printed or logged.
#[derive(Default, PartialEq, Eq)]
pub struct KnownUsers(pub BTreeMap<Vec<u8>, KnownUser>);

/// What is known of one user.
#[derive(PartialEq, Eq)]
pub struct KnownUser {
    /// The password, or a hash of it.
    pub secret: Secret,
    /// The most clients of the process that may be this user at a time; `None`: there is no limit.
    pub clients: Option<u32>,
    /// How fresh the user's reads are; `None`: the listener decides.
    pub consistency: Option<Consistency>,
}

impl fmt::Debug for KnownUsers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} users", self.0.len())
    }
}
