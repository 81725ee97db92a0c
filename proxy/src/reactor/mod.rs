//! Sockets and waiting: the only system calls of the request path, and the only unsafe code.
//!
//! The seam is completion-shaped: the worker says what should happen (`connect`, `send`, `close`), and is
//! told what has happened ([`Event`]). Data arrives in a [`Buffer`] that the reactor lends; it must be
//! consumed or copied, then given back with [`Reactor::recycle`]. A connection has two send buffers: one that
//! the reactor sends, one that the worker fills.
//!
//! ```text
//!            wait ─▶ next ─▶ Event ─▶ worker ─▶ send / connect / pause / close ─▶ (next wait submits)
//! ```

mod buffer;
mod ended;
mod epoll;
mod heap;
mod prefetch;
mod segfault;
mod socket;
mod unacknowledged;
mod uring;

use std::{fmt, io, net::SocketAddr, ops::Range, str::FromStr, time::Duration};

use socket2::{SockAddr, Socket, TcpKeepalive};

pub use self::{
    buffer::Buffer,
    epoll::Epoll,
    heap::give_back,
    prefetch::prefetch,
    segfault::log_segfaults,
    socket::{inherited, is_shortage, peer_process, reason},
    uring::Uring,
};

/// A connection or listener of one reactor. Stale handles are harmless: the generation tells them from their
/// successors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conn {
    index: u32,
    generation: u32,
}

impl Conn {
    /// A handle, for reactors and for tests that play one.
    pub const fn new(index: u32, generation: u32) -> Self {
        Self { index, generation }
    }
}

/// The size of one receive. Requests are small and come from many clients; replies are large and come from
/// few servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Requests.
    Small,
    /// Replies.
    Large,
}

/// An event of the kernel. `tag` is the value that the worker gave when it made the connection.
#[derive(Debug)]
pub enum Event {
    /// A client connected to the listener of this tag.
    Accepted {
        /// The listener's tag.
        tag: u64,
        /// The client's socket, for [`Reactor::add`].
        socket: Socket,
        /// The client's address; `None` for a client of a Unix socket.
        address: Option<SocketAddr>,
    },
    /// `connect` succeeded.
    Connected {
        /// The connection's tag.
        tag: u64,
    },
    /// Bytes arrived.
    Data {
        /// The connection's tag.
        tag: u64,
        /// The bytes; to be given back with [`Reactor::recycle`].
        buffer: Buffer,
    },
    /// The peer will send no more.
    Eof {
        /// The connection's tag.
        tag: u64,
    },
    /// The connection is broken, or was never made. A listener cannot accept now, and is paused.
    Failed {
        /// The connection's or listener's tag.
        tag: u64,
        /// The error of the system.
        error: io::Error,
    },
    /// The socket has taken everything that `send` was given.
    Sent {
        /// The connection's tag.
        tag: u64,
    },
}

