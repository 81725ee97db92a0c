//! Connections of all kinds, and which of them have bytes to send at the end of a turn.

use super::{Engine, Peer};
use crate::{reactor::Conn, stream::Stream};

impl Engine {
    /// Gives a client or lane that was just opened its connection.
    pub fn attach(&mut self, peer: Peer, conn: Conn) {
        if let Some(stream) = self.stream(peer) {
            stream.conn = Some(conn);
        }
    }

    /// Has the bytes of this connection sent at the end of the turn.
    pub(crate) fn flush_later(&mut self, peer: Peer) {
        if self.stream(peer).is_some_and(Stream::mark) {
            self.actions.flush.push(peer);
        }
    }

    /// Returns whether this is a lane whose connection is still being made.
    pub fn is_connecting(&self, peer: Peer) -> bool {
        match peer {
            Peer::Lane(id) => self.servers.is_connecting(id),
            Peer::Client(_) | Peer::Channel(_) => false,
        }
    }

    /// The bytes of this connection; `None`: it is gone.
    pub fn stream(&mut self, peer: Peer) -> Option<&mut Stream> {
        match peer {
            Peer::Client(id) => self.clients.stream(id),
            Peer::Lane(id) => self.servers.stream(id),
            Peer::Channel(id) => {
                let channel = self.channels()?.get_mut(id)?;
                Some(&mut channel.stream)
            }
        }
    }
}
