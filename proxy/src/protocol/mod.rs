//! The contract between the worker and a protocol. [`Protocol`] hides everything below a session and a lane
//! that differs between memcached, Redis and MySQL. Everything that does not differ (order, batching, limits,
//! time-outs) is written once, in `client` and `upstream`.
//!
//! A protocol has two ends: [`ClientSide`], where its clients are, and [`ServerSide`], where its servers are.
//! [`Requests`] reads and changes messages for both of them and for the routes between them. An ability of
//! only some protocols is a part of its own, which a protocol offers or not ([`Channels`], [`CopySupport`],
//! [`Cacheable`], [`PoolState`], [`Embedded`], [`Texts`]).

mod accounts;
mod admission;
mod cacheable;
mod channels;
mod client;
mod connection_facts;
mod consistency;
mod consistency_by_login;
mod control;
mod copy_support;
mod counters;
mod credentials;
mod declared;
mod door;
mod embedded;
mod failed;
mod join;
mod login;
mod login_cache;
mod other_proxies;
mod outcomes;
mod outgoing;
mod password_key;
mod plan;
mod pool;
mod pool_changes;
mod pool_orders;
mod pool_words;
mod repair;
mod reply_style;
mod requests;
mod role;
mod server;
mod server_login;
mod session;
mod set;
mod shared_count;
mod state;
mod subscription;
mod texts;
mod transform;
mod user_connections;

pub(crate) use self::outgoing::PrecedingRequest;
pub use self::{
    accounts::{Accounts, OneSecret, Terms},
    admission::{Admission, AdmissionContext, ServerAnswer},
    cacheable::{Cacheable, ChangeScope, Fit, ValueFrame},
    channels::Channels,
    client::ClientSide,
    connection_facts::ConnectionFacts,
    consistency::Consistency,
    consistency_by_login::ConsistencyByLogin,
    control::{Control, Ending, NearCounters},
    copy_support::CopySupport,
    counters::ProcessCounters,
    credentials::{Access, Credentials},
    declared::{CommandDeclaration, Declared, DeclaredCommands},
    door::Door,
    embedded::Embedded,
    failed::{Failed, Fate},
    join::{Assembly, Excerpt, Join, Parts},
    login::Login,
    login_cache::{Account, Attempt, CachedLogin, Doubt, LoginCache, Turn},
    other_proxies::OtherProxies,
    outcomes::OUTCOMES,
    outgoing::{Outgoing, WriteResult},
    password_key::{PasswordKey, encrypt},
    plan::Plan,
    pool::{
        Answerer, HeldWrites, HoldLimit, MemberFacts, Monitor, OneWriter, PoolMembers, PoolQuestion,
        PoolRequest, PoolSettings, PoolState, Replier, Tried,
    },
    pool_changes::{PoolChanges, Wakers},
    pool_orders::{PoolOrders, WriterHold, WriterOrders, WriterWish},
    pool_words::{Mark, MemberNote, PoolCount, ReachedCount},
    repair::{Incarnation, Introduction, Question, Repair, Unfit},
    reply_style::ReplyStyle,
    requests::{Change, Expiry, Requests},
    role::{Progress, Role, RoleStatus},
    server::ServerSide,
    server_login::ServerLogin,
    session::{Reach, Retention, Session},
    set::{ProtocolSlot, Protocols},
    shared_count::SharedCount,
    state::{EndState, StateSlot},
    subscription::{Confirmation, Subject, SubscriptionChange, SubscriptionCounts},
    texts::Texts,
    transform::{Handshake, Stacked, Transform},
    user_connections::{UserConnection, UserConnections},
};
pub use proxima_wire::message::{Effect, Message, Piece};

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

/// The error text of a login that ends without the TLS that its pool asks for.
pub const NO_TLS: &str = "the server does not offer TLS";

/// The error text for a server's bytes that are not a reply.
pub const MALFORMED: &str = "malformed reply";
/// The problem with a reply that is the one to another request.
pub const FOREIGN: &str = "malformed reply: it names another key than was asked for";

/// The number of an idle lane that suits a session as well as any can.
pub const BEST: u32 = u32::MAX;

