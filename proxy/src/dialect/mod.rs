//! The contract between the worker and a protocol. [`Dialect`] hides everything below a session and a lane
//! that differs between memcached, Redis and MySQL. Everything that does not differ (order, batching, limits,
//! time-outs) is written once, in `client` and `upstream`.

mod channels;
mod connection_facts;
mod copied;
mod credentials;
mod declared;
mod dialects;
mod embedded;
mod failed;
mod figures;
mod join;
mod manner;
mod memcache;
mod pool_state;
mod redis;
mod repair;
mod session;
mod subscription;
mod transform;

use std::{fmt, ops::Range, sync::Arc};

use proxima_wire::message::{Bad, Class, NextKey, Outcome, Parse, Parsed, Reply, Request, Span};

pub use self::{
    channels::Channels,
    connection_facts::ConnectionFacts,
    copied::Copied,
    credentials::{Access, Credentials},
    declared::{Declared, DeclaredCommands},
    dialects::{Dialects, Spoken},
    embedded::Embedded,
    failed::{Failed, Fate},
    figures::Figures,
    join::{Assembly, Excerpt, Join, Shares},
    manner::Manner,
    memcache::{MCROUTER_ADMIN, Memcache},
    pool_state::PoolState,
    redis::Redis,
    repair::{Incarnation, Introduction, Question, Repair, Unfit},
    session::{Lease, Reach, Session},
    subscription::{Confirmation, Subject, Subscribing, SubscriptionCounts},
    transform::Transform,
};
pub use proxima_wire::message::{Effect, Message, Piece};

/// The state of the proxy's login at a server. Only the codec knows what it means.
#[derive(Default)]
pub struct Conversation {
    /// The next step of the login.
    pub step: u32,
    /// Data that a later step needs (a salt, a user's name).
    pub notes: Vec<u8>,
    /// The login in the codec's words, from [`Session::login`]; empty: the pool's own login.
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

/// The result of one step of a login.
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
    /// The login is over, but the server may be given only [common](Dialect::is_common) commands, and no
    /// request that [exceeds](Dialect::exceeds) what it takes.
    Limited {
        /// Bytes that this step has used.
        used: usize,
        /// The reason, in words for the client.
        why: String,
    },
    /// The login goes on behind the transform of [`Dialect::upgrade`]; bytes appended so far leave before it.
    /// The next step is taken at once, without bytes. No bytes may follow those used: an attacker between the
    /// two ends could have inserted them.
    Upgrade {
        /// Bytes that this step has used.
        used: usize,
    },
    /// The login failed, for this reason; the connection is closed after the bytes that were appended.
    Refused(String),
    /// The server does not accept the pool's own login, for this reason. It will not until an operator
    /// corrects one of them.
    Rejected(String),
    /// The server does not accept the login that a client has named. This is its reply to each request that
    /// waits for the login.
    Denied(Vec<u8>),
}

/// What the session does with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// The request walks the tree.
    Route,
    /// The request walks the tree to a dedicated lane of the client, which stays the client's as long as the
    /// session's [`Lease`] says. Without a key it goes to the lane that the client has. What the codec has
    /// appended are requests to be sent before it, whose replies nobody gets.
    Dedicated,
    /// The request is planned again when every earlier one of its client is answered. The call has changed
    /// nothing.
    Later,
    /// The request changes the client's [subscriptions](Channels), which may be at several servers.
    Subscribe,
    /// The request has several keys. It walks the tree as it is if all of them are at one place; otherwise it
    /// is [divided](Dialect::spread).
    Spread {
        /// Whether it can be.
        divides: bool,
    },
    /// The request goes to every member that it concerns, and the replies are [joined](Dialect::spread); to one of
    /// them, if they cannot be.
    Everywhere,
    /// The request goes to one of the members that the client can reach, which [`Dialect::visit`] names, so
    /// that a client can visit one after the other.
    Visit,
    /// The request goes to the only member that can be reached; where there are others, what the codec has appended
    /// is the reply.
    Alone,
    /// The codec has appended a request that is served in place of this one.
    Instead,
    /// The session answers the request; the codec has appended the reply.
    Answer,
    /// The proxy answers an error with this text.
    Refuse(&'static str),
    /// The request goes to every member of the listener's tree.
    Broadcast,
    /// The proxy answers its own metrics, or those of the servers behind it.
    Stats,
    /// The codec answers with [figures](Dialect::figures) of the process.
    Figures,
    /// The codec answers with [facts](Dialect::connection) of the client's connection.
    Connection,
    /// The control thread answers: what is asked for is about the whole process. The request may be no large
    /// one, and nothing may be due to its client.
    Consult,
    /// The proxy answers which proxies clients of this listener may use, in this form of those in which the
    /// protocol tells it. While they are not known, what the codec has appended is the reply.
    Announce(u16),
    /// The connection is closed after the replies that are due and what the codec has appended.
    Close,
    /// As `Close`, for a request that is not taken here: the client counts as one that failed.
    Reject,
    /// The process ends, and the client gets no reply.
    Shutdown,
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub enum End<'a> {
    /// A client of this listener.
    Client {
        /// The listener's number.
        listener: u16,
    },
    /// A server, as a member of a pool.
    Server {
        /// The pool's name.
        pool: &'a str,
        /// The server's address.
        address: &'a str,
    },
}

