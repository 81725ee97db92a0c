//! One socket with the bytes that wait to be written to it.

use std::io;

use mio::Interest;
use rustix::{
    io::Errno,
    net::{SendFlags, send},
};
use socket2::Socket;

#[derive(Debug)]
pub(super) struct Source {
    pub(super) generation: u32,
    pub(super) tag: u64,
    pub(super) socket: Socket,
    pub(super) state: Stage,
    /// The events that the kernel is asked to report; `None` before it is asked for any.
    pub(super) registered: Option<Interest>,
    /// A send did not fit into the socket, so the kernel is to tell when there is room.
    pub(super) awaits_room: bool,
    pub(super) paused: bool,
    /// An edge came while the connection was paused.
    pub(super) readable: bool,
    /// The connection is on the `again` list.
    pub(super) again: bool,
    /// The peer has closed its side: after the data there is an end of file and no further edge.
    pub(super) hangup: bool,
    /// The end of what the peer sends was reported. To register anew reports it to us again.
    pub(super) ended: bool,
    /// The connection is broken: no bytes get to the peer any more.
    pub(super) broken: bool,
    pub(super) backlog: Vec<u8>,
    pub(super) sent: usize,
    /// Clients accepted in this turn.
    pub(super) accepted: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Listening,
    Connecting,
    Open,
}

impl Source {
    /// Writes as much as the socket takes now. Returns the number of bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> usize {
        let mut sent = 0;
        while self.state == Stage::Open && sent < bytes.len() {
            match send(&self.socket, &bytes[sent..], SendFlags::NOSIGNAL) {
                Ok(n) => sent += n,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // The read side reports the error; here the bytes are dropped.
                Err(_) => {
                    self.broken = true;
                    return bytes.len();
                }
            }
        }
        sent
    }

    /// Writes as much of the backlog as the socket takes. Returns whether the backlog is empty.
    pub(super) fn drain(&mut self) -> io::Result<bool> {
        while self.sent < self.backlog.len() {
            match send(&self.socket, &self.backlog[self.sent..], SendFlags::NOSIGNAL) {
                Ok(n) => self.sent += n,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        self.backlog = Vec::new();
        self.sent = 0;
        Ok(true)
    }
}
