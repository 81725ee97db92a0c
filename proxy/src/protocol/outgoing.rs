//! What leaves on a lane for one request, when the codec writes it for this lane.

/// The bytes for one request, with the requests that go before it.
#[derive(Debug)]
pub struct Outgoing<'a> {
    bytes: &'a mut Vec<u8>,
    before: &'a mut Vec<Before>,
}

/// A request that goes before another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Before {
    /// The number of its command.
    pub(crate) command: u16,
    /// Its length, in bytes.
    pub(crate) len: u32,
}

impl<'a> Outgoing<'a> {
    /// Appends to these.
    pub(crate) fn new(bytes: &'a mut Vec<u8>, before: &'a mut Vec<Before>) -> Self {
        Self { bytes, before }
    }

    /// Appends a request of this command that goes before the one that is written. It has a reply, which
    /// [`ServerSide::finish`](super::ServerSide::finish) sees and no client gets. It must be called before
    /// anything of the request itself is written.
    pub fn ask_before(&mut self, command: u16, write: impl FnOnce(&mut Vec<u8>)) {
        let begin = self.bytes.len();
        write(self.bytes);
        let len = (self.bytes.len() - begin) as u32;
        self.before.push(Before { command, len });
    }

    /// The bytes to which the request itself is appended.
    pub fn request(&mut self) -> &mut Vec<u8> {
        self.bytes
    }
}
