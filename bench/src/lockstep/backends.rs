//! The servers of a lockstep run, all in this process: they hold their replies until every request has
//! arrived.

use std::{
    collections::HashMap,
    io::{ErrorKind, Read, Write},
    net::TcpListener,
    os::fd::AsRawFd,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use mio::{Events, Interest, Poll, Token, net::TcpStream, unix::SourceFd};
use socket2::SockRef;

use crate::protocol::{Conversation, Protocol};

/// No round takes as long: a wait that does is stuck.
pub(crate) const STUCK: Duration = Duration::from_secs(5);

/// Room in the kernel for the replies of a whole batch.
const SEND_BUFFER: usize = 4 << 20;

/// The listening servers, and the connections that proxies made to them.
pub(crate) struct Backends {
    poll: Poll,
    events: Events,
    listeners: Vec<mio::net::TcpListener>,
    connections: HashMap<Token, Connection>,
    next: usize,
    protocol: Protocol,
    value_size: usize,
    scratch: Vec<u8>,
    /// Keys read or written since the last batch was complete.
    arrived: usize,
    /// Replies are held until all requests of a batch have arrived.
    holds: bool,
}

struct Connection {
    stream: TcpStream,
    conversation: Conversation,
    replies: Vec<u8>,
    written: usize,
    /// Replies that are held for requests of the batch, probes excluded.
    held: usize,
}

impl Backends {
    /// Servers on these listeners, which must be nonblocking. Gets are answered with `value_size` bytes.
    pub(crate) fn new(listeners: Vec<TcpListener>, protocol: Protocol, value_size: usize) -> Result<Self> {
        let poll = Poll::new()?;
        let mut listeners: Vec<_> = listeners
            .into_iter()
            .map(mio::net::TcpListener::from_std)
            .collect();
        for (number, listener) in listeners.iter_mut().enumerate() {
            poll.registry()
                .register(listener, Token(number), Interest::READABLE)?;
        }
        Ok(Self {
            poll,
            events: Events::with_capacity(4_096),
            next: listeners.len(),
            listeners,
            connections: HashMap::new(),
            protocol,
            value_size,
            scratch: vec![0; 1 << 20],
            arrived: 0,
            holds: true,
        })
    }

    /// Sleeps until `expected` keys have been asked for, and answers none of them.
    ///
    /// This process is not to be woken before the proxy has nothing left to do: under SCHED_BATCH a wake-up
    /// only makes it ready, so that a proxy which sends to several servers finishes its turn first.
    pub(crate) fn collect(&mut self, expected: usize) -> Result<()> {
        let deadline = Instant::now() + STUCK;
        while self.arrived < expected {
            self.turn(STUCK)?;
            if Instant::now() > deadline {
                bail!(
                    "{} of {expected} requests reached the servers within {STUCK:?}, then no more",
                    self.arrived
                );
            }
        }
        if self.arrived > expected {
            bail!(
                "{} requests reached the servers; {expected} were asked for",
                self.arrived
            );
        }
        Ok(())
    }

    /// Sends all replies that are held.
    pub(crate) fn answer(&mut self) -> Result<()> {
        self.arrived = 0;
        let deadline = Instant::now() + STUCK;
        for connection in self.connections.values_mut() {
            connection.held = 0;
            connection.flush()?;
        }
        while self
            .connections
            .values()
            .any(|connection| !connection.replies.is_empty())
        {
            if Instant::now() > deadline {
                bail!("the proxy did not read its servers' replies within {STUCK:?}");
            }
            self.turn(STUCK)?;
        }
        Ok(())
    }

    /// Serves like any server, without holding replies, for at most `wait`.
    pub(crate) fn serve(&mut self, wait: Duration) -> Result<()> {
        self.turn(wait)?;
        if self.arrived > 0 { self.answer() } else { Ok(()) }
    }

    /// Serves like any server, without holding replies, until something happens here or on this socket.
    pub(crate) fn serve_beside(&mut self, socket: &std::net::TcpStream) -> Result<()> {
        let fd = socket.as_raw_fd();
        // No connection has this number.
        let token = Token(usize::MAX - 1);
        self.poll
            .registry()
            .register(&mut SourceFd(&fd), token, Interest::READABLE)?;
        let served = self.serve(STUCK);
        self.poll.registry().deregister(&mut SourceFd(&fd))?;
        served
    }

    /// Serves like any server, each connection by itself, for at most `wait`.
    pub(crate) fn answer_at_once(&mut self, wait: Duration) -> Result<()> {
        self.holds = false;
        self.arrived = 0;
        self.turn(wait)
    }

    /// Waits for events once and handles them: accepts, reads, and continues what could not be written.
    fn turn(&mut self, wait: Duration) -> Result<()> {
        match self.poll.poll(&mut self.events, Some(wait)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            other => other?,
        }
        for event in &self.events {
            let token = event.token();
            if let Some(listener) = self.listeners.get(token.0) {
                accept_all(
                    listener,
                    &self.poll,
                    self.protocol,
                    &mut self.connections,
                    &mut self.next,
                )?;
                continue;
            }
            let Some(connection) = self.connections.get_mut(&token) else {
                continue;
            };
            let open = connection.read(&mut self.scratch, self.value_size, &mut self.arrived)?;
            if connection.held == 0 || !self.holds {
                connection.held = 0;
                connection.flush()?;
            }
            if !open {
                self.connections.remove(&token);
            }
        }
        Ok(())
    }
}

fn accept_all(
    listener: &mio::net::TcpListener,
    poll: &Poll,
    protocol: Protocol,
    connections: &mut HashMap<Token, Connection>,
    next: &mut usize,
) -> Result<()> {
    loop {
        let mut stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error).context("a server of the run cannot accept"),
        };
        stream.set_nodelay(true)?;
        SockRef::from(&stream).set_send_buffer_size(SEND_BUFFER)?;
        let token = Token(*next);
        *next += 1;
        poll.registry()
            .register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        let (conversation, mut replies) = (protocol.conversation(), Vec::new());
        // It leaves with the event that tells that the connection is writable.
        conversation.greet(&mut replies);
        connections.insert(
            token,
            Connection {
                stream,
                conversation,
                replies,
                written: 0,
                held: 0,
            },
        );
    }
}

impl Connection {
    /// Reads all there is; false when the proxy has closed the connection.
    fn read(&mut self, scratch: &mut [u8], value_size: usize, arrived: &mut usize) -> Result<bool> {
        loop {
            match self.stream.read(scratch) {
                Ok(0) => return Ok(false),
                Ok(length) => {
                    let served = self
                        .conversation
                        .feed(&scratch[..length], value_size, &mut self.replies)?;
                    self.held += served;
                    *arrived += served;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes what the kernel takes; the rest goes when the socket is writable again.
    fn flush(&mut self) -> Result<()> {
        while self.written < self.replies.len() {
            match self.stream.write(&self.replies[self.written..]) {
                Ok(length) => self.written += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("the proxy closed a connection with replies due"),
            }
        }
        self.replies.clear();
        self.written = 0;
        Ok(())
    }
}
