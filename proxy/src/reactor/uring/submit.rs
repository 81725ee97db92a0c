//! Turns the worker's actions into submissions.

use std::{os::fd::AsRawFd, ptr};

use io_uring::{opcode, squeue, types};

use super::{
    Uring,
    connection::{Kind, Op, PeerAddress, quick, user_data},
};
use crate::reactor::{Conn, Expect};

/// Bytes of one slow send at most, so that progress can be seen.
const SLOW: usize = 256 * 1024;
/// Limits on kept empty send buffers: their number, the size of the largest, and the size of all.
const SPARE: (usize, usize, usize) = (1024, 256 * 1024, 4 << 20);

impl Uring {
    pub(super) fn push(&mut self, entry: &squeue::Entry) {
        loop {
            // SAFETY: every buffer that an entry points at obeys the invariant at the head of this module.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return;
            }
            // The queue is full and is handed over. An error here shows again in `wait`, which reports it.
            let _ = self.ring.submit();
        }
    }

    /// Submits a receive, or an accept for a listener.
    pub(super) fn receive(&mut self, conn: Conn) {
        let Some(connection) = self.open(conn) else { return };
        if connection.receiving || connection.paused || connection.connecting {
            return;
        }
        connection.receiving = true;
        connection.operations += 1;
        let fd = types::Fd(connection.socket.as_raw_fd());
        let entry = match connection.kind {
            Kind::Listener => {
                let peer = connection
                    .peer
                    .get_or_insert_with(|| Box::new(PeerAddress::new()));
                peer.length = PeerAddress::SIZE;
                let (address, length) = (ptr::from_mut(&mut peer.storage), ptr::from_mut(&mut peer.length));
                opcode::Accept::new(fd, address.cast(), length)
                    .flags(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC)
                    .build()
                    .user_data(user_data(Op::Accept, conn))
            }
            Kind::Stream => {
                let group = u16::from(connection.expect == Expect::Large);
                opcode::RecvMulti::new(fd, group)
                    .build()
                    .user_data(user_data(Op::Receive, conn))
            }
        };
        self.push(&entry);
    }

    /// Sends what the connection was given, unless it is still being made.
    pub(super) fn send_quickly(&mut self, conn: Conn) {
        let Some(connection) = self.open(conn) else { return };
        connection.sent = 0;
        if connection.connecting {
            return;
        }
        let (pointer, len) = (connection.sending.as_ptr(), connection.sending.len());
        let entry = quick(connection.socket.as_raw_fd(), pointer, len, conn);
        self.quick.push(conn);
        self.push(&entry);
    }

    /// Sends the rest of a quick send, a piece at a time.
    pub(super) fn send_slowly(&mut self, conn: Conn) {
        let Some(connection) = self.open(conn) else { return };
        connection.slow = true;
        connection.operations += 1;
        let rest = &connection.sending[connection.sent..];
        let fd = types::Fd(connection.socket.as_raw_fd());
        let entry = opcode::Send::new(fd, rest.as_ptr(), rest.len().min(SLOW) as u32)
            .flags(libc::MSG_NOSIGNAL)
            .build()
            .user_data(user_data(Op::Slow, conn));
        self.push(&entry);
    }

    /// Keeps an emptied send buffer for the next send.
    pub(super) fn keep(&mut self, mut bytes: Vec<u8>) {
        let size = bytes.capacity();
        let fits = self.spare.len() < SPARE.0 && self.spare_bytes + size <= SPARE.2;
        if fits && (1..=SPARE.1).contains(&size) {
            bytes.clear();
            self.spare_bytes += size;
            self.spare.push(bytes);
        }
    }

    /// A kept send buffer, or an empty one.
    pub(super) fn lend(&mut self) -> Vec<u8> {
        let bytes = self.spare.pop().unwrap_or_default();
        self.spare_bytes -= bytes.capacity();
        bytes
    }
}
