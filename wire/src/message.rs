//! The parts that the requests and replies of all protocols have in common.
//!
//! A codec reads only the *head* of a message: the part that says how long the rest is. It returns positions
//! and never copies bytes. The owner of the buffer decides whether the body has arrived, is held completely,
//! or is streamed.

/// A range of bytes, relative to the first byte of its message. Heads are bounded, so 32 bits are enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The position of the first byte.
    pub start: u32,
    /// The number of bytes; 0: absent.
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

    /// The bytes of this span in `message`; empty if the span reaches beyond the message.
    #[inline]
    pub fn of(self, message: &[u8]) -> &[u8] {
        message.get(self.start as usize..self.end()).unwrap_or_default()
    }

    /// Start and length in few bits, for what stands near the beginning of a request and is short. `None`: it
    /// does not.
    #[inline]
    pub fn compact(self) -> Option<(u16, u8)> {
        Some((u16::try_from(self.start).ok()?, u8::try_from(self.len).ok()?))
    }

    /// The position behind the last byte.
    #[inline]
    pub const fn end(self) -> usize {
        self.start as usize + self.len as usize
    }

    /// Is the span absent?
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// The effect of a request on the data. Most routes decide by this alone.
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

/// How a request runs when every server holds a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The request only reads, and any copy that is up to date will do.
    Look,
    /// The request reads what only one copy knows: the version that a later change will name.
    LookAtHome,
    /// The request does the same to every copy, whatever the copy holds: set, delete.
    Everywhere,
    /// The new value depends on the old one (a condition, a sum, something appended): one copy decides.
    Decide,
}

/// The head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The protocol's number of the command (for memcached the number of [`crate::memcache::Command`]).
    pub command: u16,
    /// The effect of the request on the data.
    pub class: Class,
    /// Bytes of the head: the command line with its line end. The head of a request for many keys may be
    /// returned before its end has come: then these are all bytes that are there.
    pub head: u32,
    /// Bytes that follow the head: the value with its line end; 0: none.
    pub body: u64,
    /// The first key. It is absent if the command has none.
    pub key: Span,
    /// The bytes from the second key to the last one, with what is between them; absent for one key.
    pub more_keys: Span,
    /// Words from one key to the next; 0: the codec knows the keys by the command. In a request without keys,
    /// this is a number of the codec's own.
    pub key_step: u32,
    /// The expiry time as written in the request; absent when the command has none.
    pub ttl: Span,
    /// The words that ask for quiet, with the blank before them (` noreply`, ` q`). Without them the server
    /// answers.
    pub quiet: Span,
    /// Whether some replies to this request are not for the client (see the protocol's `silenced`).
    pub is_quiet: bool,
    /// The key is base64-encoded; the server will decode it before use.
    pub base64_key: bool,
    /// Milliseconds that the reply may take beyond the pool's time-out (for a command that blocks);
    /// [`u32::MAX`]: for ever. It counts only on a dedicated lane.
    pub extra_timeout: u32,
    /// The request goes on a dedicated lane of its client. The session sets this, and no codec does.
    pub is_dedicated: bool,
    /// The request belongs to what a server keeps for its client (a transaction that comes step by step, watched
    /// keys): routes lead all such requests alike. The session sets this, and no codec does.
    pub is_of_transaction: bool,
    /// The request is sent again, to where a reply has led it. The route sets this, and no codec does.
    pub is_again: bool,
    /// No server replies to this request, and the client expects no reply. `is_quiet` is set too, for errors
    /// that are found before a server is asked.
    pub is_unanswered: bool,
    /// The number of bytes at the start of the head that are requests of their own, whose replies are
    /// dropped. They are sent before the rest, on the same dedicated lane.
    pub before: u32,
    /// Behind the body come further pieces of the request, whose lengths only the codec can tell. Such a
    /// request is passed on as it comes.
    pub is_open: bool,
    /// A server that does not know the command would take the body for requests. It gets this one only once it
    /// has proved that it knows it.
    pub needs_proof: bool,
    /// A reply with a value names the key, so that the reply to another request can be told.
    pub names_key: bool,
}

