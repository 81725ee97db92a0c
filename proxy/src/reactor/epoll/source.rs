//! One socket, and what waits to be written to it.

use std::io;

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
    pub(super) paused: bool,
    /// An edge came while paused.
    pub(super) readable: bool,
    /// On the `again` list.
    pub(super) again: bool,
    /// The peer has closed its side: after the data there is an end of file and no further edge.
    pub(super) hangup: bool,
    /// The connection is broken: nothing that is still to be written gets anywhere.
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
    /// Writes what the socket takes now; returns how much that was.
    pub(super) fn write(&mut self, bytes: &[u8]) -> usize {
        let mut sent = 0;
        while self.state == Stage::Open && sent < bytes.len() {
            match send(&self.socket, &bytes[sent..], SendFlags::NOSIGNAL) {
                Ok(n) => sent += n,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // The read side reports it; here its bytes are merely gone.
                Err(_) => {
                    self.broken = true;
                    return bytes.len();
                }
            }
        }
        sent
    }

    /// Writes what it can of the backlog; true when none is left.
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
