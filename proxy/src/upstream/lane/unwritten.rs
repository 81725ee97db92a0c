//! Requests that wait for the login of their lane, or for the answer to what goes before them.

use proxima_wire::message::Request;

use crate::engine::{ClientId, ReplyTo};

/// A request that is written when the login of its lane has ended, or what goes before it is answered.
pub(in crate::upstream) struct Unwritten {
    pub(in crate::upstream) to: ReplyTo,
    pub(in crate::upstream) request: Request,
    pub(in crate::upstream) message: Vec<u8>,
    /// The client whose value follows, and is not here to its end.
    pub(in crate::upstream) uploader: Option<ClientId>,
}

impl Unwritten {
    /// Is it the head of a value that is passed on as it comes?
    pub(in crate::upstream) fn is_streamed(&self) -> bool {
        (self.message.len() as u64) < self.request.len()
    }
}
