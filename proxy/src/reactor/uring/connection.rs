//! One socket of the ring, and the tags of its operations.

use std::{fmt, net::SocketAddr, os::fd::RawFd};

use io_uring::{opcode, squeue, types};
use socket2::{SockAddr, SockAddrStorage, Socket};

use crate::reactor::{Buffer, Conn, Expect};

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) generation: u32,
    pub(super) tag: u64,
    pub(super) socket: Socket,
    pub(super) kind: Kind,
    pub(super) expect: Expect,
    pub(super) paused: bool,
    pub(super) receiving: bool,
    pub(super) closed: bool,
    /// The connection is broken: no bytes get to the peer any more.
    pub(super) broken: bool,
    pub(super) connecting: bool,
    /// Operations whose completion has not come.
    pub(super) operations: u8,
    pub(super) sending: Vec<u8>,
    pub(super) sent: usize,
    pub(super) slow: bool,
    /// Bytes of a passed piece in this turn's submission.
    pub(super) passing: usize,
    pub(super) address: Option<Box<SockAddr>>,
    /// The address of a listener's next client, which the kernel writes.
    pub(super) peer: Option<Box<PeerAddress>>,
}

/// An address that the kernel writes. It stays where it is until its listener's operations have ended.
pub(super) struct PeerAddress {
    pub(super) storage: libc::sockaddr_storage,
    pub(super) length: libc::socklen_t,
}

impl PeerAddress {
    /// The room for an address.
    pub(super) const SIZE: libc::socklen_t = size_of::<libc::sockaddr_storage>() as libc::socklen_t;

    #[allow(unsafe_code)]
    pub(super) fn new() -> Self {
        Self {
            // SAFETY: all zeros are an address of no family.
            storage: unsafe { std::mem::zeroed() },
            length: Self::SIZE,
        }
    }

    /// The address that the kernel has written; `None` if it is no IP address.
    #[allow(unsafe_code)]
    pub(super) fn get(&self) -> Option<SocketAddr> {
        let mut storage = SockAddrStorage::zeroed();
        // SAFETY: the kernel has written an address of this length, and does not write now.
        unsafe {
            *storage.view_as::<libc::sockaddr_storage>() = self.storage;
            SockAddr::new(storage, self.length.min(Self::SIZE)).as_socket()
        }
    }
}

impl fmt::Debug for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PeerAddress({} bytes)", self.length)
    }
}

impl Connection {
    /// The operation that is armed as long as the connection is not paused.
    pub(super) fn incoming(&self) -> Op {
        match self.kind {
            Kind::Listener => Op::Accept,
            Kind::Stream => Op::Receive,
        }
    }
}

/// A piece of a ring's buffer on its way out. The piece holds its buffer.
#[derive(Debug)]
pub(super) struct PassedPiece {
    pub(super) conn: Conn,
    pub(super) piece: Buffer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Listener,
    Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Op {
    Accept = 1,
    Receive = 2,
    Connect = 3,
    Quick = 4,
    Slow = 5,
    Cancel = 6,
}

/// A send that must not block, and posts no completion if it sent everything.
pub(super) fn quick(fd: RawFd, pointer: *const u8, len: usize, conn: Conn) -> squeue::Entry {
    opcode::Send::new(types::Fd(fd), pointer, len as u32)
        .flags(libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_WAITALL)
        .build()
        .flags(squeue::Flags::SKIP_SUCCESS)
        .user_data(user_data(Op::Quick, conn))
}

pub(super) fn user_data(op: Op, conn: Conn) -> u64 {
    (op as u64) << 60 | u64::from(conn.generation) << 32 | u64::from(conn.index)
}

pub(super) fn op(data: u64) -> Option<Op> {
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

pub(super) fn conn(data: u64) -> Conn {
    Conn {
        index: data as u32,
        generation: (data >> 32) as u32 & 0x0fff_ffff,
    }
}
