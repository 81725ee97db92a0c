//! Where the accounts of a listener's clients come from.

use std::{fmt, sync::Arc};

/// The users that clients of a listener may be.
pub trait Accounts: Send + Sync {
    /// What a client has to know to be this user. Nothing shows it. `None`: there is no such user.
    fn secret(&self, user: &[u8]) -> Option<&[u8]>;
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
