//! The back end that always works: readiness by epoll (through mio), edge-triggered.
//!
//! A read that does not fill the scratch buffer has emptied the socket: the kernel reports the next bytes by
//! a new edge, so no second read is spent on `EAGAIN`. One that fills it puts the connection on the `again`
//! list, so that one busy peer takes one buffer per turn and no more.

mod accept;
mod fetch;
mod register;
mod source;

use std::{io, net::SocketAddr, ops::Range, time::Duration};

use mio::Token;
use rustix::{
    io::Errno,
    net::{RecvFlags, recv},
};
use slab::Slab;
use socket2::{SockAddr, Socket, TcpKeepalive};

use self::{
    fetch::{FETCH, FETCHES, Ready},
    source::{Source, Stage},
};
use super::{
    Buffer, Conn, Event, Expect, Reactor,
    buffer::Memory,
    ended::left_to_read,
    socket::{reset, stream_socket},
    unacknowledged::unacknowledged,
};

/// Bytes of one receive at most. This is larger than any message that enters a shared lane, and most often
/// all that a server has answered to a turn's requests.
const SCRATCH: usize = 256 * 1024;

/// The epoll back end.
#[derive(Debug)]
pub struct Epoll {
    poll: mio::Poll,
    events: mio::Events,
    sources: Slab<Source>,
    generation: u32,
    /// Events that this turn has still to handle.
    ready: Vec<Ready>,
    cursor: usize,
    /// Fetches that this turn may still make; 0 after one that was not full.
    fetches: usize,
    /// Connections that can be read without a new edge.
    again: Vec<Conn>,
    /// Events that no socket has to be looked at for.
    known: Vec<Event>,
    /// Connections whose registration is made or changed before the next wait.
    unregistered: Vec<Conn>,
    /// Buffers to receive into: as many as events that are taken before they are handled.
    scratch: Vec<Box<[u8]>>,
}

