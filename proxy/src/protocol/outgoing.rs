//! The bytes that leave on a lane for one request, if the codec writes it for this lane.

use proxima_wire::message::Reply;

/// The bytes for one request, with the requests that go before it.
#[derive(Debug)]
pub struct Outgoing<'a> {
    bytes: &'a mut Vec<u8>,
    before: &'a mut Vec<PrecedingRequest>,
    answer: &'a mut Vec<u8>,
}

/// The result of writing a request for its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteResult {
    /// It was written, behind what goes before it.
    Whole,
    /// Only what goes before it was written. The request is to be written when all of that is answered, and
    /// the lane is given nothing else until then.
    Waits,
    /// Nothing of it is sent: what was appended to the [answer](Outgoing::answer) is its reply, which
    /// [`answered`](super::ClientSide::answered) does not see. What goes before it leaves all the same.
    Answered(Reply),
    /// The same, for a reply that the server has given before: [`answered`](super::ClientSide::answered) sees
    /// it.
    Known(Reply),
}

/// A request that goes before another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrecedingRequest {
    /// The number of its command.
    pub(crate) command: u16,
    /// Its length, in bytes.
    pub(crate) len: u32,
}

impl<'a> Outgoing<'a> {
    /// Appends to these.
    pub(crate) fn new(
        bytes: &'a mut Vec<u8>,
        before: &'a mut Vec<PrecedingRequest>,
        answer: &'a mut Vec<u8>,
    ) -> Self {
        Self {
            bytes,
            before,
            answer,
        }
    }

    /// Appends a request of this command that goes before the one that is written. It has a reply, which
    /// [`ServerSide::finish`](super::ServerSide::finish) sees and no client gets. It must be called before
    /// anything of the request itself is written.
    pub fn ask_before(&mut self, command: u16, write: impl FnOnce(&mut Vec<u8>)) {
        let begin = self.bytes.len();
        write(self.bytes);
        let len = (self.bytes.len() - begin) as u32;
        self.before.push(PrecedingRequest { command, len });
    }

    /// The bytes to which the request itself is appended.
    pub fn request(&mut self) -> &mut Vec<u8> {
        self.bytes
    }

    /// The bytes to which the reply is appended, if the request is [answered](WriteResult::Answered) here.
    pub fn answer(&mut self) -> &mut Vec<u8> {
        self.answer
    }
}
