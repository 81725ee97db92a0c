//! The fast back end: completions by io_uring. Multishot receive with provided buffers; sends are submitted
//! together, once per turn, with the wait in the same system call. Clients are accepted one a turn from each
//! listener: a multishot accept would take all that wait at once, and with them the descriptors that are kept
//! for servers.
//!
//! A send is first tried *quick*: it must not block and posts no completion when it sent everything. So after
//! the call that submitted it, a quick send without a completion is done, and the common turn costs one
//! system call and no completion per send. A send that did not fit goes on as an ordinary, *slow* one.
//!
//! A passed piece of a received buffer is sent quickly too, from where it lies; the buffer is held until that
//! submission.
//!
//! Invariant: a buffer given to the kernel (`Connection::sending`, `Connection::address`, a held buffer of a
//! ring) is neither moved nor freed before the operation that uses it has ended; a connection's slot is
//! reused only when `operations` is 0.
#![allow(unsafe_code)]

mod accept;
mod buffers;
mod complete;
mod connection;
mod settle;
mod submit;

use std::{collections::VecDeque, io, mem, net::SocketAddr, ops::Range, os::fd::AsRawFd, time::Duration};

use io_uring::{IoUring, opcode, squeue, types};
use slab::Slab;
use socket2::{SockAddr, Socket, TcpKeepalive};

use self::{
    buffers::{BufferRing, LARGE, SMALL},
    connection::{Connection, Kind, Op, PassedPiece, quick, user_data},
};
use super::{
    Buffer, Conn, Event, Expect, Reactor, buffer::Memory, ended::left_to_read, socket::stream_socket,
    unacknowledged::unacknowledged,
};

const ENTRIES: u32 = 1024;
/// Room for a completion from every connection of a crowded turn. Further ones overflow into kernel memory
/// and are fetched by a second call.
const COMPLETIONS: u32 = 16 * 1024;

/// The io_uring back end.
pub struct Uring {
    // This is dropped first: closing the ring ends every operation before the memory below is freed.
    ring: IoUring,
    rings: [BufferRing; 2],
    connections: Slab<Connection>,
    generation: u32,
    completions: VecDeque<(u64, i32, u32)>,
    events: VecDeque<Event>,
    /// Links with a quick send in this turn's submission.
    quick: Vec<Conn>,
    /// Pieces that this turn's submission sends from their rings' buffers.
    passed: Vec<PassedPiece>,
    /// Links to be closed once this turn's submission is made.
    closing: Vec<Conn>,
    /// Listeners in whose queues more clients may wait, and how many more this turn takes.
    accepting: Vec<(Conn, usize)>,
    spare: Vec<Vec<u8>>,
    /// The capacity of these buffers in bytes.
    spare_bytes: usize,
}

impl Uring {
    /// A new back end. It must be made by the thread that will use it.
    pub fn new() -> io::Result<Self> {
        let mut builder = IoUring::builder();
        builder
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS);
        // This saves an indirection from Linux 6.6 on.
        let ring = builder
            .clone()
            .setup_no_sqarray()
            .build(ENTRIES)
            .or_else(|_| builder.build(ENTRIES))?;
        let rings = [
            BufferRing::new(&ring, 0, SMALL[0], SMALL[1])?,
            BufferRing::new(&ring, 1, LARGE[0], LARGE[1])?,
        ];
        Ok(Self {
            ring,
            rings,
            connections: Slab::new(),
            generation: 0,
            completions: VecDeque::new(),
            events: VecDeque::new(),
            quick: Vec::new(),
            passed: Vec::new(),
            closing: Vec::new(),
            accepting: Vec::new(),
            spare: Vec::new(),
            spare_bytes: 0,
        })
    }

    /// Checks that everything works that this back end needs. Container runtimes often forbid io_uring as a
    /// whole, and old kernels lack parts of it.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn probe() -> io::Result<()> {
        let uring = Self::new()?;
        let mut probe = io_uring::Probe::new();
        uring.ring.submitter().register_probe(&mut probe)?;
        let needed = [
            opcode::Accept::CODE,
            opcode::Recv::CODE,
            opcode::Send::CODE,
            opcode::Connect::CODE,
        ];
        if needed.iter().all(|&code| probe.is_supported(code)) && uring.ring.params().is_feature_nodrop() {
            return Ok(());
        }
        Err(io::ErrorKind::Unsupported.into())
    }

    fn insert(&mut self, tag: u64, socket: Socket, kind: Kind, expect: Expect) -> Conn {
        self.generation = (self.generation + 1) & 0x0fff_ffff;
        let connection = Connection {
            generation: self.generation,
            tag,
            socket,
            kind,
            expect,
            paused: false,
            receiving: false,
            closed: false,
            broken: false,
            connecting: false,
            operations: 0,
            sending: Vec::new(),
            sent: 0,
            slow: false,
            passing: 0,
            address: None,
            peer: None,
        };
        Conn {
            index: self.connections.insert(connection) as u32,
            generation: self.generation,
        }
    }

    fn connection(&mut self, conn: Conn) -> Option<&mut Connection> {
        self.connections
            .get_mut(conn.index as usize)
            .filter(|connection| connection.generation == conn.generation)
    }

    fn open(&mut self, conn: Conn) -> Option<&mut Connection> {
        self.connection(conn).filter(|connection| !connection.closed)
    }
}

