//! New clients. The ring accepts the first of those that wait; the others follow with a call each, so that
//! all of them are served in one turn, and none is taken for which the worker has no room.

use std::{
    io,
    os::fd::{FromRawFd, OwnedFd},
};

use super::Uring;
use crate::reactor::{Conn, Event, socket::accept};

/// Clients accepted in one turn. The rest waits for the next turn, so that a storm of connections does not
/// starve requests.
const ACCEPTS: usize = 256;

impl Uring {
    /// Handles the end of an accept operation.
    pub(super) fn accepted(&mut self, conn: Conn, result: i32) -> Option<Event> {
        // SAFETY: the kernel made this descriptor for us and nothing else has it.
        let fd = (result >= 0).then(|| unsafe { OwnedFd::from_raw_fd(result) });
        let connection = self.connection(conn)?;
        let tag = connection.tag;
        // A client that has reset meanwhile has no address any more that could be asked for.
        let address = connection.peer.as_ref().and_then(|peer| peer.get());
        connection.receiving = false;
        connection.operations -= 1;
        if connection.closed {
            self.drain(conn);
            self.finish(conn);
        } else if fd.is_some() {
            self.accepting.push((conn, ACCEPTS));
        } else if [libc::ECANCELED, libc::EINTR, libc::EAGAIN, libc::ECONNABORTED].contains(&-result) {
            // A paused listener accepts again when it is resumed.
            self.receive(conn);
        } else {
            return self.cannot_accept(conn, io::Error::from_raw_os_error(-result));
        }
        fd.map(|fd| Event::Accepted {
            tag,
            socket: fd.into(),
            address,
        })
    }

    /// The next client that waits behind one that was accepted.
    pub(super) fn accept_next(&mut self) -> Option<Event> {
        while let Some(&mut (conn, ref mut left)) = self.accepting.last_mut() {
            *left -= 1;
            let is_last = *left == 0;
            let Some(connection) = self
                .open(conn)
                .filter(|connection| !connection.paused && !is_last)
            else {
                self.accepting.pop();
                self.receive(conn);
                continue;
            };
            let tag = connection.tag;
            match accept(&connection.socket) {
                Ok(Some((socket, address))) => {
                    return Some(Event::Accepted { tag, socket, address });
                }
                Ok(None) => {
                    self.accepting.pop();
                    self.receive(conn);
                }
                Err(error) => {
                    self.accepting.pop();
                    return self.cannot_accept(conn, error);
                }
            }
        }
        None
    }

    /// Pauses a listener that has no descriptor for the next client. The clients stay in the queue until it
    /// is resumed.
    fn cannot_accept(&mut self, conn: Conn, error: io::Error) -> Option<Event> {
        let connection = self.open(conn)?;
        connection.paused = true;
        Some(Event::Failed {
            tag: connection.tag,
            error,
        })
    }

    /// Accepts the clients in a closed listener's queue before it is gone.
    pub(super) fn drain(&mut self, conn: Conn) {
        let Some(connection) = self.connections.get(conn.index as usize) else {
            return;
        };
        while let Ok(Some((socket, address))) = accept(&connection.socket) {
            self.events.push_back(Event::Accepted {
                tag: connection.tag,
                socket,
                address,
            });
        }
    }
}
