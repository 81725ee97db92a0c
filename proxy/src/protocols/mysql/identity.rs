//! The identity with which the proxy logs in at a server for a client: a session's login in words.

use std::fmt;

use proxima_wire::mysql::{
    Capabilities,
    password::{NativeKey, Sha2Key},
};

/// Capabilities that change the bytes of replies or the meaning of a text. Connections are shared only by
/// clients that have agreed on the same of them.
const TELLING: Capabilities = Capabilities::FOUND_ROWS
    .with(Capabilities::LONG_FLAG)
    .with(Capabilities::IGNORE_SPACE)
    .with(Capabilities::INTERACTIVE)
    .with(Capabilities::MULTI_STATEMENTS)
    .with(Capabilities::MULTI_RESULTS)
    .with(Capabilities::PS_MULTI_RESULTS)
    .with(Capabilities::DEPRECATE_EOF);

/// The capabilities of every connection to a server.
const ALWAYS: Capabilities = Capabilities::PROTOCOL_41
    .with(Capabilities::TRANSACTIONS)
    .with(Capabilities::SECURE_CONNECTION)
    .with(Capabilities::PLUGIN_AUTH)
    .with(Capabilities::SESSION_TRACK);

/// The proof of an identity to a server.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Proof {
    /// The password.
    Password(Vec<u8>),
    /// The key that a client has shown to know: it is enough for `mysql_native_password`.
    NativeKey(NativeKey),
}

/// A login at a server.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) user: Vec<u8>,
    pub(super) proof: Proof,
    /// The capabilities on which the client and the proxy have agreed.
    pub(super) capabilities: Capabilities,
    /// The lowest byte of the number of the collation.
    pub(super) collation: u8,
    /// The number of the cached login that it is, or of the attempt to log in: a connection belongs to one of
    /// them. 0: the proxy has known the user.
    pub(super) number: u64,
    /// The session has a default database. A session without one needs a connection that never had one.
    pub(super) has_schema: bool,
}

impl Identity {
    /// The capabilities that the connection to the server is to have.
    pub(super) fn wanted(&self) -> Capabilities {
        self.capabilities.both(TELLING).with(ALWAYS)
    }

    /// The login in words, which [`Self::decode`] reads.
    pub(super) fn encode(&self) -> Vec<u8> {
        let (kind, secret) = match &self.proof {
            Proof::Password(password) => (0, &password[..]),
            Proof::NativeKey(key) => (1, &key.bytes()[..]),
        };
        let mut words = self.capabilities.both(TELLING).0.to_le_bytes()[..4].to_vec();
        words.extend_from_slice(&[self.collation, u8::from(self.has_schema), kind]);
        words.extend_from_slice(&self.number.to_le_bytes());
        words.extend_from_slice(&(self.user.len() as u32).to_le_bytes());
        words.extend_from_slice(&self.user);
        words.extend_from_slice(secret);
        words
    }

    /// The identity in these words; `None` if the words are malformed.
    pub(super) fn decode(words: &[u8]) -> Option<Self> {
        let (capabilities, rest) = words.split_first_chunk::<4>()?;
        let (&[collation, has_schema, kind], rest) = rest.split_first_chunk::<3>()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let (len, rest) = rest.split_first_chunk::<4>()?;
        let (user, secret) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        Some(Self {
            user: user.to_vec(),
            proof: match kind {
                0 => Proof::Password(secret.to_vec()),
                _ => Proof::NativeKey(NativeKey::from_bytes(secret.try_into().ok()?)),
            },
            capabilities: Capabilities(u64::from(u32::from_le_bytes(*capabilities))),
            collation,
            number: u64::from_le_bytes(*number),
            has_schema: has_schema != 0,
        })
    }
}

impl Proof {
    /// The key for `mysql_native_password`; `None` if the password is empty.
    pub(super) fn native(&self) -> Option<NativeKey> {
        match self {
            Self::Password(password) if password.is_empty() => None,
            Self::Password(password) => Some(NativeKey::of(password)),
            Self::NativeKey(key) => Some(key.clone()),
        }
    }

    /// The key for `caching_sha2_password`; `None` if the password is empty or not known.
    pub(super) fn sha2(&self) -> Option<Sha2Key> {
        self.password()
            .filter(|password| !password.is_empty())
            .map(Sha2Key::of)
    }

    /// The password; `None` if it is not known.
    pub(super) fn password(&self) -> Option<&[u8]> {
        match self {
            Self::Password(password) => Some(password),
            Self::NativeKey(_) => None,
        }
    }
}

/// No secret is shown.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.user.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use proxima_wire::mysql::{Capabilities, password::NativeKey};

    use super::{Identity, Proof};

    #[test]
    fn a_login_is_read_as_it_was_written_and_shows_no_secret() {
        for proof in [
            Proof::Password(b"secret".to_vec()),
            Proof::Password(Vec::new()),
            Proof::NativeKey(NativeKey::of(b"secret")),
        ] {
            let identity = Identity {
                user: b"ann".to_vec(),
                proof,
                capabilities: Capabilities::FOUND_ROWS,
                collation: 45,
                number: 7,
                has_schema: true,
            };
            let words = identity.encode();
            assert!(Identity::decode(&words) == Some(identity.clone()));
            assert_eq!(format!("{identity:?}"), "Identity(ann)");
            for end in 0..words.len().min(22) {
                assert!(Identity::decode(&words[..end]).is_none(), "{end}");
            }
        }
    }
}