impl Epoll {
    /// A new back end.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            poll: mio::Poll::new()?,
            events: mio::Events::with_capacity(FETCH),
            sources: Slab::new(),
            generation: 0,
            ready: Vec::new(),
            cursor: 0,
            fetches: 0,
            again: Vec::new(),
            known: Vec::new(),
            unregistered: Vec::new(),
            scratch: Vec::new(),
        })
    }

    fn insert(&mut self, tag: u64, socket: Socket, state: Stage) -> Conn {
        self.generation = self.generation.wrapping_add(1) & 0x7fff_ffff;
        let source = Source {
            generation: self.generation,
            tag,
            socket,
            state,
            registered: None,
            awaits_room: false,
            paused: false,
            readable: false,
            again: false,
            hangup: false,
            ended: false,
            broken: false,
            backlog: Vec::new(),
            sent: 0,
            accepted: 0,
        };
        Conn {
            index: self.sources.insert(source) as u32,
            generation: self.generation,
        }
    }

    fn source(&mut self, conn: Conn) -> Option<&mut Source> {
        self.sources
            .get_mut(conn.index as usize)
            .filter(|source| source.generation == conn.generation)
    }

    /// Reads in the next turn, whether an edge comes or not.
    fn look_again(&mut self, conn: Conn) {
        if let Some(source) = self.source(conn)
            && !std::mem::replace(&mut source.again, true)
        {
            self.again.push(conn);
        }
    }

    fn read(&mut self, conn: Conn) -> Option<Event> {
        let mut scratch = self
            .scratch
            .pop()
            .unwrap_or_else(|| vec![0; SCRATCH].into_boxed_slice());
        let Some(source) = self.source(conn) else {
            self.scratch.push(scratch);
            return None;
        };
        if source.ended && !source.broken {
            self.scratch.push(scratch);
            return None;
        }
        if source.paused && source.broken {
            // A paused connection may have asked for much, and all of it would be fetched for a client that
            // is gone.
            let error = source.socket.take_error().ok().flatten().unwrap_or_else(reset);
            let tag = source.tag;
            self.scratch.push(scratch);
            return Some(Event::Failed { tag, error });
        }
        if source.paused || source.again {
            // The connection is read when it is resumed, or in the next turn.
            source.readable = source.paused;
            self.scratch.push(scratch);
            return None;
        }
        let tag = source.tag;
        loop {
            return match recv(&source.socket, &mut scratch[..], RecvFlags::empty()).map(|(_, len)| len) {
                Ok(0) => {
                    let broken = source.broken;
                    source.ended = true;
                    self.scratch.push(scratch);
                    // Once the kernel has reported the error of a reset connection, it may report an end of
                    // file behind its last bytes. That is a failure as well: the peer takes no replies.
                    Some(match broken {
                        true => Event::Failed { tag, error: reset() },
                        false => Event::Eof { tag },
                    })
                }
                Ok(n) => {
                    if n == scratch.len() || source.hangup {
                        source.again = true;
                        self.again.push(conn);
                    }
                    Some(Event::Data {
                        tag,
                        buffer: Buffer(Memory::Scratch(scratch, n)),
                    })
                }
                Err(Errno::INTR) => continue,
                Err(error) => {
                    self.scratch.push(scratch);
                    (error != Errno::AGAIN).then_some(Event::Failed {
                        tag,
                        error: error.into(),
                    })
                }
            };
        }
    }

    /// Handles a socket that takes bytes again, or whose connect has ended.
    fn write(&mut self, conn: Conn) -> Option<Event> {
        let source = self.source(conn)?;
        let tag = source.tag;
        if source.state == Stage::Connecting {
            match source.socket.take_error() {
                Ok(None) if source.socket.peer_addr().is_ok() => source.state = Stage::Open,
                Ok(None) => return None,
                Ok(Some(error)) | Err(error) => return Some(Event::Failed { tag, error }),
            }
            // The read side reports a failure to write.
            let _ = source.drain();
            return Some(Event::Connected { tag });
        }
        if source.backlog.is_empty() {
            return None;
        }
        match source.drain() {
            Ok(true) => Some(Event::Sent { tag }),
            Ok(false) => None,
            Err(error) => Some(Event::Failed { tag, error }),
        }
    }
}

impl Reactor for Epoll {
    fn listen(&mut self, tag: u64, socket: Socket) -> io::Result<Conn> {
        let conn = self.insert(tag, socket, Stage::Listening);
        self.register_now(conn)
    }

    fn add(&mut self, tag: u64, socket: Socket, _expect: Expect) -> io::Result<Conn> {
        let conn = self.insert(tag, socket, Stage::Open);
        self.unregistered.push(conn);
        // A client's first request has most often come with it.
        self.ready.push(Ready {
            conn,
            read: true,
            write: false,
        });
        Ok(conn)
    }

