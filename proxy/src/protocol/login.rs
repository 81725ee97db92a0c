//! The result of one step of a login at a server.

/// The result of one step of the proxy's login at a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Login {
    /// The login goes on.
    More {
        /// Bytes that this step has used.
        used: usize,
    },
    /// The login is over; the bytes that follow are requests or replies.
    Ready {
        /// Bytes that this step has used.
        used: usize,
    },
    /// The login is over, but the server may be given only [common](super::ServerSide::is_common) commands,
    /// and no request that [exceeds](super::ServerSide::exceeds) what it takes.
    Limited {
        /// Bytes that this step has used.
        used: usize,
        /// The reason, in words for the client.
        why: String,
    },
    /// The login goes on behind the TLS of the listener or pool; if that is in place already, behind the
    /// transform of [`Protocol::upgrade`](super::Protocol::upgrade); bytes appended so far leave before it.
    /// The next step is taken at once, without bytes. No bytes may follow those used: an attacker between the
    /// two ends could have inserted them.
    Upgrade {
        /// Bytes that this step has used.
        used: usize,
    },
    /// The login failed, for this reason; the connection is closed after the bytes that were appended.
    Failed(String),
    /// The server does not accept the pool's own login, for this reason. It will not until an operator
    /// corrects one of them.
    Rejected(String),
    /// The server has no room for one more connection with the login that a client has named, and is well:
    /// what waits for the login waits for another connection.
    Full {
        /// The server's reply, for requests that get none in time.
        reply: Vec<u8>,
        /// There may be room for other logins.
        is_of_login: bool,
    },
    /// The server does not accept the login that a client has named. This is its reply to each request that
    /// waits for the login.
    Denied(Vec<u8>),
}
