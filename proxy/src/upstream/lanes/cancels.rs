//! Requests that end the work of a server for a client.

use std::{
    collections::VecDeque,
    sync::{Arc, mpsc::Sender},
};

use crate::{engine::LaneId, members::Member, micros::Micros};

/// A worker's requests to one member by which something is ended.
#[derive(Debug, Default)]
pub(in crate::upstream) struct Cancels {
    /// The connection on which they are sent.
    pub(in crate::upstream) lane: Option<LaneId>,
    pub(in crate::upstream) queue: VecDeque<Cancel>,
}

/// A request by which something is ended.
#[derive(Debug)]
pub(in crate::upstream) struct Cancel {
    pub(in crate::upstream) member: Arc<Member>,
    /// The login of the client.
    pub(in crate::upstream) login: u16,
    pub(in crate::upstream) command: u16,
    pub(in crate::upstream) message: Vec<u8>,
    /// The time since which it waits to be sent.
    pub(in crate::upstream) since: Micros,
    /// The lane on which the server does it; `None`: that lane has ended.
    pub(in crate::upstream) of: Option<LaneId>,
    /// The position of the request that takes too long; `None` to end whatever the server does.
    pub(in crate::upstream) of_request: Option<u32>,
    /// Receives whether the server has agreed; `None` if nobody waits for that.
    pub(in crate::upstream) done: Option<Sender<bool>>,
}

impl Cancels {
    /// Bytes of memory that the requests which wait take.
    pub(in crate::upstream) fn memory(&self) -> usize {
        let messages = self.queue.iter().map(|cancel| cancel.message.capacity());
        messages.sum::<usize>() + self.queue.capacity() * size_of::<Cancel>()
    }
}

impl Cancel {
    /// Tells the one that waits, if there is one, whether the server has agreed.
    pub(in crate::upstream) fn answer(&self, agreed: bool) {
        if let Some(done) = &self.done {
            // The task that gave the order may have ended.
            let _ = done.send(agreed);
        }
    }
}