    fn connect(&mut self, tag: u64, address: &SockAddr) -> io::Result<Conn> {
        let socket = stream_socket(address)?;
        match socket.connect(address) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(error) => return Err(error),
        }
        let conn = self.insert(tag, socket, Stage::Connecting);
        self.register_now(conn)
    }

    fn send(&mut self, conn: Conn, bytes: &mut Vec<u8>) {
        let Some(source) = self.source(conn) else {
            return bytes.clear();
        };
        debug_assert!(source.backlog.is_empty());
        let sent = source.write(bytes);
        let broken = source.broken;
        if sent < bytes.len() {
            source.backlog = std::mem::take(bytes);
            source.sent = sent;
            self.await_room(conn);
        } else {
            bytes.clear();
        }
        if broken {
            self.look_again(conn);
        }
    }

    fn pass(&mut self, conn: Conn, buffer: &Buffer, range: Range<usize>) {
        self.send_copy(conn, buffer.get(range).unwrap_or_default());
    }

    fn send_copy(&mut self, conn: Conn, bytes: &[u8]) {
        if let Some(source) = self.source(conn) {
            let sent = source.write(bytes);
            source.backlog.extend_from_slice(&bytes[sent..]);
            let broken = source.broken;
            if sent < bytes.len() {
                self.await_room(conn);
            }
            if broken {
                self.look_again(conn);
            }
        }
    }

    fn backlog(&self, conn: Conn) -> usize {
        self.sources
            .get(conn.index as usize)
            .filter(|source| source.generation == conn.generation)
            .map_or(0, |source| source.backlog.len() - source.sent)
    }

    fn keep_alive(&self, conn: Conn, how: &TcpKeepalive) {
        if let Some(source) = self.sources.get(conn.index as usize) {
            let _ = source.socket.set_tcp_keepalive(how);
        }
    }

    fn local(&self, conn: Conn) -> Option<SocketAddr> {
        let source = self.sources.get(conn.index as usize)?;
        source.socket.local_addr().ok()?.as_socket()
    }

    fn unacknowledged(&self, conn: Conn) -> usize {
        self.sources
            .get(conn.index as usize)
            .filter(|source| source.generation == conn.generation)
            .map_or(0, |source| unacknowledged(&source.socket))
    }

    fn left_to_read(&self, conn: Conn) -> Option<u64> {
        self.sources
            .get(conn.index as usize)
            .filter(|source| source.generation == conn.generation)
            .and_then(|source| left_to_read(&source.socket))
    }

    fn pause(&mut self, conn: Conn) {
        if let Some(source) = self.source(conn) {
            source.paused = true;
        }
    }

    fn resume(&mut self, conn: Conn) {
        if let Some(source) = self.source(conn)
            && std::mem::take(&mut source.paused)
            && std::mem::take(&mut source.readable)
            && !std::mem::replace(&mut source.again, true)
        {
            self.again.push(conn);
        }
    }

    fn close(&mut self, conn: Conn) {
        if self
            .source(conn)
            .is_some_and(|source| source.state == Stage::Listening)
        {
            while let Some(event @ Event::Accepted { .. }) = self.accept(conn) {
                self.known.push(event);
            }
        }
        if self.source(conn).is_some() {
            // Closing the last descriptor also takes the socket out of the epoll set.
            self.sources.remove(conn.index as usize);
        }
    }

    fn abort(&mut self, conn: Conn) {
        if let Some(source) = self.source(conn) {
            let _ = source.socket.set_linger(Some(Duration::ZERO));
        }
        self.close(conn);
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.register_all();
        let at_once = !self.again.is_empty() || !self.known.is_empty();
        self.fetches = FETCHES;
        self.fetch(if at_once { Some(Duration::ZERO) } else { timeout })?;
        for conn in self.again.drain(..) {
            if let Some(source) = self
                .sources
                .get_mut(conn.index as usize)
                .filter(|source| source.generation == conn.generation)
            {
                source.again = false;
            }
            self.ready.push(Ready {
                conn,
                read: true,
                write: false,
            });
        }
        Ok(())
    }

    fn next(&mut self) -> Option<Event> {
        if let Some(event) = self.known.pop() {
            return Some(event);
        }
        loop {
            if let Some(event) = self.next_fetched() {
                return Some(event);
            }
            // An error here shows again in the next wait, which reports it.
            if self.fetches == 0 || self.fetch(Some(Duration::ZERO)).is_err() || self.ready.is_empty() {
                return None;
            }
        }
    }

    fn recycle(&mut self, buffer: Buffer) {
        if let Memory::Scratch(bytes, _) = buffer.0 {
            self.scratch.push(bytes);
        }
    }
}

fn token(conn: Conn) -> Token {
    Token((conn.generation as usize) << 32 | conn.index as usize)
}

fn conn(token: Token) -> Conn {
    Conn {
        index: token.0 as u32,
        generation: (token.0 >> 32) as u32,
    }
}
