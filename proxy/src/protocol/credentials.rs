//! What is said at a login.

use std::{fmt, sync::Arc};

/// How the proxy logs in at the servers of a pool.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Credentials {
    /// The user; empty: the servers' default one.
    pub user: Vec<u8>,
    /// The password. Nothing shows it. `None`: the servers ask for none.
    pub password: Option<Arc<[u8]>>,
    /// The number of the database.
    pub database: u32,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials of {}", self.user.escape_ascii())
    }
}

/// What the clients of a listener must say before they are served.
#[derive(Clone, Default)]
pub enum Access {
    /// Nothing.
    #[default]
    Open,
    /// This password.
    Password(Arc<[u8]>),
    /// What the servers ask for: a client's login is passed on to them.
    Pass,
}

impl Access {
    /// Is this the password? The time that the answer takes depends on nothing but the length of `said`.
    pub fn is_password(&self, said: &[u8]) -> bool {
        let Self::Password(password) = self else {
            return false;
        };
        let at = |place: usize| password.get(place).copied().unwrap_or(0);
        let differ = said
            .iter()
            .enumerate()
            .fold(0, |differ, (place, byte)| differ | (byte ^ at(place)));
        (differ == 0) & (said.len() == password.len())
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "Open",
            Self::Password(_) => "Password",
            Self::Pass => "Pass",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Access, Credentials};

    #[test]
    fn only_the_whole_password_is_the_password() {
        let access = Access::Password(b"secret".as_slice().into());
        for said in ["", "s", "secre", "secret2", "Secret", "secret\0"] {
            assert!(!access.is_password(said.as_bytes()), "{said}");
        }
        assert!(access.is_password(b"secret"));
        assert!(!Access::Open.is_password(b"") && !Access::Pass.is_password(b""));
    }

    #[test]
    fn passwords_are_not_shown() {
        let credentials = Credentials {
            user: b"me".to_vec(),
            password: Some(b"secret".as_slice().into()),
            database: 3,
        };
        let shown = format!(
            "{credentials:?} {:?}",
            Access::Password(b"secret".as_slice().into())
        );
        assert!(shown.contains("me") && !shown.contains("secret"), "{shown}");
    }
}