/// The command number that stands for "no request waits": the next message can only be a [`Message::Push`].
pub const UNASKED: u16 = u16::MAX;

/// One protocol: its name and the meaning of its commands, beside its two ends. The methods that every
/// protocol must have come first, then those with a default.
pub trait Protocol: ClientSide + ServerSide + Requests {
    /// The protocol's name in configurations. The reply styles of one protocol share the name; a process has
    /// only one of them.
    fn name(&self) -> &'static str;

    /// The names of the commands in configurations; a name's index is the command's number. A request may
    /// have a number beyond them, by which the codec tells it from others like it: it counts as the last of
    /// them.
    fn commands(&self) -> &'static [&'static str];

    /// May a request of this command go to another server after the answer of one that may have executed it
    /// was lost?
    fn may_repeat(&self, command: u16) -> bool;

    /// Does a request of this command do the same at every server that holds the same? Only such a request
    /// may be sent to several at once.
    fn is_same_everywhere(&self, command: u16) -> bool;

    /// Do replies to deletes tell what was removed (a value, a number of keys)? By default they only say
    /// whether anything was.
    fn tells_what_was_removed(&self) -> bool {
        false
    }

    /// The same protocol at a listener whose clients discover the proxies; `None` if the protocol has no such
    /// discovery.
    fn announcing(&self) -> Option<&'static dyn Protocol> {
        None
    }

    /// The same protocol with this reply style. `None`: the protocol has no such style and stays as it is.
    fn with_reply_style(&self, _: ReplyStyle) -> Option<&'static dyn Protocol> {
        None
    }

    /// The same protocol at a listener that serves this. `None` if the protocol stays as it is.
    fn behind(&self, _: Door) -> Option<&'static dyn Protocol> {
        None
    }

    /// The number of a command by its name in configurations; `None` if the protocol has no such command.
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

    /// The explanation of requests that are texts. By default there is none.
    fn texts(&self) -> Option<&dyn Texts> {
        None
    }

    /// The name of what this command does to the data. By default the protocol does not say.
    fn class_of(&self, _command: u16) -> Option<&'static str> {
        None
    }

    /// Do requests have keys? By default they do. Where they do not, the servers of a pool are read in turn.
    fn has_keys(&self) -> bool {
        true
    }

    /// Does this command look up a key, so that its replies count as hits and misses? By default no command
    /// does.
    fn looks_up(&self, _command: u16) -> bool {
        false
    }

    /// Does TLS begin in the midst of a login, as its first [upgrade](Login::Upgrade)? By default it begins
    /// with the connection.
    fn upgrades(&self) -> bool {
        false
    }

    /// The protocol's own transform between a new connection without TLS and its bytes. By default there is
    /// none.
    fn transform(&self, _: End<'_>) -> Option<Box<dyn Transform>> {
        None
    }

    /// The protocol's own transform that begins with the [upgrade](Login::Upgrade) of a login where TLS does
    /// not, behind TLS if that is in place. By default there is none, and the login is rejected.
    fn upgrade(&self, _: End<'_>) -> Option<Box<dyn Transform>> {
        None
    }

    /// Does a request of this command ask which keys there are? It is then for the servers where reads go. By
    /// default it is for all.
    fn asks_for_keys(&self, _command: u16) -> bool {
        false
    }

    /// Subscriptions of a client at several servers. By default there are none.
    fn channels(&self) -> Option<&'static dyn Channels> {
        None
    }

    /// Replication of values to all servers of a pool. By default they cannot be replicated: a replicated
    /// pool is refused.
    fn copy_support(&self) -> Option<&'static dyn CopySupport> {
        None
    }

    /// The replies that may be kept in the near cache, and the requests that end them. By default none may be
    /// kept: a route that keeps replies is refused.
    fn cacheable(&self) -> Option<&'static dyn Cacheable> {
        None
    }

    /// Makes the state that is kept for a pool with these settings while the process runs. By default there
    /// is none.
    fn pool_state(&self, _: &PoolSettings<'_>) -> Option<Box<dyn PoolState>> {
        None
    }

    /// The server in this process that answers the protocol's requests. By default there is none: a route to
    /// the store is refused.
    fn embedded(&self) -> Option<Embedded> {
        None
    }
}
