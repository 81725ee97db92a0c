//! The fast back end: completions by io_uring. Multishot accept and receive with provided buffers; sends are submitted
//! together, once per turn, with the wait in the same system call.
//!
//! A send is first tried *quick*: it must not block and posts no completion when it sent everything. So after the call
//! that submitted it, a quick send without a completion is done, and the common turn costs one system call and no
//! completion per send. A send that did not fit goes on as an ordinary, *slow* one.
//!
//! A passed piece of a received buffer is sent quickly too, from where it lies; the buffer is held until that submission.
//!
//! Invariant: a buffer given to the kernel (`Link::sending`, `Link::address`, a held buffer of a pool) is neither moved nor
//! freed before the operation that uses it has ended; a link's slot is reused only when `operations` is 0.
#![allow(unsafe_code)]

mod pool;

use std::{
    collections::VecDeque,
    io, mem,
    net::SocketAddr,
    ops::Range,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    time::Duration,
};

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use rustix::net::{SocketFlags, accept_with};
use slab::Slab;
use socket2::{SockAddr, Socket};

use self::pool::{Pool, Shape};
use super::{Buffer, Conn, Event, Expect, Reactor, buffer::Memory, epoll::stream_socket};

const ENTRIES: u32 = 1024;
/// Room for a completion from every connection of a crowded turn; more than this overflows into kernel memory and is
/// fetched by a second call.
const COMPLETIONS: u32 = 16 * 1024;
/// Requests: small, from many; filled densely, or one for each.
const SMALL: [Shape; 2] = [
    Shape {
        count: 8,
        size: 64 * 1024,
    },
    Shape {
        count: 512,
        size: 4 * 1024,
    },
];
/// Replies: large, from few. What is on its way when a connection is paused is bounded by these.
const LARGE: [Shape; 2] = [
    Shape {
        count: 4,
        size: 256 * 1024,
    },
    Shape {
        count: 16,
        size: 64 * 1024,
    },
];
/// Calls that fetch what one wake-up left behind: enough for two thousand clients that are ready at once.
const GATHERS: usize = 100;
/// A slow send takes this much at a time, so that progress can be seen.
const SLOW: usize = 256 * 1024;
/// Empty send buffers kept, and the largest that is worth keeping.
const SPARE: (usize, usize) = (1024, 256 * 1024);

/// The io_uring back end.
pub struct Uring {
    // Dropped first: closing the ring ends every operation before the memory below is freed.
    ring: IoUring,
    pools: [Pool; 2],
    links: Slab<Link>,
    generation: u32,
    completions: VecDeque<(u64, i32, u32)>,
    events: VecDeque<Event>,
    /// Links with a quick send in this turn's submission.
    quick: Vec<Conn>,
    /// Pieces that this turn's submission sends from their pools' buffers.
    passed: Vec<Passed>,
    /// Links to be closed once this turn's submission is made.
    closing: Vec<Conn>,
    spare: Vec<Vec<u8>>,
    /// Listeners that had no descriptor for the next client.
    starved: Vec<Conn>,
}

#[derive(Debug)]
struct Link {
    generation: u32,
    tag: u64,
    socket: Socket,
    kind: Kind,
    expect: Expect,
    paused: bool,
    receiving: bool,
    closed: bool,
    connecting: bool,
    /// Operations whose completion is still to come.
    operations: u8,
    sending: Vec<u8>,
    sent: usize,
    slow: bool,
    /// Bytes of a passed piece in this turn's submission.
    passing: usize,
    address: Option<Box<SockAddr>>,
}