impl Reactor for Uring {
    fn listen(&mut self, tag: u64, socket: Socket) -> io::Result<Conn> {
        let conn = self.insert(tag, socket, Kind::Listener, Expect::Small);
        self.receive(conn);
        Ok(conn)
    }

    fn add(&mut self, tag: u64, socket: Socket, expect: Expect) -> io::Result<Conn> {
        let conn = self.insert(tag, socket, Kind::Stream, expect);
        self.receive(conn);
        Ok(conn)
    }

    fn connect(&mut self, tag: u64, address: &SockAddr) -> io::Result<Conn> {
        let socket = stream_socket(address)?;
        let fd = types::Fd(socket.as_raw_fd());
        let conn = self.insert(tag, socket, Kind::Stream, Expect::Large);
        let address = Box::new(address.clone());
        let entry = opcode::Connect::new(fd, address.as_ptr().cast(), address.len())
            .build()
            .user_data(user_data(Op::Connect, conn));
        if let Some(connection) = self.connection(conn) {
            connection.connecting = true;
            connection.operations += 1;
            connection.address = Some(address);
        }
        self.push(&entry);
        Ok(conn)
    }

    fn send(&mut self, conn: Conn, bytes: &mut Vec<u8>) {
        let empty = self.lend();
        let Some(connection) = self.open(conn) else {
            self.keep(empty);
            return bytes.clear();
        };
        debug_assert!(connection.sending.is_empty());
        connection.sending = mem::replace(bytes, empty);
        self.send_quickly(conn);
    }

    fn send_copy(&mut self, conn: Conn, bytes: &[u8]) {
        let mut copy = self.lend();
        copy.extend_from_slice(bytes);
        let Some(connection) = self.open(conn) else {
            copy.clear();
            return self.keep(copy);
        };
        debug_assert!(connection.sending.is_empty());
        connection.sending = copy;
        self.send_quickly(conn);
    }

    fn pass(&mut self, conn: Conn, buffer: &Buffer, range: Range<usize>) {
        let Some(piece) = buffer.piece(range) else { return };
        let (pointer, len) = (piece.as_ptr(), piece.len());
        let Some(connection) = self.open(conn).filter(|connection| !connection.connecting) else {
            return;
        };
        debug_assert!(connection.sending.is_empty() && connection.passing == 0);
        connection.passing = len;
        let entry = quick(connection.socket.as_raw_fd(), pointer, len, conn);
        if let Memory::Ring { group, id, .. } = piece.0 {
            self.rings[usize::from(group)].retain(id);
        }
        self.passed.push(PassedPiece { conn, piece });
        self.push(&entry);
    }

    fn backlog(&self, conn: Conn) -> usize {
        self.connections
            .get(conn.index as usize)
            .filter(|connection| connection.generation == conn.generation)
            .map_or(0, |connection| {
                connection.sending.len() - connection.sent + connection.passing
            })
    }

