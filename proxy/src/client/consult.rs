//! Requests that the control thread answers. Each waits in its slot until the answer comes.

use std::{fmt, sync::Arc};

use proxima_wire::message::{Outcome, Reply, Request};

use super::ReplyRole;
use crate::{
    engine::{ClientId, Engine, ReplyTo, WorkerEvent},
    protocol::{Failed, Protocol},
};

/// The error text for an answer for which there is no room.
const OUT_OF_MEMORY: &str = "out of memory for replies";

/// A request that the control thread answers.
#[derive(Clone)]
pub struct Question {
    /// The number of the worker that waits for the answer.
    pub worker: usize,
    /// The slot of the answer.
    pub slot: AnswerSlot,
    /// The protocol of the client.
    pub protocol: &'static dyn Protocol,
    /// The login of the client, in the codec's words.
    pub login: Arc<[u8]>,
    /// The number of the client's listener.
    pub listener: u16,
    /// The request.
    pub message: Vec<u8>,
}

/// No words of the client are shown.
impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Question({} of worker {})", self.protocol.name(), self.worker)
    }
}

/// The slot of an answer at its client.
#[derive(Clone, Copy, Debug)]
pub struct AnswerSlot {
    client: ClientId,
    seq: u32,
}

impl Engine {
    /// Asks the control thread. A client has one such request at a time, which the codec sees to: what waits
    /// for the control thread stays within the number of clients.
    pub(super) fn consult(&mut self, id: ClientId, request: &Request, message: &[u8]) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        let size = message.len() as u32;
        let seq = client.slots.push(
            request.command,
            request.is_quiet,
            ReplyRole::Whole,
            size,
            self.now,
        );
        self.actions.events.push(WorkerEvent::Question(Question {
            worker: self.facts.worker,
            slot: AnswerSlot { client: id, seq },
            protocol: client.protocol,
            login: client.session.login.as_slice().into(),
            listener: client.listener,
            message: message.to_vec(),
        }));
    }

    /// Takes the answer of the control thread.
    pub fn answered(&mut self, slot: AnswerSlot, answer: &[u8]) {
        let to = ReplyTo::Client {
            client: slot.client,
            seq: slot.seq,
        };
        if !self.takes_reply(to, answer.len()) {
            return self.fail(to, &Failed::here(Outcome::Overloaded, OUT_OF_MEMORY));
        }
        self.deliver(to, &Reply::new(Outcome::Ok, answer.len()), answer);
    }
}
