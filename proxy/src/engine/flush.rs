//! Connections of all kinds, and the list of those with bytes to send at the end of a turn.

use super::{Endpoint, Engine};
use crate::{reactor::Conn, stream::Stream};

impl Engine {
    /// Gives a client or lane that was just opened its connection.
    pub fn attach(&mut self, endpoint: Endpoint, conn: Conn) {
        if let Some(stream) = self.stream(endpoint) {
            stream.conn = Some(conn);
        }
    }

    /// Has the bytes of this connection sent at the end of the turn.
    pub(crate) fn flush_later(&mut self, endpoint: Endpoint) {
        if self.stream(endpoint).is_some_and(Stream::mark) {
            self.actions.flush.push(endpoint);
        }
    }

    /// Returns whether this is a lane whose connection is still being made.
    pub fn is_connecting(&self, endpoint: Endpoint) -> bool {
        match endpoint {
            Endpoint::Lane(id) => self.servers.is_connecting(id),
            Endpoint::Client(_) | Endpoint::Link(_) => false,
        }
    }

    /// The bytes of this connection; `None` if the connection is gone.
    pub fn stream(&mut self, endpoint: Endpoint) -> Option<&mut Stream> {
        match endpoint {
            Endpoint::Client(id) => self.clients.stream(id),
            Endpoint::Lane(id) => self.servers.stream(id),
            Endpoint::Link(id) => {
                let link = self.links()?.get_mut(id)?;
                Some(&mut link.stream)
            }
        }
    }
}
