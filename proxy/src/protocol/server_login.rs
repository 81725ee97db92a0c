//! The context of a login at a server.

use std::{fmt, sync::Arc};

use super::{Credentials, LoginCache, MemberNote, PoolCount, ReachedCount, SharedCount};

/// The facts with which the proxy logs in at a server.
pub struct ServerLogin<'a> {
    /// The login in the codec's words, from [`Session::login`](super::Session::login); empty: the pool's own
    /// login.
    pub words: &'a [u8],
    /// The pool's own login; `None` if servers ask for none.
    pub own: Option<&'a Credentials>,
    /// The pool of the server.
    pub pool: &'a Arc<str>,
    /// Logins that servers have accepted, for a codec to tell what this one says to one of them.
    pub logins: &'a LoginCache,
    /// Without TLS, a password may be encrypted with the key that the server sends.
    pub may_encrypt: bool,
    /// The pool's count, for a lane's state that raises or needs it.
    pub count: &'a PoolCount,
    /// The part of that count that the server has.
    pub reached: &'a ReachedCount,
    /// The number of changes of schemas that were seen, for a lane's state that raises or needs it.
    pub schema_changes: &'a SharedCount,
    /// The number of statements that the server has prepared for the proxy, for a lane's state to count its
    /// own.
    pub prepared: &'a SharedCount,
    /// The pool state's note about the server.
    pub noted: &'a MemberNote,
    /// The server forgets its session before another one has the connection, whatever it keeps.
    pub resets: bool,
    /// Clients share the connection.
    pub is_shared: bool,
    /// The login must be [upgraded](super::Login::Upgrade) to TLS before anything secret is said.
    pub wants_tls: bool,
    /// The server's part of the clients' [greeting](super::ClientSide::greeting), in the codec's words, which
    /// sets it; empty if the server tells none.
    pub said: Vec<u8>,
    /// The server's version, in the codec's words, which sets it; 0 if the server tells none.
    pub version: u64,
    /// The most connections that the server takes from everybody, which the codec sets; 0 if the server tells
    /// none.
    pub connections: u32,
}

/// No password is shown, nor anything else that a server may be told.
impl fmt::Debug for ServerLogin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerLogin")
            .field("own", &self.own)
            .field("is_shared", &self.is_shared)
            .field("wants_tls", &self.wants_tls)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
