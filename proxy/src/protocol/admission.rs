//! The result of one step of a client's login, and the context that the codec is given for it.

use std::{net::IpAddr, sync::Arc};

use proxima_wire::message::Reply;

use super::{Failed, LoginCache, PasswordKey, Reach, UserConnections};

/// The result of one step of a client's login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// More bytes are needed.
    More {
        /// Bytes that this step has used.
        used: usize,
    },
    /// The login is over; the bytes that follow are requests.
    Ready {
        /// Bytes that this step has used.
        used: usize,
    },
    /// A server is asked before the login goes on, with the login that the session names now: this request
    /// walks the tree as a client's would. The next step is [`ClientSide::heard`](super::ClientSide::heard).
    Ask {
        /// Bytes that this step has used.
        used: usize,
        /// The request, whole.
        request: Vec<u8>,
    },
    /// The same step is to be taken again in a moment: others are before it. It has used no bytes.
    Later,
    /// The login goes on behind the transform of [`Protocol::upgrade`](super::Protocol::upgrade); bytes
    /// appended so far leave before it. The next step is taken at once, without bytes.
    Upgrade {
        /// Bytes that this step has used.
        used: usize,
    },
    /// The client is not served; the connection is closed after the bytes that were appended.
    Denied,
}

/// The context of a login's step, beside the session and the client's bytes.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionContext<'a> {
    /// The codec's [greeting](super::ClientSide::greeting) of this listener's clients.
    pub greeting: &'a [u8],
    /// Random bits, other ones in each step.
    pub random: [u64; 4],
    /// The time since 1970, in µs.
    pub unix: u64,
    /// The servers that the client's requests will reach.
    pub reach: Reach,
    /// The number of connections of each user.
    pub user_connections: &'a Arc<UserConnections>,
    /// The servers whose users the listener serves, in a word. Listeners that lead to the same have the same.
    pub realm: &'a str,
    /// Users may be others in each schema.
    pub has_realm_by_schema: bool,
    /// Logins that servers have accepted.
    pub logins: &'a Arc<LoginCache>,
    /// The host of the client, as far as it can be told from others; `None` if the host is not known.
    pub host: Option<IpAddr>,
    /// The login may be [upgraded](Admission::Upgrade) to TLS.
    pub offers_tls: bool,
    /// Nobody between the client and the proxy can read what is said: it is within TLS, or comes through a
    /// Unix socket.
    pub is_private: bool,
    /// The key with which clients may encrypt passwords elsewhere.
    pub key: Option<&'a PasswordKey>,
}

/// The answer to a question of a login.
#[derive(Clone, Copy, Debug)]
pub enum ServerAnswer<'a> {
    /// A server has answered this. If it denied the login, these are its words for that.
    Reply(&'a Reply, &'a [u8]),
    /// No server has answered.
    Failed(&'a Failed<'a>),
}