/// The error text of a login that asks for an upgrade which is not possible.
pub const NO_UPGRADE: &str = "the login cannot be upgraded here";

/// The error text for a server's bytes that are not a reply.
pub const MALFORMED: &str = "malformed reply";
/// The problem with a reply that is the one to another request.
pub const FOREIGN: &str = "malformed reply: it names another key than was asked for";

/// The command number that stands for "no request waits": the next message can only be a [`Message::Push`].
pub const UNASKED: u16 = u16::MAX;

/// When a value that a request stores will expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// The request says nothing about it.
    None,
    /// Never.
    Never,
    /// In so many seconds; negative: at once.
    In(i64),
}

/// The parts of a request that a route changes; `None`: unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Change<'a> {
    /// The new key.
    pub key: Option<&'a [u8]>,
    /// The new expiry time, as the protocol counts it.
    pub ttl: Option<i64>,
}

/// All outcomes with their names in metrics.
pub const OUTCOMES: [(Outcome, &str); 20] = [
    (Outcome::Ok, "ok"),
    (Outcome::Stored, "stored"),
    (Outcome::Exists, "exists"),
    (Outcome::Deleted, "deleted"),
    (Outcome::Found, "found"),
    (Outcome::NotFound, "not_found"),
    (Outcome::NotStored, "not_stored"),
    (Outcome::Timeout, "timeout"),
    (Outcome::ConnectTimeout, "connect_timeout"),
    (Outcome::ConnectError, "connect_error"),
    (Outcome::Busy, "busy"),
    (Outcome::Shutdown, "shutdown"),
    (Outcome::TryAgain, "try_again"),
    (Outcome::Ejected, "ejected"),
    (Outcome::Deadline, "deadline"),
    (Outcome::Overloaded, "overloaded"),
    (Outcome::RemoteError, "remote_error"),
    (Outcome::LocalError, "local_error"),
    (Outcome::ClientError, "client_error"),
    (Outcome::Touched, "touched"),
];

/// One protocol: first the methods that every protocol must have, then those with a default.
pub trait Dialect: Send + Sync {
    // Required.

    /// The protocol's name in configurations. Dialects of one protocol share the name; a process has only one
    /// of them.
    fn name(&self) -> &'static str;

