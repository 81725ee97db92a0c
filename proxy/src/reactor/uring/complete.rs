//! Turns completions into events.

use std::{io, mem};

use io_uring::cqueue;

use super::{
    Uring,
    connection::{Op, conn, op},
};
use crate::reactor::{Conn, Event, Expect, Reactor, socket::reset};

impl Uring {
    /// Frees a closed connection once the kernel has no operation of it any more.
    pub(super) fn finish(&mut self, conn: Conn) {
        let Some(connection) = self.connection(conn).filter(|connection| connection.closed) else {
            return;
        };
        if connection.operations > 0 {
            // A pending receive and send then complete. Bytes that were sent before are still delivered.
            let _ = connection.socket.shutdown(std::net::Shutdown::Both);
            return;
        }
        self.connections.remove(conn.index as usize);
    }

    pub(super) fn complete(&mut self, data: u64, result: i32, flags: u32) -> Option<Event> {
        let (op, conn) = (op(data)?, conn(data));
        match op {
            Op::Cancel | Op::Quick => None,
            Op::Accept => self.accepted(conn, result),
            Op::Receive => self.received(conn, result, flags),
            Op::Connect => {
                let connection = self.connection(conn)?;
                connection.operations -= 1;
                connection.connecting = false;
                connection.address = None;
                let tag = connection.tag;
                if connection.closed {
                    self.finish(conn);
                    return None;
                }
                if result < 0 {
                    return Some(Event::Failed {
                        tag,
                        error: io::Error::from_raw_os_error(-result),
                    });
                }
                if !connection.sending.is_empty() {
                    self.send_slowly(conn);
                }
                self.receive(conn);
                Some(Event::Connected { tag })
            }
            Op::Slow => {
                let connection = self.connection(conn)?;
                connection.operations -= 1;
                if connection.closed {
                    self.finish(conn);
                    return None;
                }
                if result < 0 && result != -libc::EINTR && result != -libc::EAGAIN {
                    (connection.slow, connection.sent, connection.sending) = (false, 0, Vec::new());
                    self.break_off(conn, -result);
                    return None;
                }
                connection.sent += result.max(0) as usize;
                if connection.sent < connection.sending.len() {
                    self.send_slowly(conn);
                    return None;
                }
                connection.slow = false;
                connection.sent = 0;
                let (tag, bytes) = (connection.tag, mem::take(&mut connection.sending));
                self.keep(bytes);
                Some(Event::Sent { tag })
            }
        }
    }

    /// Handles a failed send, whose bytes are dropped. The receive side reports the failure. Where it has
    /// ended, as that of a paused connection, this reports it.
    pub(super) fn break_off(&mut self, conn: Conn, errno: i32) {
        let Some(connection) = self.open(conn) else { return };
        let (tag, receiving) = (connection.tag, connection.receiving);
        if !std::mem::replace(&mut connection.broken, true) && !receiving {
            let error = io::Error::from_raw_os_error(errno);
            self.events.push_back(Event::Failed { tag, error });
        }
    }

    pub(super) fn received(&mut self, conn: Conn, result: i32, flags: u32) -> Option<Event> {
        let connection = self
            .connections
            .get_mut(conn.index as usize)
            .filter(|l| l.generation == conn.generation)?;
        let group = usize::from(connection.expect == Expect::Large);
        let (tag, closed, paused, broken) = (
            connection.tag,
            connection.closed,
            connection.paused,
            connection.broken,
        );
        let more = cqueue::more(flags);
        if !more {
            connection.receiving = false;
            connection.operations -= 1;
        }
        let buffer = cqueue::buffer_select(flags)
            .map(|id| self.rings[group].take(id, result.max(0) as usize, cqueue::buffer_more(flags)));
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
            // The connection was paused, and has broken meanwhile.
            _ if broken && paused => Some(Event::Failed { tag, error: reset() }),
            // All buffers are in use, or we cancelled the receive: nothing is lost, and the next receive goes
            // on.
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
