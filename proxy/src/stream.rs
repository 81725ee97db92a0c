//! The bytes of one connection in both directions, above the reactor: the same for clients and servers.

use crate::{dialect::Transform, reactor::Conn};

/// One connection's bytes.
#[derive(Default)]
pub struct Stream {
    /// None while it is not (or no more) connected.
    pub conn: Option<Conn>,
    /// Received and not yet understood: the beginning of a message.
    pub stash: Vec<u8>,
    /// To be sent at the end of this turn.
    pub out: Vec<u8>,
    /// On the list of connections to flush.
    pub dirty: bool,
    /// Not receiving.
    pub paused: bool,
    /// Bytes in the transform's form, to be sent at the end of this turn.
    pub wire: Vec<u8>,
    pub transform: Option<Box<dyn Transform>>,
}

impl Stream {
    /// Keeps bytes that were not understood yet.
    pub fn keep(&mut self, rest: &[u8]) {
        self.stash.extend_from_slice(rest);
    }
}
