//! The common parts of all protocols' requests and replies.
//!
//! A codec reads only the *head* of a message: the part that gives the length of the rest. It returns
//! positions, never copies. The owner of the buffer decides whether the body is awaited, held whole or
//! streamed.

/// A range of bytes, relative to the first byte of its message. Heads are bounded, so 32 bits are enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// Number of bytes; 0: absent.
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

    /// The bytes of this span in `message`. They are empty if the span is not within it.
    #[inline]
    pub fn of(self, message: &[u8]) -> &[u8] {
        message.get(self.start as usize..self.end()).unwrap_or_default()
    }

    /// One past the last byte.
    #[inline]
    pub const fn end(self) -> usize {
        self.start as usize + self.len as usize
    }

    /// Whether the span is absent.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// The effect of a request on data, which is all that most routes ask.
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

/// How a request is handled where every server holds a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It only reads, and any current copy will do.
    Look,
    /// It reads something that only one copy knows: the version that a later change will name.
    LookAtHome,
    /// It does the same to every copy, whatever the copy holds: set, delete.
    Everywhere,
    /// The resulting value depends on the old one (a condition, a sum, an append): one copy decides.
    Decide,
}

/// The head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The dialect's number of the command (for memcached the number of [`crate::memcache::Command`]).
    pub command: u16,
    /// The effect on data.
    pub class: Class,
    /// Bytes of the head: the command line with its line end. A request for many keys may begin before its
    /// end has come; then these are all bytes so far.
    pub head: u32,
    /// Bytes after the head: the value with its line end; 0: none.
    pub body: u64,
    /// The first key. It is absent if the command has none.
    pub key: Span,
    /// The second key to the last one, with the bytes between them. Absent for one key.
    pub more_keys: Span,
    /// The expiry time. It is absent if the command has none.
    pub ttl: Span,
    /// The words that ask for silence, with the blank before them (` noreply`, ` q`). Without them the server
    /// answers.
    pub quiet: Span,
    /// Whether some replies to this request are not for the client (see the dialect's `silenced`).
    pub is_quiet: bool,
    /// Whether the key stands in base64, which the server decodes before use.
    pub base64_key: bool,
    /// Its reply may take so many milliseconds longer than any other's (a command that blocks); [`u32::MAX`]: for ever. Counts on
    /// a lane of its client's own only.
    pub extra_timeout: u32,
    /// It goes on a lane of its client's own. The session sets this, never a codec.
    pub is_dedicated: bool,
    /// No server replies to it, and the client expects no reply. It `is_quiet` too, for errors that are found
    /// before a server is asked.
    pub is_unanswered: bool,
}

impl Request {
    /// A request of which only the command is known: it has `head` bytes in all, and no key.
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

    /// A request is never empty. This exists because clippy wants it beside `len`.
    pub const fn is_empty(&self) -> bool {
        false
    }
}

/// The result of a request, from best to worst. The order is mcrouter's, and decides which of several replies
/// is the combined one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Outcome {
    /// Done (`OK`, `HD` to commands without another reply, `VERSION …`).
    Ok,
    /// Stored (`STORED`, `HD` to ms).
    Stored,
    /// The item has another version (`EXISTS`, `EX`).
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
    /// Too many requests wait already.
    Overloaded,
    /// The server failed (`SERVER_ERROR …`): another one may do better.
    RemoteError,
    /// The proxy could not do it (no route, no member, an error route).
    LocalError,
    /// The request was wrong (`CLIENT_ERROR …`, `ERROR`). The server is well: no failure is counted, and no
    /// other server would answer anything else.
    ClientError,
    /// The expiry time was changed (`TOUCHED`). It comes last, as in mcrouter.
    Touched,
}

impl Outcome {
    /// Whether this is an error that another copy may not have: the default reasons to fail over.
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

    /// Whether the key was found, deleted or touched, which ends a miss_failover.
    pub const fn is_hit(self) -> bool {
        matches!(self, Self::Found | Self::Deleted | Self::Touched)
    }

    /// Whether this is an error, the client's own included.
    pub const fn is_error(self) -> bool {
        self.is_failover() || matches!(self, Self::Overloaded | Self::ClientError)
    }
}

/// The head of a reply.
///
/// No field has one byte: where such a field stands at a multiple of four, the compiler reads four bytes for
/// it, and the processor waits until the neighbours' stores have left its store buffer (a fiftieth of a
/// pipelined request).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Bytes after the first line: the value with its line end, and the end of the reply (`END\r
    /// `).
    pub body: u64,
    /// Bytes of the first line.
    pub head: u32,
    /// The last bytes of the reply, which end it and belong to no value. They are left out when several
    /// replies are joined (`END\r
    /// ` is 5, also where it is the whole reply).
    pub trailer: u32,
    /// The result of the request.
    pub outcome: Outcome,
}

impl Reply {
    /// A reply of `head` bytes in all.
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

    /// A reply is never empty. This exists because clippy wants it beside `len`.
    pub const fn is_empty(&self) -> bool {
        false
    }
}

/// The progress of a codec in a message whose end has not come, so that it goes on from there and reads
/// nothing twice. Only the codec knows its meaning, except that a new one is all zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parse {
    /// Bytes of the message that were read.
    pub seen: u32,
    /// Parts (elements of nested lists, columns, lines) that have not come.
    pub left: u32,
    /// Further state of the codec.
    pub progress: [u32; 2],
}

impl Parse {
    /// Whether this is a new one.
    #[inline]
    pub const fn is_new(&self) -> bool {
        self.seen == 0 && self.left == 0
    }
}

/// The beginning of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<T> {
    /// A head.
    Head(T),
    /// Not enough bytes to decide. The codec decides before its line limit is reached.
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

    /// Converts a head.
    #[inline]
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Parsed<U> {
        self.and_then(|head| Parsed::Head(make(head)))
    }
}

/// The next part of a request for several keys, whose end may not have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextKey {
    /// A key, with its value if it has one of its own. The next key begins after it.
    Key(Span),
    /// The end of the request, after this many bytes.
    End(usize),
    /// More bytes are needed. This many of the present ones have no meaning and need not be kept.
    More(usize),
    /// No key. The bytes after its head still belong to the request.
    Bad(Bad),
}

/// How bytes are handled that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bad {
    /// The line that the server itself would answer, with its line end.
    pub reply: &'static [u8],
    /// Bytes of the head to skip.
    pub head: u32,
    /// Bytes after the head that are swallowed before the next message (the value of a refused `set`).
    pub swallow: u64,
    /// Whether the connection is closed after this reply.
    pub close: bool,
    /// The reason, for operators; empty if there is nothing to log.
    pub why: &'static str,
}

impl Bad {
    /// Refuses the message. The next one begins `head` bytes further.
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

    /// Closes the connection: nothing more on it can be parsed.
    #[inline]
    pub const fn fatal(reply: &'static [u8]) -> Self {
        Self {
            close: true,
            ..Self::refused(0, reply)
        }
    }

    /// Closes the connection without a reply, which the client could not read: it speaks another protocol.
    #[inline]
    pub const fn stranger(why: &'static str) -> Self {
        Self {
            why,
            ..Self::fatal(b"")
        }
    }
}
