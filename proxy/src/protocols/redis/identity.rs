//! The login that a client's requests use at servers.

use std::fmt;

use crate::protocol::Session;

/// A login of lanes, in a form that a session keeps. The pool's own login in RESP2 is the empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Identity {
    /// The version of the protocol, as in a session.
    pub(super) form: u16,
    /// The database; `None` for the pool's own.
    pub(super) database: Option<u32>,
    pub(super) user: User,
}

/// A user of servers.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) enum User {
    /// The user that the pool's own login names.
    #[default]
    Pool,
    /// Nobody: the client has not logged in.
    Nobody,
    /// The user and the password that the client has named; an empty user is the default one.
    Named { user: Vec<u8>, password: Vec<u8> },
}

/// No password is shown.
impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pool => f.write_str("Pool"),
            Self::Nobody => f.write_str("Nobody"),
            Self::Named { user, .. } => write!(f, "Named({})", user.escape_ascii()),
        }
    }
}

impl Identity {
    /// The login that the requests of this client use.
    pub(super) fn of(session: &Session) -> Self {
        Self::decode(&session.login)
    }

    /// Form, database, kind of user, length of the user's name; the name, the password.
    pub(super) fn encode(&self) -> Vec<u8> {
        if *self == Self::default() {
            return Vec::new();
        }
        let (kind, user, password) = match &self.user {
            User::Pool => (0, &[][..], &[][..]),
            User::Nobody => (1, &[][..], &[][..]),
            User::Named { user, password } => (2, &user[..], &password[..]),
        };
        let mut words = vec![self.form as u8, kind];
        words.extend(self.database.map_or(-1, i64::from).to_le_bytes());
        words.extend((user.len() as u32).to_le_bytes());
        words.extend(user);
        words.extend(password);
        words
    }

    pub(super) fn decode(words: &[u8]) -> Self {
        Self::read(words).unwrap_or_default()
    }

    fn read(words: &[u8]) -> Option<Self> {
        let (&[form, kind], rest) = words.split_first_chunk()?;
        let (database, rest) = rest.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let (user, password) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        Some(Self {
            form: u16::from(form),
            database: u32::try_from(i64::from_le_bytes(*database)).ok(),
            user: match kind {
                0 => User::Pool,
                1 => User::Nobody,
                _ => User::Named {
                    user: user.to_vec(),
                    password: password.to_vec(),
                },
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Identity, User};

    #[test]
    fn what_a_session_keeps_is_what_was_said() {
        let named = User::Named {
            user: b"a\0b".to_vec(),
            password: b"\r\n\0".to_vec(),
        };
        for user in [User::Pool, User::Nobody, named] {
            for (form, database) in [(0, None), (1, Some(0)), (1, Some(u32::MAX))] {
                let user = user.clone();
                let identity = Identity { form, database, user };
                assert_eq!(Identity::decode(&identity.encode()), identity);
            }
        }
        assert!(Identity::default().encode().is_empty());
    }
}