    /// The names of the commands in configurations; a name's index is the command's number. A request may
    /// have a number beyond them, by which the codec tells it from others like it: it counts as the last of
    /// them.
    fn commands(&self) -> &'static [&'static str];

    /// Parses the head of the next request. `parse` holds what an earlier call noted about the beginning of
    /// these bytes, which was incomplete then; otherwise it is new. The call leaves it new, unless the bytes
    /// are still incomplete, or the request is [open](Request::is_open).
    ///
    /// `value_limit`: the most bytes of a value.
    fn request(&self, parse: &mut Parse, bytes: &[u8], value_limit: u64) -> Parsed<Request>;

    /// Parses the next message from a server in answer to `command` (or [`UNASKED`]). `parse` holds what an
    /// earlier call noted about the beginning of these bytes, or about the part before them; otherwise it is
    /// new. The last message of a reply leaves it new. Only the last part of a reply may be larger than a
    /// shared lane takes; larger parts and pushes break the connection.
    fn reply(&self, parse: &mut Parse, command: u16, bytes: &[u8]) -> Parsed<Message>;

    /// May a request of this command go to another server after the answer of one that may have executed it
    /// was lost?
    fn may_repeat(&self, command: u16) -> bool;

    /// Does a request of this command do the same at every server that holds the same? Only such a request
    /// may be sent to several at once.
    fn is_same_everywhere(&self, command: u16) -> bool;

    /// Appends the reply of an empty cache; for a streamed request `message` is its head. `form`: that of the
    /// client's [`Session`].
    fn miss(&self, form: u16, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Reply;

    /// Does this reply say that there is nothing of what the request asks for, although it is no null? By default
    /// the reply's outcome says all.
    fn is_miss(&self, _form: u16, _: &Request, _message: &[u8], _reply: &[u8]) -> bool {
        false
    }

    /// Do replies to deletes tell what was removed (a value, a number of keys)? By default they only say whether
    /// anything was.
    fn tells_what_was_removed(&self) -> bool {
        false
    }

    /// Appends an error that the proxy itself answers.
    fn error(&self, session: &Session, failed: &Failed<'_>, out: &mut Vec<u8>);

    /// Appends what the proxy answers to a request of this command that has failed. By default that is one
    /// error.
    fn failure(&self, session: &Session, _command: u16, failed: &Failed<'_>, out: &mut Vec<u8>) {
        self.error(session, failed, out);
    }

    /// A request that every healthy server answers and that changes nothing, with the number of its command.
    fn probe(&self) -> (u16, &'static [u8]);

    // Provided: listeners.

    /// The same protocol at a listener whose clients discover the proxies; `None`: they cannot.
    fn announcing(&self) -> Option<&'static dyn Dialect> {
        None
    }

    /// The same protocol in this manner. `None`: it stays as it is.
    fn in_manner(&self, _: Manner) -> Option<&'static dyn Dialect> {
        None
    }

    // Provided: commands.

    /// The number of a command by its name in configurations; `None`: there is no such command.
    fn command(&self, name: &str) -> Option<u16> {
        let number = self.commands().iter().position(|&word| word == name)?;
        u16::try_from(number).ok()
    }

    /// The name of a command by its number.
    fn command_name(&self, command: u16) -> &'static str {
        self.commands().get(usize::from(command)).unwrap_or(&"?")
    }

    /// The shortest request of this command for this key, with which `explain` walks the tree. By default
    /// there is none.
    fn example(&self, _command: u16, _key: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// The name of what this command does to the data. By default the protocol does not say.
    fn class_of(&self, _command: u16) -> Option<&'static str> {
        None
    }

    /// Does this command look up a key, so that its replies count as hits and misses? By default no command
    /// does.
    fn looks_up(&self, _command: u16) -> bool {
        false
    }

    // Provided: connections.

    /// The transform between a new connection and its bytes. By default there is none.
    fn transform(&self, _: End<'_>) -> Option<Box<dyn Transform>> {
        None
    }

    /// The transform that begins with the [upgrade](Login::Upgrade) of a login. By default there is none, and
    /// the login is refused.
    fn upgrade(&self, _: End<'_>) -> Option<Box<dyn Transform>> {
        None
    }

    /// Is the [session](Session) of a client kept from one call to the next? Without it every call gets a new
    /// one. By default it is.
    fn keeps_session(&self) -> bool {
        true
    }

    /// Takes one step of a client's login. The first call, without bytes, comes when the client connects: a
    /// protocol whose server speaks first writes its greeting here. By default clients do not log in.
    fn admit(&self, _: &mut Session, _bytes: &[u8], _out: &mut Vec<u8>) -> Login {
        Login::Ready { used: 0 }
    }

    /// Takes one step of the proxy's login at a server. The first call, without bytes, comes when the lane is
    /// connected. By default the proxy does not log in.
    fn login(&self, _: &mut Conversation, _bytes: &[u8], _out: &mut Vec<u8>) -> Login {
        Login::Ready { used: 0 }
    }

    /// May a server whose login was [limited](Login::Limited) be given this command? By default it may.
    fn is_common(&self, _command: u16) -> bool {
        true
    }

    /// In which words does a server whose login was [limited](Login::Limited) close a connection for this
    /// request? `message` is the request, or the head of a streamed one. `None`: it answers it. By default it
    /// answers all.
    fn exceeds(&self, _: &Request, _message: &[u8]) -> Option<&'static [u8]> {
        None
    }

    /// Why a server that answers the [probe](Self::probe) like this may be given only [common
    /// commands](Self::is_common). `None`: it may be given all. By default every server may.
    fn limit(&self, _answer: &[u8]) -> Option<String> {
        None
    }

    /// A question by whose answer, if it is no error, a server proves that it knows the common commands that
    /// [need proof](Request::needs_proof); with the number of its command. By default there are none.
    fn proof(&self) -> Option<Question> {
        None
    }

    // Provided: requests.

    /// Parses the head of a request that is complete.
    fn head(&self, message: &[u8]) -> Parsed<Request> {
        self.request(&mut Parse::default(), message, u64::MAX)
    }

    /// The request as the configuration declares its command, if the codec does not know that; or as this
    /// session makes it a shorter one. By default neither does.
    fn resolve(&self, _: &Session, _: &DeclaredCommands, _: &Request, _message: &[u8]) -> Option<Request> {
        None
    }

    /// Checks the end of the request's body. By default any end is valid: the length says all.
    ///
    /// # Errors
    /// The end is wrong; the error says what is answered, and whether the connection is closed.
    #[inline]
    fn check_end(&self, _message: &[u8]) -> Result<(), Bad> {
        Ok(())
    }

    /// Parses what follows in an [open](Request::is_open) request behind the bytes that were counted. `parse`
    /// is what [`Dialect::request`] or this method left; the last piece leaves it new. By default no request
    /// is open.
    fn piece(&self, _: &mut Parse, _bytes: &[u8], _value_limit: u64) -> Parsed<Piece> {
        Parsed::Bad(Bad::fatal(b""))
    }

    /// Is each key of this request served as a request of its own, as it comes? The returned [`Join`] says
    /// how the replies are joined; such a request is not planned. Bytes appended to `_begin` are written
    /// before the replies. By default no request is split.
    #[inline]
    fn split(
        &self,
        _: &Session,
        _: &Request,
        _message: &[u8],
        _begin: &mut Vec<u8>,
    ) -> Option<&'static Join> {
        None
    }

    /// What to do with a request; asked once for each request as soon as the session reaches it. A read,
    /// write or delete of one key walks the tree without this call, unless the [session](Session::plans_all)
    /// wants it. For a value that is passed on as it comes, `message` holds the bytes that have come.
    ///
    /// By default a request about one key is routed, and any other is refused. Many clients share a
    /// connection to a server, so no client may change the connection's state; and several keys may belong to
    /// several servers.
    #[inline]
    fn plan(&self, _: &mut Session, request: &Request, _message: &[u8], _out: &mut Vec<u8>) -> Plan {
        match request.class {
            Class::Admin | Class::Session => Plan::Refuse("the proxy cannot tell which server this is for"),
            _ if !request.more_keys.is_empty() => Plan::Refuse("the proxy takes one key at a time"),
            _ => Plan::Route,
        }
    }

    /// Appends the reply to a request that asks for these [figures](Plan::Figures). By default none does.
    fn figures(&self, _: &Session, _message: &[u8], _: &Figures, _out: &mut Vec<u8>) {}

    /// Appends the reply to a request that asks for these [facts](Plan::Connection). By default none does.
    fn connection(&self, _: &Session, _message: &[u8], _: &ConnectionFacts, _out: &mut Vec<u8>) {}

    /// Parses what comes next in a request that is to be split. `bytes` begin at its first key or behind any
    /// of its keys, and may be incomplete. By default the proxy cannot tell. A mistake that closes the
    /// connection has no reply.
    fn next_key(&self, _: &Request, _bytes: &[u8]) -> NextKey {
        NextKey::Bad(Bad::fatal(b""))
    }

    /// Gives each key of a complete request to `take`, in order. By default that is its first key.
    fn keys(&self, request: &Request, _message: &[u8], take: &mut dyn FnMut(Span)) {
        if !request.key.is_empty() {
            take(request.key);
        }
    }

    /// How the replies of several members to parts of this request, or to all of it, are joined; a
    /// [`Join::Shares`]. By default a request cannot be divided.
    fn spread(&self, _: &Request) -> Option<&'static Join> {
        None
    }

    /// The text in place of an error with this result, with which a server has answered a part of a request
    /// that is [divided](Dialect::spread). `None`: the server's own, as by default.
    fn error_of_part(&self, _: Outcome) -> Option<&'static [u8]> {
        None
    }

    /// Does a request of this command ask which keys there are? It is then for the servers where reads go. By
    /// default it is for all.
    fn asks_for_keys(&self, _command: u16) -> bool {
        false
    }

    /// Appends the request for some of the keys of a request that is [divided](Dialect::spread): these, which
    /// [`keys`](Dialect::keys) has given, in order.
    fn part(&self, _: &Request, _message: &[u8], _keys: &mut dyn Iterator<Item = Span>, _out: &mut Vec<u8>) {}

    /// Which of several members is asked by a request that [visits](Plan::Visit) them. `numbers` are those of
    /// the members, in ascending order; a member's number is the same in every process, and remains as others
    /// come and go. Appends the request for that member, or, if no member is asked, the reply. By default no
    /// member is.
    fn visit(&self, _message: &[u8], _numbers: &[u16], _out: &mut Vec<u8>) -> Option<usize> {
        None
    }

    /// Appends the reply to a request that cannot be divided and whose keys are at several places: two of
    /// the keys, each with the address of its server. Returns false, and appends nothing, if an error of the
    /// proxy is the answer, as it is by default.
    #[must_use]
    fn apart(
        &self,
        _: &mut Session,
        _: &Request,
        _message: &[u8],
        _: [(&[u8], &str); 2],
        _out: &mut Vec<u8>,
    ) -> bool {
        false
    }

    /// Appends the request for one key of a split request, with the data that belongs to the key. `_head`:
    /// the bytes before the first key.
    fn single(&self, _: &Request, _head: &[u8], _key: &[u8], _out: &mut Vec<u8>) {}

    /// The number that this reply to one of several keys adds to their [sum](Join::Sum), or that a delete has
    /// removed. By default replies are counted.
    fn number(&self, _: &Reply, _bytes: &[u8]) -> i64 {
        1
    }

    /// The key that routes hash, as the server will see it. By default it is the key's bytes in the request.
    #[inline]
    fn key<'a>(&self, request: &Request, message: &'a [u8], _scratch: &'a mut [u8; 250]) -> &'a [u8] {
        request.key.of(message)
    }

    /// Appends the head with changes and without the words that ask for quiet. Returns false, and appends
    /// nothing, if the result would be no valid request. By default no request can be changed: a route that
    /// must change one answers an error.
    #[must_use]
    fn rewrite(&self, _: &Request, _message: &[u8], _: &Change<'_>, _out: &mut Vec<u8>) -> bool {
        false
    }

    /// Does this request consist of several, which are sent in one piece? By default none does.
    fn is_composite(&self, _: &Request) -> bool {
        false
    }

    /// Gives each request of a [composite](Dialect::is_composite) one to `take`, with its place in the message.
    fn each_request(&self, _: &Request, _message: &[u8], _take: &mut dyn FnMut(&Request, Range<usize>)) {}

    /// Appends a complete request with each of its keys replaced by what `change` makes of it. Returns false if
    /// the result would be no request that does the same; what was appended is of no use then. By default no
    /// request can be changed.
    #[must_use]
    fn rewrite_keys(
        &self,
        _: &Request,
        _message: &[u8],
        _change: &mut dyn FnMut(&[u8]) -> Vec<u8>,
        _out: &mut Vec<u8>,
    ) -> bool {
        false
    }

    /// What a request does to the data, for routes that look at that. By default it is the request's own class.
    fn acts_as(&self, request: &Request, _message: &[u8]) -> Class {
        request.class
    }

    /// When a value that this request stores will expire. `unix`: the present time, in seconds since 1970. By
    /// default requests say nothing about it.
    fn expiry(&self, _: &Request, _message: &[u8], _unix: u64) -> Expiry {
        Expiry::None
    }

    /// What is wrong with this key, which a route has made for the request. By default any key will do.
    ///
    /// # Errors
    /// The server would not take the key; the error says why not.
    fn check_key(&self, _request: &Request, _key: &[u8]) -> Result<(), &'static str> {
        Ok(())
    }

    // Provided: replies.

    /// A request of a client for which a server keeps something was refused here, and has reached no server.
    /// `has_lane`: the client has the lane on which the server keeps it. Returns whether the session is still what
    /// the client believes it to be, or what its next requests will be answered as; otherwise the client is
    /// closed, as by default.
    fn refused(&self, _: &mut Session, _command: u16, _has_lane: bool) -> bool {
        false
    }

    /// Notes in the session what the server keeps for the client after this reply on a dedicated lane. The
    /// bytes are the complete reply, or its head or last part if it is large. By default nothing changes.
    fn answered(&self, _: &mut Session, _command: u16, _: &Reply, _bytes: &[u8]) {}

    /// Does a complete reply end as its head said? If not, no later byte of this connection can be trusted.
    /// By default any end is valid: the length says all.
    #[inline]
    fn is_whole(&self, _: &Reply, _bytes: &[u8]) -> bool {
        true
    }

    /// Does the reply whose head begins `bytes` name another key than the one that was asked for? By default
    /// replies name no key.
    fn is_foreign(&self, _command: u16, _asked: &[u8], _bytes: &[u8]) -> bool {
        false
    }

    /// Parses an ordinary reply at the beginning of `bytes`: the last message to `command` for the key that
    /// was `asked` for, of at most `limit` bytes, complete, and with a valid end. One call replaces four. It
    /// is used only where no earlier call has noted anything about these bytes.
    #[inline]
    fn whole(&self, command: u16, asked: &[u8], bytes: &[u8], limit: u64) -> Option<Reply> {
        match self.reply(&mut Parse::default(), command, bytes) {
            Parsed::Head(Message::Last(reply)) if reply.len() <= limit => {
                let whole = bytes.get(..reply.len() as usize)?;
                let is_good = self.is_whole(&reply, whole) && !self.is_foreign(command, asked, whole);
                is_good.then_some(reply)
            }
            _ => None,
        }
    }

    /// Is a reply with this outcome kept from a client that asked for quiet? By default every one is: such a
    /// client reads no reply, and would take this one for the answer to its next request.
    fn silenced(&self, _command: u16, _: Outcome) -> bool {
        true
    }

    /// Appends the reply with the client's own key in place of the one that a route has sent. By default
    /// replies name no key.
    fn rewrite_reply_key(&self, _command: u16, _key: &[u8], reply: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(reply);
    }

    /// The word by which metrics count an error reply; empty: it is not counted by a word, as by default.
    fn error_word<'a>(&self, _reply: &'a [u8]) -> &'a [u8] {
        b""
    }

    /// The name of the client's library, as the client has told it. By default clients tell none.
    fn library<'a>(&self, _: &'a Session) -> &'a [u8] {
        b""
    }

    // Provided: abilities that only some protocols have.

    /// How a client subscribes at several servers. By default it cannot.
    fn channels(&self) -> Option<&'static dyn Channels> {
        None
    }

    /// How values are replicated to all servers of a pool. By default they cannot be: a replicated pool is
    /// refused.
    fn copied(&self) -> Option<&'static dyn Copied> {
        None
    }

    /// Makes the state that is kept for a pool while the process runs. By default there is none.
    fn pool_state(&self) -> Option<Box<dyn PoolState>> {
        None
    }

    /// The server in this process that answers the protocol's requests. By default there is none: a route to
    /// the store is refused.
    fn embedded(&self) -> Option<Embedded> {
        None
    }
}