    fn keep_alive(&self, conn: Conn, how: &TcpKeepalive) {
        if let Some(connection) = self.connections.get(conn.index as usize) {
            let _ = connection.socket.set_tcp_keepalive(how);
        }
    }

    fn local(&self, conn: Conn) -> Option<SocketAddr> {
        let connection = self.connections.get(conn.index as usize)?;
        connection.socket.local_addr().ok()?.as_socket()
    }

    fn refused(&self, conn: Conn) -> usize {
        self.connections
            .get(conn.index as usize)
            .filter(|connection| connection.generation == conn.generation)
            .map_or(0, |connection| connection.sending.len() - connection.sent)
    }

    fn unacknowledged(&self, conn: Conn) -> usize {
        self.connections
            .get(conn.index as usize)
            .filter(|connection| connection.generation == conn.generation)
            .map_or(0, |connection| unacknowledged(&connection.socket))
    }

    fn left_to_read(&self, conn: Conn) -> Option<u64> {
        self.connections
            .get(conn.index as usize)
            .filter(|connection| connection.generation == conn.generation)
            // Until the receive has ended, bytes may be on their way from the kernel.
            .filter(|connection| !connection.receiving)
            .and_then(|connection| left_to_read(&connection.socket))
    }

    fn pause(&mut self, conn: Conn) {
        let Some(connection) = self.open(conn) else { return };
        if mem::replace(&mut connection.paused, true) || !connection.receiving {
            return;
        }
        let op = connection.incoming();
        let entry = opcode::AsyncCancel::new(user_data(op, conn))
            .build()
            .flags(squeue::Flags::SKIP_SUCCESS)
            .user_data(user_data(Op::Cancel, conn));
        self.push(&entry);
    }

    fn resume(&mut self, conn: Conn) {
        if let Some(connection) = self.open(conn)
            && mem::take(&mut connection.paused)
        {
            self.receive(conn);
        }
    }

    fn close(&mut self, conn: Conn) {
        let Some(connection) = self.open(conn) else { return };
        connection.closed = true;
        if connection.kind == Kind::Listener {
            // A listener that is paused, or whose queue is being emptied, has nothing to cancel.
            if connection.operations == 0 {
                self.drain(conn);
                return self.finish(conn);
            }
            let entry = opcode::AsyncCancel::new(user_data(Op::Accept, conn))
                .build()
                .flags(squeue::Flags::SKIP_SUCCESS)
                .user_data(user_data(Op::Cancel, conn));
            return self.push(&entry);
        }
        if connection.sending.is_empty() && connection.passing == 0 {
            return self.finish(conn);
        }
        self.closing.push(conn);
    }

    fn abort(&mut self, conn: Conn) {
        if let Some(connection) = self.open(conn) {
            let _ = connection.socket.set_linger(Some(Duration::ZERO));
        }
        self.close(conn);
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let at_once = !self.events.is_empty() || !self.closing.is_empty();
        let timeout = if at_once { Some(Duration::ZERO) } else { timeout };
        let result = match timeout {
            None => self.ring.submit_and_wait(1),
            Some(limit) => {
                let limit = types::Timespec::from(limit);
                self.ring
                    .submitter()
                    .submit_with_args(1, &types::SubmitArgs::new().timespec(&limit))
            }
        };
        match result.map_err(|error| (error.raw_os_error(), error)) {
            Ok(_) | Err((Some(libc::ETIME | libc::EINTR | libc::EBUSY), _)) => {}
            Err((_, error)) => return Err(error),
        }
        self.gather();
        self.settle();
        Ok(())
    }

    fn next(&mut self) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if let Some(event) = self.accept_next() {
            return Some(event);
        }
        while let Some((data, result, flags)) = self.completions.pop_front() {
            let event = self.complete(data, result, flags);
            if event.is_some() {
                return event;
            }
        }
        self.events.pop_front()
    }

    fn recycle(&mut self, buffer: Buffer) {
        if let Memory::Ring { group, id, .. } = buffer.0
            && let Some(ring) = self.rings.get_mut(usize::from(group))
        {
            ring.recycle(id);
        }
    }
}