/// A piece of a pool's buffer on its way out; the piece holds its buffer.
#[derive(Debug)]
struct Passed {
    conn: Conn,
    piece: Buffer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Listener,
    Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum Op {
    Accept = 1,
    Receive = 2,
    Connect = 3,
    Quick = 4,
    Slow = 5,
    Cancel = 6,
}

impl Uring {
    /// A new back end; to be made by the thread that will use it.
    pub fn new() -> io::Result<Self> {
        let mut builder = IoUring::builder();
        builder
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS);
        // One indirection less, where the kernel (6.6) knows it.
        let ring = builder
            .clone()
            .setup_no_sqarray()
            .build(ENTRIES)
            .or_else(|_| builder.build(ENTRIES))?;
        let pools = [
            Pool::new(&ring, 0, SMALL[0], SMALL[1])?,
            Pool::new(&ring, 1, LARGE[0], LARGE[1])?,
        ];
        Ok(Self {
            ring,
            pools,
            links: Slab::new(),
            generation: 0,
            completions: VecDeque::new(),
            events: VecDeque::new(),
            quick: Vec::new(),
            passed: Vec::new(),
            closing: Vec::new(),
            spare: Vec::new(),
            starved: Vec::new(),
        })
    }

    /// Does everything work that this back end needs? Container runtimes often forbid io_uring as a whole; old kernels
    /// lack single parts.
    ///
    /// # Errors
    /// What the kernel answered.
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
        let link = Link {
            generation: self.generation,
            tag,
            socket,
            kind,
            expect,
            paused: false,
            receiving: false,
            closed: false,
            connecting: false,
            operations: 0,
            sending: Vec::new(),
            sent: 0,
            slow: false,
            passing: 0,
            address: None,
        };
        Conn {
            index: self.links.insert(link) as u32,
            generation: self.generation,
        }
    }

    fn link(&mut self, conn: Conn) -> Option<&mut Link> {
        self.links
            .get_mut(conn.index as usize)
            .filter(|link| link.generation == conn.generation)
    }

    fn open(&mut self, conn: Conn) -> Option<&mut Link> {
        self.link(conn).filter(|link| !link.closed)
    }

    fn push(&mut self, entry: &squeue::Entry) {
        loop {
            // SAFETY: every buffer an entry points at obeys the invariant at the head of this file.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return;
            }
            // Full: hand over what is there. An error here shows again in `wait`, which reports it.
            let _ = self.ring.submit();
        }
    }

    fn receive(&mut self, conn: Conn) {
        let Some(link) = self.open(conn) else { return };
        if link.receiving || link.paused || link.connecting {
            return;
        }
        link.receiving = true;
        link.operations += 1;
        let fd = types::Fd(link.socket.as_raw_fd());
        let entry = match link.kind {
            Kind::Listener => opcode::AcceptMulti::new(fd)
                .flags(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC)
                .build()
                .user_data(user_data(Op::Accept, conn)),
            Kind::Stream => {
                let group = u16::from(link.expect == Expect::Large);
                opcode::RecvMulti::new(fd, group)
                    .build()
                    .user_data(user_data(Op::Receive, conn))
            }
        };
        self.push(&entry);
    }

    fn send_slowly(&mut self, conn: Conn) {
        let Some(link) = self.open(conn) else { return };
        link.slow = true;
        link.operations += 1;
        let rest = &link.sending[link.sent..];
        let fd = types::Fd(link.socket.as_raw_fd());
        let entry = opcode::Send::new(fd, rest.as_ptr(), rest.len().min(SLOW) as u32)
            .flags(libc::MSG_NOSIGNAL)
            .build()
            .user_data(user_data(Op::Slow, conn));
        self.push(&entry);
    }

    fn keep(&mut self, mut bytes: Vec<u8>) {
        if bytes.capacity() <= SPARE.1 && bytes.capacity() > 0 && self.spare.len() < SPARE.0 {
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    /// Lets the kernel finish what has arrived meanwhile. After a wake-up it completes one operation, and then some twenty
    /// a call (`IO_LOCAL_TW_DEFAULT_MAX`); served in such portions, one batch of clients would reach the servers in many
    /// small writes.
    fn gather(&mut self) {
        for _ in 0..GATHERS {
            // An error here shows again in the next wait, which reports it.
            if !self.ring.submission().taskrun() || self.ring.submit_and_wait(0).is_err() {
                return;
            }
        }
    }

    /// After a submission: quick sends without a completion are done.
    fn settle(&mut self) {
        loop {
            let mut queue = self.ring.completion();
            queue.sync();
            self.completions
                .extend(queue.map(|entry| (entry.user_data(), entry.result(), entry.flags())));
            if !self.ring.submission().cq_overflow() {
                break;
            }
            // The kernel keeps what did not fit; this call makes it hand over.
            let _ = self
                .ring
                .submitter()
                .submit_with_args(0, &types::SubmitArgs::new());
        }
        if !(self.quick.is_empty() && self.passed.is_empty()) {
            for at in 0..self.completions.len() {
                let (data, result, _) = self.completions[at];
                if op(data) == Some(Op::Quick) {
                    self.quick_failed(conn(data), result);
                }
            }
        }
        let mut quick = mem::take(&mut self.quick);
        for conn in quick.drain(..) {
            if let Some(link) = self.link(conn)
                && !link.slow
            {
                link.sent = 0;
                let bytes = mem::take(&mut link.sending);
                self.keep(bytes);
            }
        }
        self.quick = quick;
        let mut passed = mem::take(&mut self.passed);
        for Passed { conn, piece } in passed.drain(..) {
            if let Some(link) = self.link(conn) {
                link.passing = 0;
            }
            self.recycle(piece);
        }
        self.passed = passed;
        let mut closing = mem::take(&mut self.closing);
        for conn in closing.drain(..) {
            self.finish(conn);
        }
        self.closing = closing;
    }

    fn quick_failed(&mut self, conn: Conn, result: i32) {
        let passed = self.passed.iter().position(|passed| passed.conn == conn);
        if result < 0 && result != -libc::EAGAIN && result != -libc::EINTR {
            // Broken: the receive side reports it; here its bytes are merely gone.
            return;
        }
        let rest = passed.map(|at| self.passed[at].piece.to_vec());
        let Some(link) = self.open(conn) else { return };
        if let Some(rest) = rest {
            link.sending = rest;
        }
        link.sent = result.max(0) as usize;
        self.send_slowly(conn);
    }

    /// Frees a closed link when nothing of it is with the kernel any more.
    fn finish(&mut self, conn: Conn) {
        let Some(link) = self.link(conn).filter(|link| link.closed) else {
            return;
        };
        if link.operations > 0 {
            // Ends a pending receive and send, which then complete; what was sent before is still delivered.
            let _ = link.socket.shutdown(std::net::Shutdown::Both);
            return;
        }
        self.links.remove(conn.index as usize);
    }

    fn complete(&mut self, data: u64, result: i32, flags: u32) -> Option<Event> {
        let (op, conn) = (op(data)?, conn(data));
        match op {
            Op::Cancel | Op::Quick => None,
            Op::Accept => self.accepted(conn, result, flags),
            Op::Receive => self.received(conn, result, flags),
            Op::Connect => {
                let link = self.link(conn)?;
                link.operations -= 1;
                link.connecting = false;
                link.address = None;
                let tag = link.tag;
                if link.closed {
                    self.finish(conn);
                    return None;
                }
                if result < 0 {
                    return Some(Event::Failed {
                        tag,
                        error: io::Error::from_raw_os_error(-result),
                    });
                }
                if !link.sending.is_empty() {
                    self.send_slowly(conn);
                }
                self.receive(conn);
                Some(Event::Connected { tag })
            }
            Op::Slow => {
                let link = self.link(conn)?;
                link.operations -= 1;
                if link.closed {
                    self.finish(conn);
                    return None;
                }
                if result < 0 && result != -libc::EINTR && result != -libc::EAGAIN {
                    // Broken: the receive side reports it, unless that has ended; the bytes are merely gone.
                    (link.slow, link.sent, link.sending) = (false, 0, Vec::new());
                    return (!link.receiving).then(|| Event::Failed {
                        tag: link.tag,
                        error: io::Error::from_raw_os_error(-result),
                    });
                }
                link.sent += result.max(0) as usize;
                if link.sent < link.sending.len() {
                    self.send_slowly(conn);
                    return None;
                }
                link.slow = false;
                link.sent = 0;
                let (tag, bytes) = (link.tag, mem::take(&mut link.sending));
                self.keep(bytes);
                Some(Event::Sent { tag })
            }
        }
    }

    fn accepted(&mut self, conn: Conn, result: i32, flags: u32) -> Option<Event> {
        // SAFETY: the kernel made this descriptor for us and nobody else knows it.
        let fd = (result >= 0).then(|| unsafe { OwnedFd::from_raw_fd(result) });
        let link = self.link(conn)?;
        let tag = link.tag;
        if !cqueue::more(flags) {
            link.receiving = false;
            link.operations -= 1;
            if link.closed {
                self.drain(conn);
                self.finish(conn);
            } else if result < 0 {
                // Out of files or memory: the clients stay in the queue until something else has happened.
                self.starved.push(conn);
            } else {
                self.receive(conn);
            }
        }
        fd.map(|fd| Event::Accepted {
            tag,
            socket: fd.into(),
        })
    }

    /// A closed listener's queue is answered before it is gone.
    fn drain(&mut self, conn: Conn) {
        let Some(link) = self.links.get(conn.index as usize) else {
            return;
        };
        while let Ok(fd) = accept_with(&link.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            self.events.push_back(Event::Accepted {
                tag: link.tag,
                socket: fd.into(),
            });
        }
    }

    fn received(&mut self, conn: Conn, result: i32, flags: u32) -> Option<Event> {
        while let Some(listener) = self.starved.pop() {
            self.receive(listener);
        }
        let link = self
            .links
            .get_mut(conn.index as usize)
            .filter(|l| l.generation == conn.generation)?;
        let group = usize::from(link.expect == Expect::Large);
        let (tag, closed, paused) = (link.tag, link.closed, link.paused);
        let more = cqueue::more(flags);
        if !more {
            link.receiving = false;
            link.operations -= 1;
        }
        let buffer = cqueue::buffer_select(flags)
            .map(|id| self.pools[group].take(id, result.max(0) as usize, cqueue::buffer_more(flags)));
        let buffer = match buffer {
            Some(buffer) if closed || result <= 0 => {
                self.recycle(buffer);
                None
            }
            other => other,
        };
        if closed {
            if !more {
                self.finish(conn);
            }
            return None;
        }
        match result {
            0 => Some(Event::Eof { tag }),
            1.. => {
                if !more && !paused {
                    self.receive(conn);
                }
                buffer.map(|buffer| Event::Data { tag, buffer })
            }
            // All buffers are in use, or we asked for it: nothing is lost, receive again (when not paused).
            _ if [libc::ENOBUFS, libc::ECANCELED, libc::EINTR, libc::EAGAIN].contains(&-result) => {
                self.receive(conn);
                None
            }
            _ => Some(Event::Failed {
                tag,
                error: io::Error::from_raw_os_error(-result),
            }),
        }
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
        if let Some(link) = self.link(conn) {
            link.connecting = true;
            link.operations += 1;
            link.address = Some(address);
        }
        self.push(&entry);
        Ok(conn)
    }

    fn send(&mut self, conn: Conn, bytes: &mut Vec<u8>) {
        let empty = self.spare.pop().unwrap_or_default();
        let Some(link) = self.open(conn) else {
            self.keep(empty);
            return bytes.clear();
        };
        debug_assert!(link.sending.is_empty());
        link.sending = mem::replace(bytes, empty);
        link.sent = 0;
        if link.connecting {
            return;
        }
        let entry = quick(
            link.socket.as_raw_fd(),
            link.sending.as_ptr(),
            link.sending.len(),
            conn,
        );
        self.quick.push(conn);
        self.push(&entry);
    }

    fn pass(&mut self, conn: Conn, buffer: &Buffer, range: Range<usize>) {
        let Some(piece) = buffer.piece(range) else { return };
        let (pointer, len) = (piece.as_ptr(), piece.len());
        let Some(link) = self.open(conn).filter(|link| !link.connecting) else {
            return;
        };
        debug_assert!(link.sending.is_empty() && link.passing == 0);
        link.passing = len;
        let entry = quick(link.socket.as_raw_fd(), pointer, len, conn);
        if let Memory::Ring { group, id, .. } = piece.0 {
            self.pools[usize::from(group)].hold(id);
        }
        self.passed.push(Passed { conn, piece });
        self.push(&entry);
    }

    fn backlog(&self, conn: Conn) -> usize {
        self.links
            .get(conn.index as usize)
            .filter(|link| link.generation == conn.generation)
            .map_or(0, |link| link.sending.len() - link.sent + link.passing)
    }

    fn local(&self, conn: Conn) -> Option<SocketAddr> {
        let link = self.links.get(conn.index as usize)?;
        link.socket.local_addr().ok()?.as_socket()
    }

    fn refused(&self, conn: Conn) -> usize {
        self.links
            .get(conn.index as usize)
            .filter(|link| link.generation == conn.generation)
            .map_or(0, |link| link.sending.len() - link.sent)
    }

    fn pause(&mut self, conn: Conn) {
        let Some(link) = self.open(conn) else { return };
        if mem::replace(&mut link.paused, true) || !link.receiving {
            return;
        }
        let entry = opcode::AsyncCancel::new(user_data(Op::Receive, conn))
            .build()
            .flags(squeue::Flags::SKIP_SUCCESS)
            .user_data(user_data(Op::Cancel, conn));
        self.push(&entry);
    }

    fn resume(&mut self, conn: Conn) {
        if let Some(link) = self.open(conn)
            && mem::take(&mut link.paused)
        {
            self.receive(conn);
        }
    }

    fn close(&mut self, conn: Conn) {
        let Some(link) = self.open(conn) else { return };
        link.closed = true;
        if link.kind == Kind::Listener {
            let entry = opcode::AsyncCancel::new(user_data(Op::Accept, conn))
                .build()
                .flags(squeue::Flags::SKIP_SUCCESS)
                .user_data(user_data(Op::Cancel, conn));
            return self.push(&entry);
        }
        if link.sending.is_empty() && link.passing == 0 {
            return self.finish(conn);
        }
        self.closing.push(conn);
    }

    fn abort(&mut self, conn: Conn) {
        if let Some(link) = self.open(conn) {
            let _ = link.socket.set_linger(Some(Duration::ZERO));
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
            && let Some(pool) = self.pools.get_mut(usize::from(group))
        {
            pool.recycle(id);
        }
    }
}

/// A send that must not block, and posts no completion when it sent everything.
fn quick(fd: RawFd, pointer: *const u8, len: usize, conn: Conn) -> squeue::Entry {
    opcode::Send::new(types::Fd(fd), pointer, len as u32)
        .flags(libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_WAITALL)
        .build()
        .flags(squeue::Flags::SKIP_SUCCESS)
        .user_data(user_data(Op::Quick, conn))
}

fn user_data(op: Op, conn: Conn) -> u64 {
    (op as u64) << 60 | u64::from(conn.generation) << 32 | u64::from(conn.index)
}

fn op(data: u64) -> Option<Op> {
    Some(match data >> 60 {
        1 => Op::Accept,
        2 => Op::Receive,
        3 => Op::Connect,
        4 => Op::Quick,
        5 => Op::Slow,
        6 => Op::Cancel,
        _ => return None,
    })
}

fn conn(data: u64) -> Conn {
    Conn {
        index: data as u32,
        generation: (data >> 32) as u32 & 0x0fff_ffff,
    }
}