/// A back end: the operations that workers need of the kernel.
pub trait Reactor: Sized {
    /// Starts accepting from a listening socket.
    fn listen(&mut self, tag: u64, socket: Socket) -> io::Result<Conn>;
    /// Takes over a connected socket and starts receiving.
    fn add(&mut self, tag: u64, socket: Socket, expect: Expect) -> io::Result<Conn>;
    /// Starts connecting; `Connected` or `Failed` follows. Bytes may be sent at once: they wait for the
    /// connection.
    fn connect(&mut self, tag: u64, address: &SockAddr) -> io::Result<Conn>;
    /// Sends all of `bytes`, which comes back empty, with another allocation. Must not be called while
    /// [`Reactor::backlog`] is above 0.
    fn send(&mut self, conn: Conn, bytes: &mut Vec<u8>);
    /// Sends all of `bytes`, which stay with the caller. Must not be called while [`Reactor::backlog`] is
    /// above 0.
    fn send_copy(&mut self, conn: Conn, bytes: &[u8]);
    /// Sends a piece of a received buffer as it is. What the socket does not take at once is copied, so that
    /// the buffer may be recycled right after. Must not be called while [`Reactor::backlog`] is above 0, nor
    /// more than once a turn for a connection.
    fn pass(&mut self, conn: Conn, buffer: &Buffer, range: Range<usize>);
    /// Bytes given to `send` that the kernel has not taken yet; `Sent` tells when it becomes 0.
    fn backlog(&self, conn: Conn) -> usize;
    /// The address of our end. `None` for a Unix socket.
    fn local(&self, conn: Conn) -> Option<SocketAddr>;
    /// Lets the kernel look after a peer that is silent for hours. It is a hint: a socket that cannot is left
    /// as it is.
    fn keep_alive(&self, conn: Conn, how: &TcpKeepalive);
    /// The bytes of the backlog that the socket was offered and did not take. A piece that was given to
    /// `pass` in this turn does not count.
    fn refused(&self, conn: Conn) -> usize {
        self.backlog(conn)
    }
    /// Bytes that the kernel has taken and the peer has not acknowledged. This is a system call.
    fn unacknowledged(&self, conn: Conn) -> usize;
    /// The unread bytes of a paused connection whose peer sends no more. `None`: more may come. These are two
    /// system calls.
    fn left_to_read(&self, conn: Conn) -> Option<u64>;
    /// Stops receiving, or stops accepting if it is a listener. Bytes that are already on their way may still
    /// be delivered.
    fn pause(&mut self, conn: Conn);
    /// Receives or accepts again.
    fn resume(&mut self, conn: Conn);
    /// Closes. The kernel still delivers the bytes that were sent. The clients in a listener's queue come
    /// first, as `Accepted`.
    fn close(&mut self, conn: Conn);
    /// Closes with a reset, so that the peer does not mistake a cut-off message for a whole one.
    fn abort(&mut self, conn: Conn);
    /// Submits operations and waits for the next events. `None` to wait without a limit.
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()>;
    /// The next event of this turn.
    fn next(&mut self) -> Option<Event>;
    /// Gives a buffer back to the reactor.
    fn recycle(&mut self, buffer: Buffer);
}

/// The choice of a back end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// io_uring where the kernel and its seccomp filter allow all of it that is needed, else epoll.
    #[default]
    Auto,
    /// io_uring only.
    Uring,
    /// epoll only, which works everywhere.
    Epoll,
}

impl Io {
    /// Decides `Auto`. Returns the back end and the reason for it.
    ///
    /// # Errors
    /// io_uring was demanded and does not work here.
    pub fn resolve(self) -> Result<(Self, &'static str), NoUring> {
        match (self, Uring::probe()) {
            (Self::Epoll, _) => Ok((Self::Epoll, "asked for")),
            (Self::Uring, Ok(())) => Ok((Self::Uring, "asked for")),
            (Self::Uring, Err(error)) => Err(NoUring(error)),
            (Self::Auto, Ok(())) => Ok((Self::Uring, "the kernel allows it")),
            (Self::Auto, Err(_)) => Ok((Self::Epoll, "io_uring is not available here")),
        }
    }
}

/// A word names no back end. The operator has to correct it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is none of auto, io_uring, epoll")]
pub struct UnknownIo(String);

/// io_uring was demanded, and the kernel or its seccomp filter does not allow it. No retry helps before that
/// changes.
#[derive(Debug, thiserror::Error)]
#[error("io_uring does not work here ({0}); use --io epoll or --io auto")]
pub struct NoUring(io::Error);

impl FromStr for Io {
    type Err = UnknownIo;

    fn from_str(text: &str) -> Result<Self, UnknownIo> {
        match text {
            "auto" => Ok(Self::Auto),
            "io_uring" => Ok(Self::Uring),
            "epoll" => Ok(Self::Epoll),
            _ => Err(UnknownIo(text.to_owned())),
        }
    }
}

impl fmt::Display for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Uring => "io_uring",
            Self::Epoll => "epoll",
        })
    }
}
