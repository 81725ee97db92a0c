//! What the worker must know of a protocol, and nothing more. Everything below a session and a lane that differs between
//! memcached, Redis and MySQL is behind [`Dialect`]; everything that does not (order, batching, limits, time-outs) is
//! written once, in `client` and `upstream`.

mod copied;
mod dialects;
mod failed;
mod join;
mod memcache;
mod pool_state;
mod repair;
mod session;
mod transform;

use std::sync::Arc;

use proxima_wire::message::{Bad, Class, NextKey, Outcome, Parse, Parsed, Reply, Request};

pub use self::{
    copied::Copied,
    dialects::{Dialects, Spoken},
    failed::Failed,
    join::Join,
    memcache::Memcache,
    pool_state::PoolState,
    repair::{Incarnation, Introduction, Question, Repair, Unfit},
    session::{Lease, Session},
    transform::Transform,
};
pub use proxima_wire::message::Effect;

/// State of our login at a server; what it means is the dialect's business.
#[derive(Debug, Default)]
pub struct Conversation {
    /// How far the login is.
    pub step: u32,
    /// What must be remembered from one step to the next (a salt, a user's name).
    pub notes: Vec<u8>,
    /// As whom: what sessions have named ([`Session::login`]); empty: as the pool says.
    pub login: Arc<[u8]>,
}

/// What a step of a login has done with the bytes it saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Login {
    /// The conversation goes on after `used` bytes.
    More { used: usize },
    /// The login is over after `used` bytes; what follows are requests or replies.
    Ready { used: usize },
    /// The login is over after `used` bytes, but this server is to be given only [common](Dialect::is_common) commands, for
    /// the reason `why`.
    Limited { used: usize, why: String },
    /// The conversation goes on, after `used` bytes, behind [`Dialect::upgrade`]'s transform; what was appended leaves before it.
    /// It is asked for the next step at once, without bytes. Nothing may have come behind these: whoever sits between the two could have put it there.
    Upgrade { used: usize },
    /// It failed; the connection is closed after what was said.
    Refused(String),
}

/// A message from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// The whole reply, or the last part of one.
    Last(Reply),
    /// A part of a reply of which more is to come. All of it must be there.
    Part(Reply),
    /// Nobody asked for it.
    Push(Reply),
}

/// What the session does with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Walk the tree with it.
    Route,
    /// Walk the tree with it, to a lane that is the client's alone, now and as long as the session's [`Lease`] says.
    Dedicated,
    /// The session knows the answer, and has appended it.
    Answer,
    /// The proxy's own error, with these words.
    Refuse(&'static str),
    /// To every member of the listener's tree.
    Broadcast,
    /// The proxy's own metrics, or those of what is behind it.
    Stats,
    /// Close after what is due.
    Close,
}

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub enum End<'a> {
    /// A client of this listener.
    Client { listener: u16 },
    /// The server of this address, as a member of this pool.
    Server { pool: &'a str, address: &'a str },
}

/// What is wrong with a login that is to be upgraded and cannot be.
pub const NO_UPGRADE: &str = "the login cannot be upgraded here";

/// What is wrong with bytes of a server that are no reply.
pub const MALFORMED: &str = "malformed reply";

/// In place of a command: nobody waits, so only a [`Message::Push`] can be meant.
pub const UNASKED: u16 = u16::MAX;

/// Parts of a request that a route changes; none = as it stands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Change<'a> {
    pub key: Option<&'a [u8]>,
    pub ttl: Option<i64>,
}

/// Outcomes by the names that metrics use.
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

/// One protocol: what every one must say itself, then what many need not say.
pub trait Dialect: Send + Sync {
    // Required.

    /// The protocol's name in configurations. Dialects of one protocol share it: of them a process has one.
    fn name(&self) -> &'static str;

