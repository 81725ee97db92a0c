//! What the requests and replies of every protocol have in common.
//!
//! A codec looks at the *head* of a message only: the part that says how long the rest is. It returns positions, never
//! copies. Whether the body has arrived, is held whole or is streamed is decided by whoever owns the buffer.

/// A range of bytes, relative to the first byte of its message. Heads are bounded, so 32 bits are enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// Number of bytes; 0 = absent.
    pub len: u32,
}

impl Span {
    /// The span from `start` up to, not including, `end`.
    pub const fn new(start: usize, end: usize) -> Self {
        Self {
            start: start as u32,
            len: (end - start) as u32,
        }
    }

    /// The bytes of this span in `message`; none when it is not of this message.
    #[inline]
    pub fn of(self, message: &[u8]) -> &[u8] {
        message.get(self.start as usize..self.end()).unwrap_or_default()
    }

    /// One past the last byte.
    #[inline]
    pub const fn end(self) -> usize {
        self.start as usize + self.len as usize
    }

    /// True when nothing is there.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// What a request does to the data: the only thing most routes ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Class {
    /// Returns values (get, gets, mg without effects).
    Read,
    /// Stores a value (set, add, replace, append, prepend, cas, ms).
    Write,
    /// Removes a value (delete, md).
    Delete,
    /// Computes a new value at the server (incr, decr, ma).
    Arithmetic,
    /// Changes an expiry time (touch), or reads and changes it (gat, gats).
    Touch,
    /// About the server, not about keys (version, stats, flush_all, …).
    Admin,
    /// About this connection (quit, mn, …).
    Session,
}

/// How a request is to be run when every server holds a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It only looks, and any copy that is up to date will do.
    Look,
    /// It looks at what only one copy knows: the version that a later change will name.
    LookAtHome,
    /// It does the same to every copy, whatever that holds: set, delete.
    Everywhere,
    /// What becomes of the value depends on the value (a condition, a sum, something appended): one copy decides.
    Decide,
}

/// The head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The dialect's number of the command (for memcached [`crate::memcache::Command`] as `u8`).
    pub command: u16,
    /// What it does to the data.
    pub class: Class,
    /// Bytes of the head: the command line with its line end. A request for many keys may begin before its end has come:
    /// then these are all bytes that there are.
    pub head: u32,
    /// Bytes that follow the head: the value with its line end; 0 = none.
    pub body: u64,
    /// The first key; absent when the command has none.
    pub key: Span,
    /// From the second key to the last one, as they stand (with what is between them); absent for one key.
    pub more_keys: Span,
    /// The expiry time as it stands; absent when the command has none.
    pub ttl: Span,
    /// The words that ask for silence, with the blank before them (` noreply`, ` q`): leave them out and the server
    /// answers.
    pub quiet: Span,
    /// Some replies to this request are not for the client (see the dialect's `silenced`).
    pub is_quiet: bool,
    /// The key stands base64-encoded; the server will decode it before use.
    pub base64_key: bool,
    /// Its reply may take so many milliseconds longer than any other's (a command that blocks); [`u32::MAX`]: for ever. Counts on
    /// a lane of its client's own only.
    pub extra_timeout: u32,
    /// It goes on a lane that is its client's own; the session says so, and no codec.
    pub is_dedicated: bool,
    /// No server replies to it, and the client expects no reply: it `is_quiet` too, for the errors that are found before a
    /// server is asked.
    pub is_unanswered: bool,
}

impl Request {
    /// A request of which only the command is known: its `head` bytes are all of it, and about no key.
    #[inline]
    pub const fn new(command: u16, class: Class, head: usize) -> Self {
        let absent = Span { start: 0, len: 0 };
        Self {
            command,
            class,
            head: head as u32,
            body: 0,
            key: absent,
            more_keys: absent,
            ttl: absent,
            quiet: absent,
            is_quiet: false,
            base64_key: false,
            extra_timeout: 0,
            is_dedicated: false,
            is_unanswered: false,
        }
    }

    /// Bytes of the whole message.
    #[inline]
    pub const fn len(&self) -> u64 {
        self.head as u64 + self.body
    }

    /// A request is never empty; here because clippy wants it beside `len`.
    pub const fn is_empty(&self) -> bool {
        false
    }
}

/// How a request ended, from best to worst: mcrouter's order, which decides which of several replies is the combined one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Outcome {
    /// Done (`OK`, `HD` to commands that do not say more, `VERSION …`).
    Ok,
    /// Stored (`STORED`, `HD` to ms).
    Stored,
    /// A cas found another version (`EXISTS`, `EX`).
    Exists,
    /// Deleted (`DELETED`, `HD` to md).
    Deleted,
    /// A value or a number was returned.
    Found,
    /// No such key (`END` without a value, `NOT_FOUND`, `EN`, `NF`).
    NotFound,
    /// The condition of a store did not hold (`NOT_STORED`, `NS`).
    NotStored,
    /// No reply in time.
    Timeout,
    /// The connection to the server timed out while being made.
    ConnectTimeout,
    /// The connection could not be made, or broke.
    ConnectError,
    /// The server asked to be left alone for a while.
    Busy,
    /// The server is shutting down.
    Shutdown,
    /// The server asked to try again.
    TryAgain,
    /// The member is ejected and was not asked (mcrouter's TKO).
    Ejected,
    /// The request was too old to be sent.
    Deadline,
    /// Too much is waiting already.
    Overloaded,
    /// The server answered that it failed (`SERVER_ERROR …`): another one may do better.
    RemoteError,
    /// The proxy could not do it (no route, no member, an error route).
    LocalError,
    /// The answer is that the request was wrong (`CLIENT_ERROR …`, `ERROR`). The server is well: nothing is counted against it,
    /// and no other one would answer anything else.
    ClientError,
    /// The expiry time was changed (`TOUCHED`). Last, as in mcrouter.
    Touched,
}

