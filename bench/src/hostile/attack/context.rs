//! Connections of attackers. None of them keeps an attacker from noticing the end of the round.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use serde::Serialize;
use socket2::{Domain, SockRef, Socket, Type};

use crate::protocol::Protocol;

/// Time that an attacker sleeps, or waits for the kernel, before it checks for the end of the round.
const LOOK: Duration = Duration::from_millis(50);

/// Time for a connection to be made.
const CONNECT: Duration = Duration::from_millis(500);

/// Pause after a connection that was not made.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// Counters of an attack.
#[derive(Default)]
pub(crate) struct AttackCounters {
    connections: AtomicU64,
    not_connected: AtomicU64,
    closed_by_peer: AtomicU64,
    requests: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    unanswered: AtomicU64,
}

/// [`AttackCounters`] in the report.
#[derive(Serialize)]
pub(crate) struct Done {
    pub(crate) attack: super::Attack,
    pub(crate) connections: u64,
    pub(crate) not_connected: u64,
    pub(crate) closed_by_peer: u64,
    pub(crate) requests: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    /// Foreign greetings with neither an answer nor an end within a second.
    pub(crate) unanswered: u64,
}

impl AttackCounters {
    pub(crate) fn told(&self, attack: super::Attack) -> Done {
        Done {
            attack,
            connections: self.connections.load(Relaxed),
            not_connected: self.not_connected.load(Relaxed),
            closed_by_peer: self.closed_by_peer.load(Relaxed),
            requests: self.requests.load(Relaxed),
            bytes_sent: self.sent.load(Relaxed),
            bytes_received: self.received.load(Relaxed),
            unanswered: self.unanswered.load(Relaxed),
        }
    }
}

pub(crate) struct AttackContext<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) protocol: Protocol,
    pub(crate) counters: &'a AttackCounters,
    pub(crate) over: &'a AtomicBool,
    /// The factor for attackers that make many connections.
    pub(crate) strength: u32,
}

impl<'a> AttackContext<'a> {
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }

    /// Sleeps, shorter when the round ends.
    pub(super) fn pause(&self, time: Duration) {
        let end = Instant::now() + time;
        while !self.is_over() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            thread::sleep(left.min(LOOK));
        }
    }

    pub(super) fn count_requests(&self, count: u64) {
        self.counters.requests.fetch_add(count, Relaxed);
    }

    pub(super) fn count_unanswered(&self) {
        self.counters.unanswered.fetch_add(1, Relaxed);
    }

    /// A connection; nothing, after a pause, when none could be made.
    pub(super) fn connect(&self) -> Option<Connection<'a>> {
        self.connect_with(None)
    }

    /// A connection for which this side's kernel keeps next to nothing.
    pub(super) fn connect_to_read_slowly(&self) -> Option<Connection<'a>> {
        self.connect_with(Some(4 * 1024))
    }

    fn connect_with(&self, receive_buffer: Option<usize>) -> Option<Connection<'a>> {
        match self.try_connect(receive_buffer) {
            Ok(stream) => {
                self.counters.connections.fetch_add(1, Relaxed);
                Some(Connection {
                    stream,
                    ended: Arc::default(),
                    counters: self.counters,
                    over: self.over,
                })
            }
            Err(_) => {
                self.counters.not_connected.fetch_add(1, Relaxed);
                self.pause(AFTER_FAILURE);
                None
            }
        }
    }

    fn try_connect(&self, receive_buffer: Option<usize>) -> io::Result<TcpStream> {
        let socket = Socket::new(
            Domain::for_address(self.address),
            Type::STREAM,
            Some(socket2::Protocol::TCP),
        )?;
        if let Some(size) = receive_buffer {
            // This is set before the handshake, which announces it.
            socket.set_recv_buffer_size(size)?;
        }
        socket.connect_timeout(&self.address.into(), CONNECT)?;
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LOOK))?;
        stream.set_write_timeout(Some(LOOK))?;
        Ok(stream)
    }
}

/// One connection of an attack. Dropping it closes it.
pub(super) struct Connection<'a> {
    stream: TcpStream,
    /// The other side has closed, and this is counted.
    ended: Arc<AtomicBool>,
    counters: &'a AttackCounters,
    over: &'a AtomicBool,
}

impl Connection<'_> {
    /// The same connection, for another thread: one sends while the other receives.
    pub(super) fn twin(&self) -> io::Result<Self> {
        Ok(Self {
            stream: self.stream.try_clone()?,
            ended: Arc::clone(&self.ended),
            ..*self
        })
    }

    /// Sends all of `bytes`, however long the other side does not read; false when it has closed, or the
    /// round is over.
    pub(super) fn send(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            if self.over.load(Relaxed) {
                return false;
            }
            match self.stream.write(bytes) {
                Ok(length) => {
                    self.counters.sent.fetch_add(length as u64, Relaxed);
                    bytes = &bytes[length..];
                }
                Err(error) if is_timeout(&error) => {}
                Err(_) => return self.closed(),
            }
        }
        true
    }

    /// Receives up to the length of `buffer`, after a short wait if there is nothing. `None`: the
    /// other side has closed.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Option<usize> {
        match self.stream.read(buffer) {
            Ok(0) => {
                self.closed();
                None
            }
            Ok(length) => {
                self.counters.received.fetch_add(length as u64, Relaxed);
                Some(length)
            }
            Err(error) if is_timeout(&error) => Some(0),
            Err(_) => {
                self.closed();
                None
            }
        }
    }

    /// Whether the other side has reset the connection. No bytes are taken, so an end of file behind them is
    /// not seen.
    pub(super) fn is_broken(&self) -> bool {
        let broken = !matches!(self.stream.take_error(), Ok(None));
        if broken {
            self.closed();
        }
        broken
    }

    /// Closes with a reset.
    pub(super) fn abort(self) {
        // If it fails, the connection is closed as usual.
        let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
    }

    fn closed(&self) -> bool {
        if !self.ended.swap(true, Relaxed) {
            self.counters.closed_by_peer.fetch_add(1, Relaxed);
        }
        false
    }
}

/// The errors of the kernel when the time for a read or write is over.
fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}
