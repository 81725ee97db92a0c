//! The stages of the proxy's login at a server.

use proxima_wire::mysql::{
    SALT,
    password::{CACHING_SHA2, CLEAR, NATIVE},
};

/// The next step of a login.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// The server greets.
    #[default]
    Greeting,
    /// TLS has begun, and the server waits for the login.
    WithinTls([u8; SALT], u8, Method),
    /// The server decides on the proof, which was made for this salt.
    Proof([u8; SALT], bool),
    /// The server sends its key, with which the password is encrypted.
    Key([u8; SALT]),
    /// The server is asked to tell what changes.
    Track,
    Tell,
    /// The server is asked how much it takes.
    Most,
    Galera,
    Over,
}

/// A login method, as far as it is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Native,
    Sha2,
    Clear,
    Other,
}

impl Method {
    pub(super) fn of(name: &[u8]) -> Self {
        match name {
            NATIVE => Self::Native,
            CACHING_SHA2 => Self::Sha2,
            CLEAR => Self::Clear,
            _ => Self::Other,
        }
    }

    pub(super) const fn name(self) -> &'static [u8] {
        match self {
            Self::Sha2 => CACHING_SHA2,
            Self::Clear => CLEAR,
            Self::Native | Self::Other => NATIVE,
        }
    }
}
