//! The source of the accounts of a listener's clients.

use std::{fmt, sync::Arc};

use super::Consistency;

/// The users that clients of a listener may be.
pub trait Accounts: Send + Sync {
    /// The secret that a client has to know to be this user. Nothing shows it. `None` if there is no such
    /// user.
    fn secret(&self, user: &[u8]) -> Option<&[u8]>;

    /// The terms of this user. By default they are those of everybody.
    fn terms(&self, _user: &[u8]) -> Terms {
        Terms::default()
    }
}

/// The terms of one user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The most clients of the process that may be this user at a time; `None` without a limit.
    pub clients: Option<u32>,
    /// How fresh reads are; `None` if the listener decides.
    pub consistency: Option<Consistency>,
}

/// One secret, which every user of a listener has: the password in its configuration.
pub struct OneSecret(Arc<[u8]>);

impl OneSecret {
    /// Every user has this secret.
    pub fn new(secret: Arc<[u8]>) -> Self {
        Self(secret)
    }
}

impl Accounts for OneSecret {
    fn secret(&self, _: &[u8]) -> Option<&[u8]> {
        Some(&self.0)
    }
}

impl fmt::Debug for OneSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OneSecret")
    }
}