impl Request {
    /// A request of which only the command is known: it consists of `head` bytes and has no key.
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
            key_step: 0,
            ttl: absent,
            quiet: absent,
            is_quiet: false,
            base64_key: false,
            extra_timeout: 0,
            is_dedicated: false,
            is_of_transaction: false,
            is_again: false,
            is_unanswered: false,
            before: 0,
            is_open: false,
            needs_proof: false,
            names_key: false,
        }
    }

    /// The same request behind so many bytes, which are a request of their own.
    #[must_use]
    pub fn behind(&self, before: usize) -> Self {
        let shift = |span: Span| match span.is_empty() {
            true => span,
            false => Span::new(span.start as usize + before, span.end() + before),
        };
        Self {
            head: self.head + before as u32,
            key: shift(self.key),
            more_keys: shift(self.more_keys),
            ttl: shift(self.ttl),
            quiet: shift(self.quiet),
            before: before as u32,
            ..*self
        }
    }

    /// The same request without the requests before it: as it is in the bytes behind them.
    #[must_use]
    pub fn alone(&self) -> Self {
        let before = self.before as usize;
        let shift = |span: Span| match span.is_empty() {
            true => span,
            false => Span::new(span.start as usize - before, span.end() - before),
        };
        Self {
            head: self.head - self.before,
            key: shift(self.key),
            more_keys: shift(self.more_keys),
            ttl: shift(self.ttl),
            quiet: shift(self.quiet),
            before: 0,
            ..*self
        }
    }

    /// Bytes of the whole message.
    #[inline]
    pub const fn len(&self) -> u64 {
        self.head as u64 + self.body
    }

    /// Always false, as a request is never empty; clippy wants this method beside `len`.
    pub const fn is_empty(&self) -> bool {
        false
    }
}

/// How a request ended, from best to worst. The order is mcrouter's; it decides which of several replies is
/// the combined one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Outcome {
    /// The request was done (`OK`, `HD` to commands that do not say more, `VERSION …`).
    Ok,
    /// The value was stored (`STORED`, `HD` to ms).
    Stored,
    /// The item has another version (`EXISTS`, `EX`).
    Exists,
    /// The value was deleted (`DELETED`, `HD` to md).
    Deleted,
    /// A value or a number was returned.
    Found,
    /// The key does not exist (`END` without a value, `NOT_FOUND`, `EN`, `NF`).
    NotFound,
    /// The condition of a store did not hold (`NOT_STORED`, `NS`).
    NotStored,
    /// No reply came in time.
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
    /// Too many requests are waiting already.
    Overloaded,
    /// The server answered that it failed (`SERVER_ERROR …`); another server may succeed.
    RemoteError,
    /// The proxy could not serve the request (no route, no member, an error route).
    LocalError,
    /// The request was wrong (`CLIENT_ERROR …`, `ERROR`). The server is healthy: nothing is counted against
    /// it, and no other server would answer anything else.
    ClientError,
    /// The expiry time was changed (`TOUCHED`). It is the last one, as in mcrouter.
    Touched,
}

impl Outcome {
    /// Is this an error that another copy may not have? These are the default reasons to fail over.
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

    /// Was the key found, deleted or touched? `miss_failover` looks for these.
    pub const fn is_hit(self) -> bool {
        matches!(self, Self::Found | Self::Deleted | Self::Touched)
    }

    /// Is this any error, the client's own included?
    pub const fn is_error(self) -> bool {
        self.is_failover() || matches!(self, Self::Overloaded | Self::ClientError)
    }
}

/// The head of a reply.
///
/// No field has the size of one byte. Where a one-byte field stands at a multiple of four, the compiler reads
/// four bytes for it, and the processor waits until the neighbours' stores have left its store buffer (a
/// fiftieth of a pipelined request).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Bytes after the first line: the value with its line end, and the bytes that close the reply
    /// (`END\r\n`).
    pub body: u64,
    /// Bytes of the first line.
    pub head: u32,
    /// The last bytes of the reply, which close it and belong to no value. They are left out when several
    /// replies are joined into one. For `END\r\n` this is 5, even where it is the whole reply.
    pub trailer: u32,
    /// The result of the request.
    pub outcome: Outcome,
}