impl Outcome {
    /// An error that another copy may not have: the default reasons to fail over.
    pub const fn is_failover(self) -> bool {
        matches!(
            self,
            Self::Timeout
                | Self::ConnectTimeout
                | Self::ConnectError
                | Self::Busy
                | Self::Shutdown
                | Self::TryAgain
                | Self::Ejected
                | Self::Deadline
                | Self::RemoteError
                | Self::LocalError
        )
    }

    /// Found, deleted or touched: what miss_failover looks for.
    pub const fn is_hit(self) -> bool {
        matches!(self, Self::Found | Self::Deleted | Self::Touched)
    }

    /// Any error, the client's own included.
    pub const fn is_error(self) -> bool {
        self.is_failover() || matches!(self, Self::Overloaded | Self::ClientError)
    }
}

/// The head of a reply.
///
/// None of its fields is of one byte: where one stands at a multiple of four, the compiler reads four bytes for it, and the
/// processor waits until the neighbours' stores have left its store buffer (a fiftieth of a pipelined request).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Bytes after the first line: the value with its line end and whatever closes the reply (`END\r\n`).
    pub body: u64,
    /// Bytes of the first line.
    pub head: u32,
    /// The last bytes of the reply that close it and belong to no value: left out when several replies are joined into
    /// one (`END\r\n` = 5, where it is all of the reply too).
    pub trailer: u32,
    /// How the request ended.
    pub outcome: Outcome,
}

impl Reply {
    /// A reply whose `head` bytes are all of it.
    #[inline]
    pub const fn new(outcome: Outcome, head: usize) -> Self {
        Self {
            body: 0,
            head: head as u32,
            trailer: 0,
            outcome,
        }
    }

    /// Bytes of the whole reply.
    #[inline]
    pub const fn len(&self) -> u64 {
        self.head as u64 + self.body
    }

    /// A reply is never empty; here because clippy wants it beside `len`.
    pub const fn is_empty(&self) -> bool {
        false
    }
}

/// What a codec has noted about a message whose end has not come yet, so that it goes on from there and reads nothing twice.
/// Only the codec knows what it means, but for one thing: a new one says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parse {
    /// Bytes of the message that were read.
    pub seen: u32,
    /// Things (elements of nested lists, columns, lines) that are still to come.
    pub left: u32,
    /// Whatever else it must remember.
    pub progress: [u32; 2],
}

impl Parse {
    /// Does it say nothing?
    #[inline]
    pub const fn is_new(&self) -> bool {
        self.seen == 0 && self.left == 0
    }
}

/// What the first bytes of a buffer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<T> {
    /// A head.
    Head(T),
    /// Not enough bytes to tell; the codec promises a decision before its line limit is reached.
    More,
    /// Not a message of this protocol.
    Bad(Bad),
}

impl<T> Parsed<T> {
    /// Goes on reading after a head.
    #[inline]
    pub fn and_then<U>(self, read: impl FnOnce(T) -> Parsed<U>) -> Parsed<U> {
        match self {
            Self::Head(head) => read(head),
            Self::More => Parsed::More,
            Self::Bad(bad) => Parsed::Bad(bad),
        }
    }

    /// Makes something else of a head.
    #[inline]
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Parsed<U> {
        self.and_then(|head| Parsed::Head(make(head)))
    }
}

/// What comes next in a request for several keys, whose end may not have come yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextKey {
    /// A key, with what belongs to it alone where there is such (its value). The next one begins behind that.
    Key(Span),
    /// The end of the request, with so many bytes.
    End(usize),
    /// More bytes are needed. So many of these mean nothing and need not be kept.
    More(usize),
    /// No key. What is behind its head still belongs to the request.
    Bad(Bad),
}

/// What to do about bytes that are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bad {
    /// The line that the server itself would answer, with its line end.
    pub reply: &'static [u8],
    /// Bytes of the head to skip.
    pub head: u32,
    /// Bytes after the head to swallow before the next message (the value of a refused `set`).
    pub swallow: u64,
    /// The server closes the connection after this reply.
    pub close: bool,
    /// Why it is closed, in words for an operator; empty where that is nothing to log.
    pub why: &'static str,
}

impl Bad {
    /// The message is refused, and the next one begins `head` bytes further.
    #[inline]
    pub const fn refused(head: usize, reply: &'static [u8]) -> Self {
        Self {
            reply,
            head: head as u32,
            swallow: 0,
            close: false,
            why: "",
        }
    }

    /// Nothing more on this connection can be understood.
    #[inline]
    pub const fn fatal(reply: &'static [u8]) -> Self {
        Self {
            close: true,
            ..Self::refused(0, reply)
        }
    }

    /// The client speaks another protocol: it is closed without a reply, which it could not read.
    #[inline]
    pub const fn stranger(why: &'static str) -> Self {
        Self {
            why,
            ..Self::fatal(b"")
        }
    }
}
