//! Where the accounts of a listener's clients come from.

use std::{fmt, sync::Arc};

/// The users that clients of a listener may be.
pub trait Accounts: Send + Sync {
    /// What a client has to know to be this user. Nothing shows it. `None`: there is no such user.
    fn secret(&self, user: &[u8]) -> Option<&[u8]>;

    /// What else holds for this user. By default what holds for everybody.
    fn terms(&self, _user: &[u8]) -> Terms {
        Terms::default()
    }
}

/// What holds for one user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The most clients of the process that may be this user at a time; `None`: there is no limit.
    pub clients: Option<u32>,
    /// Whether reads wait for nothing; `None`: the listener decides.
    pub is_eventual: Option<bool>,
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