impl Reply {
    /// A reply that consists of `head` bytes.
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

    /// Always false, as a reply is never empty; clippy wants this method beside `len`.
    pub const fn is_empty(&self) -> bool {
        false
    }
}

/// A message from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// A complete reply, or the last part of one.
    Last(Reply),
    /// A part of a reply that is not the last one. All bytes of the part must be there.
    Part(Reply),
    /// A message that no request has asked for, or the last part of one.
    Push(Reply),
    /// A part of such a message that is not the last one. All bytes of the part must be there.
    PushPart(Reply),
}

impl Message {
    /// Its bytes.
    pub const fn head(self) -> Reply {
        match self {
            Self::Last(head) | Self::Part(head) | Self::Push(head) | Self::PushPart(head) => head,
        }
    }
}

/// A codec's notes on an incomplete message: it goes on from there and reads nothing twice. Only the codec
/// knows what the fields mean. A new value means that no byte was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parse {
    /// Bytes of the message that were read.
    pub seen: u32,
    /// Items (elements of nested lists, columns, lines) that are still to come.
    pub left: u32,
    /// Further state of the codec.
    pub progress: [u32; 2],
}

impl Parse {
    /// Does this value say nothing?
    #[inline]
    pub const fn is_new(&self) -> bool {
        self.seen == 0 && self.left == 0
    }
}

/// The result of parsing the first bytes of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<T> {
    /// A complete head.
    Head(T),
    /// There are not enough bytes to decide; the codec promises a decision before its line limit is reached.
    More,
    /// The bytes are not a message of this protocol.
    Bad(Bad),
}

impl<T> Parsed<T> {
    /// Continues with the head, if there is one.
    #[inline]
    pub fn and_then<U>(self, read: impl FnOnce(T) -> Parsed<U>) -> Parsed<U> {
        match self {
            Self::Head(head) => read(head),
            Self::More => Parsed::More,
            Self::Bad(bad) => Parsed::Bad(bad),
        }
    }

    /// Converts the head, if there is one.
    #[inline]
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Parsed<U> {
        self.and_then(|head| Parsed::Head(make(head)))
    }
}

/// Bytes that come next of an [open](Request::is_open) request, valid as far as they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Bytes of the piece, some of which may still have to come.
    pub len: u64,
    /// The request ends with it.
    pub is_last: bool,
}

/// The next item in a request for several keys, which may be incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextKey {
    /// A key, with the data that belongs to it alone (its value), if any. The next key begins behind that.
    Key(Span),
    /// The end of the request, which takes this many bytes.
    End(usize),
    /// More bytes are needed. This many of the given bytes mean nothing and need not be kept.
    More(usize),
    /// The bytes are not a key. The bytes behind the error's head still belong to the request.
    Bad(Bad),
}

/// How bytes are handled that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bad {
    /// The line that the server itself would answer, with its line end.
    pub reply: &'static [u8],
    /// Bytes of the head to skip.
    pub head: u32,
    /// Bytes after the head to discard before the next message (the value of a refused `set`).
    pub swallow: u64,
    /// The connection is closed after this reply.
    pub close: bool,
    /// Why the connection is closed, in words for an operator; empty: nothing is logged.
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

    /// No later byte of this connection can be understood.
    #[inline]
    pub const fn fatal(reply: &'static [u8]) -> Self {
        Self {
            close: true,
            ..Self::refused(0, reply)
        }
    }

    /// The same mistake, for which the connection is closed without a reply.
    #[inline]
    #[must_use]
    pub const fn mute(self) -> Self {
        Self {
            reply: b"",
            swallow: 0,
            close: true,
            ..self
        }
    }

    /// The client speaks another protocol. It is closed without a reply, which it could not read.
    #[inline]
    pub const fn stranger(why: &'static str) -> Self {
        Self {
            why,
            ..Self::fatal(b"")
        }
    }
}