    /// The words of its commands, as configurations name them; each stands at the index that is its number.
    fn commands(&self) -> &'static [&'static str];

    /// The head of the next request. `parse` is what was noted when the beginning of these bytes was seen before and was too
    /// short, else new; it is left new unless they are too short again.
    fn request(&self, parse: &mut Parse, bytes: &[u8], value_limit: u64) -> Parsed<Request>;

    /// The next message from a server in answer to `command` (or [`UNASKED`]). `parse` is what was noted when the beginning of
    /// these bytes was seen before and was too short, or with the part before them, else new; the last message of a reply
    /// leaves it new. Only the last part of a reply may be larger than a shared lane takes; larger parts and pushes break the
    /// connection.
    fn reply(&self, parse: &mut Parse, command: u16, bytes: &[u8]) -> Parsed<Message>;

    /// Writes what a cache that has nothing answers; `form` is that of the client's [`Session`].
    fn miss(&self, form: u16, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Reply;

    /// Appends the error that the proxy itself answers.
    fn error(&self, session: &Session, failed: &Failed<'_>, out: &mut Vec<u8>);

    /// A request that every healthy server answers and that changes nothing, with its command.
    fn probe(&self) -> (u16, &'static [u8]);

    // Provided: commands.

    /// The number of a command by its name in configurations.
    fn command(&self, name: &str) -> Option<u16> {
        let number = self.commands().iter().position(|&word| word == name)?;
        u16::try_from(number).ok()
    }

    /// The name of a command by its number.
    fn command_name(&self, command: u16) -> &'static str {
        self.commands().get(usize::from(command)).unwrap_or(&"?")
    }

    /// A request of this command for this key, as short as can be: what `explain` walks with. By default there is none.
    fn example(&self, _command: u16, _key: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// Does this command look for a key, so that its replies are hits and misses? By default none does.
    fn looks_up(&self, _command: u16) -> bool {
        false
    }

    // Provided: connections.

    /// What stands between a new connection and its bytes. By default nothing does.
    fn transform(&self, _: End<'_>) -> Option<Box<dyn Transform>> {
        None
    }

    /// What stands there from the [upgrade](Login::Upgrade) of a login on. By default no login can be upgraded: it is refused.
    fn upgrade(&self, _: End<'_>) -> Option<Box<dyn Transform>> {
        None
    }

    /// A step of the login of a client; called first, without bytes, when it connects: a server that speaks first does so
    /// here. By default nobody logs in.
    fn admit(&self, _: &mut Session, _bytes: &[u8], _out: &mut Vec<u8>) -> Login {
        Login::Ready { used: 0 }
    }

    /// A step of our login at a server; called first, without bytes, when connected. By default nobody logs in.
    fn login(&self, _: &mut Conversation, _bytes: &[u8], _out: &mut Vec<u8>) -> Login {
        Login::Ready { used: 0 }
    }

    /// May a server whose login was [limited](Login::Limited) be given this command? By default it may.
    fn is_common(&self, _command: u16) -> bool {
        true
    }

    // Provided: requests.

    /// The head of a request that is all there.
    fn head(&self, message: &[u8]) -> Parsed<Request> {
        self.request(&mut Parse::default(), message, u64::MAX)
    }

    /// Is the body's end what it must be? If not, this is the answer. By default it may be anything: its length says all.
    #[inline]
    fn check_end(&self, _message: &[u8]) -> Result<(), &'static [u8]> {
        Ok(())
    }

    /// Is each key of this request a request of its own, so that it is served as it comes? Then so are their replies joined, and
    /// it is not planned. What is appended goes before them. By default no request is split.
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

    /// What to do with a request; asked once for each, as soon as it goes on. A read, write or delete of one key walks the tree
    /// and is not asked for, unless the [session](Session::plans_all) wants it. Of a value that is passed on as it comes
    /// `message` is what has come. By default whatever is about one key is routed, and the rest is refused: many clients share a
    /// connection to a server, which is no place for what one of them says about its own, and of several keys not all need be
    /// of one server.
    #[inline]
    fn plan(&self, _: &mut Session, request: &Request, _message: &[u8], _out: &mut Vec<u8>) -> Plan {
        match request.class {
            Class::Admin | Class::Session => Plan::Refuse("the proxy cannot tell which server this is for"),
            _ if !request.more_keys.is_empty() => Plan::Refuse("the proxy takes one key at a time"),
            _ => Plan::Route,
        }
    }

    /// What comes next in a request that is to be split: `bytes` begin at its first key, or behind any of its keys, and may
    /// end before it does. By default that cannot be told: the proxy says so and closes the connection.
    fn next_key(&self, _: &Request, _bytes: &[u8]) -> NextKey {
        NextKey::Bad(Bad::fatal(b""))
    }

    /// Appends the request for one key of those that are to be split, with what belongs to it; `head` is what stands before the
    /// first.
    fn single(&self, _: &Request, _head: &[u8], _key: &[u8], _out: &mut Vec<u8>) {}

    /// What this reply to one of several keys adds to their [sum](Join::Sum). By default replies are counted.
    fn number(&self, _: &Reply, _bytes: &[u8]) -> i64 {
        1
    }

    /// The key that routes hash, as the server will see it. By default it stands in the request as it is.
    #[inline]
    fn key<'a>(&self, request: &Request, message: &'a [u8], _scratch: &'a mut [u8; 250]) -> &'a [u8] {
        request.key.of(message)
    }

    /// Appends the head with changes and without the words that ask for quiet. False: the result would be no request,
    /// and nothing is appended. By default no request can be changed: a route that must change one answers an error.
    #[must_use]
    fn rewrite(&self, _: &Request, _message: &[u8], _: &Change<'_>, _out: &mut Vec<u8>) -> bool {
        false
    }

    // Provided: replies.

    /// A reply has come on the client's own lane, whole, or its head or last part where it is large: what does the server keep
    /// for the client from here on? By default nothing changes.
    fn answered(&self, _: &mut Session, _command: u16, _: &Reply, _bytes: &[u8]) {}

    /// Does a whole reply end as its head said? If not, nothing more from this connection can be trusted. By default it
    /// may end in any way: its length says all.
    #[inline]
    fn is_whole(&self, _: &Reply, _bytes: &[u8]) -> bool {
        true
    }

    /// The reply at the beginning of `bytes`, if that is what nearly all are: the last message to `command`, of at most
    /// `limit` bytes, all there, and with the end that it must have. One call where three would be. Asked only where nothing
    /// was noted about these bytes.
    #[inline]
    fn whole(&self, command: u16, bytes: &[u8], limit: u64) -> Option<Reply> {
        match self.reply(&mut Parse::default(), command, bytes) {
            Parsed::Head(Message::Last(reply)) if reply.len() <= limit => {
                let whole = bytes.get(..reply.len() as usize)?;
                self.is_whole(&reply, whole).then_some(reply)
            }
            _ => None,
        }
    }

    /// Is a reply with this outcome kept from a client that asked for quiet? By default each is: it reads none, and would
    /// take this one for the answer to what it asks next.
    fn silenced(&self, _command: u16, _: Outcome) -> bool {
        true
    }

    /// Appends the reply with the client's own key in place of the one a route has sent. By default replies name no key.
    fn rewrite_reply_key(&self, _command: u16, _key: &[u8], reply: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(reply);
    }

    // Provided: what not every protocol has.

    /// How values are copied to all servers of a pool. By default they cannot be: such a pool is refused.
    fn copied(&self) -> Option<&'static dyn Copied> {
        None
    }

    /// What is kept of a pool while the process runs. By default nothing is.
    fn pool_state(&self) -> Option<Box<dyn PoolState>> {
        None
    }

    /// Does the store in this process answer its requests? By default it does not: a route that leads there is refused.
    fn is_embedded(&self) -> bool {
        false
    }
}
