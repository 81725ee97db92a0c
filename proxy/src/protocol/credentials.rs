//! Credentials, and the access that listeners give.

use std::{fmt, sync::Arc};

use super::Accounts;

/// The proxy's login at the servers of a pool.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Credentials {
    /// The user; empty: the servers' default one.
    pub user: Vec<u8>,
    /// The password. Nothing shows it. `None` if the servers ask for no password.
    pub password: Option<Arc<[u8]>>,
    /// The number of the database.
    pub database: u32,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials of {}", self.user.escape_ascii())
    }
}

/// The login that clients of a listener need before they are served.
#[derive(Clone, Default)]
pub enum Access {
    /// Nothing.
    #[default]
    Open,
    /// The secret of one of these users.
    Accounts(Arc<dyn Accounts>),
    /// The servers decide: a client's login is passed on to them.
    Pass,
}

impl Access {
    /// Is this the secret of this user? The time that the answer takes depends on nothing but the length of
    /// `said`, and on whether there is such a user.
    pub fn admits(&self, user: &[u8], said: &[u8]) -> bool {
        let Self::Accounts(accounts) = self else {
            return false;
        };
        let Some(secret) = accounts.secret(user) else {
            return false;
        };
        let at = |position: usize| secret.get(position).copied().unwrap_or(0);
        let differ = said
            .iter()
            .enumerate()
            .fold(0, |differ, (position, byte)| differ | (byte ^ at(position)));
        (differ == 0) & (said.len() == secret.len())
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "Open",
            Self::Accounts(_) => "Accounts",
            Self::Pass => "Pass",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Access, Accounts, Credentials};
    use crate::protocol::OneSecret;

    fn one(secret: &[u8]) -> Access {
        Access::Accounts(Arc::new(OneSecret::new(secret.into())))
    }

    /// The only user is `ann`, who has no secret to speak of.
    struct Ann;

    impl Accounts for Ann {
        fn secret(&self, user: &[u8]) -> Option<&[u8]> {
            (user == b"ann").then_some(b"")
        }
    }

    #[test]
    fn nobody_but_a_user_of_the_source_is_admitted() {
        let access = Access::Accounts(Arc::new(Ann));
        assert!(access.admits(b"ann", b"") && !access.admits(b"ann", b"x"));
        assert!(!access.admits(b"bob", b"") && !access.admits(b"", b""));
    }

    #[test]
    fn only_the_whole_password_is_the_password() {
        let access = one(b"secret");
        for said in ["", "s", "secre", "secret2", "Secret", "secret\0"] {
            assert!(!access.admits(b"me", said.as_bytes()), "{said}");
        }
        assert!(access.admits(b"me", b"secret"));
        assert!(!Access::Open.admits(b"", b"") && !Access::Pass.admits(b"", b""));
    }

    #[test]
    fn passwords_are_not_shown() {
        let credentials = Credentials {
            user: b"me".to_vec(),
            password: Some(b"secret".as_slice().into()),
            database: 3,
        };
        let shown = format!("{credentials:?} {:?}", one(b"secret"));
        assert!(shown.contains("me") && !shown.contains("secret"), "{shown}");
    }
}
