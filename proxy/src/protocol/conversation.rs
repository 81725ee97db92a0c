//! The codec's state of a connection to a server.

use std::{fmt, sync::Arc};

use super::Credentials;

/// The state of the proxy's login at a server. Only the codec knows what it means.
#[derive(Default)]
pub struct Conversation {
    /// The next step of the login.
    pub step: u32,
    /// Data that a later step needs (a salt, a user's name).
    pub notes: Vec<u8>,
    /// The login in the codec's words, from [`Session::login`](super::Session::login); empty: the pool's own
    /// login.
    pub login: Arc<[u8]>,
    /// The pool's own login; `None`: servers ask for none.
    pub own: Option<Arc<Credentials>>,
    /// What the server has told of its version, in the codec's words; 0: nothing.
    pub version: u64,
    /// Clients share the connection.
    pub is_shared: bool,
}

/// No password is shown, nor anything else that a server may be told.
impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation")
            .field("step", &self.step)
            .field("own", &self.own)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
