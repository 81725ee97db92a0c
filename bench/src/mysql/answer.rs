//! A stand-in server's answers to a proxy's own questions.

use proxima_wire::mysql::{Capabilities, OkPacket, Status, Trackers, append_variable};

use super::packet;

/// The answer to a text, result by result.
pub(super) struct Answer<'a> {
    agreed: Capabilities,
    /// The number of the next packet.
    sequence: u8,
    out: &'a mut Vec<u8>,
}

impl<'a> Answer<'a> {
    /// An answer that begins with this number.
    pub(super) const fn new(agreed: Capabilities, sequence: u8, out: &'a mut Vec<u8>) -> Self {
        Self {
            agreed,
            sequence,
            out,
        }
    }

    /// Says that a statement is done, and what variables have from now on. `more`: another result follows.
    pub(super) fn ok(&mut self, variables: &[(&str, &str)], more: bool) {
        let mut told = Vec::new();
        for (name, value) in variables {
            append_variable(name.as_bytes(), value.as_bytes(), &mut told);
        }
        self.done(OkPacket {
            trackers: Trackers::read(&told).unwrap_or_default(),
            status: status(more),
            ..OkPacket::default()
        });
    }

    /// Says a table of names and values.
    pub(super) fn table(&mut self, pairs: &[(&str, &str)], more: bool) {
        self.packet(|out| out.push(2));
        for column in ["Variable_name", "Value"] {
            self.packet(|out| append_definition(column, out));
        }
        for (name, value) in pairs {
            self.packet(|out| {
                packet::append_text(name.as_bytes(), out);
                packet::append_text(value.as_bytes(), out);
            });
        }
        self.end(more);
    }

    /// Says one value.
    pub(super) fn value(&mut self, column: &str, value: &str, more: bool) {
        self.packet(|out| out.push(1));
        self.packet(|out| append_definition(column, out));
        self.packet(|out| packet::append_text(value.as_bytes(), out));
        self.end(more);
    }

    fn end(&mut self, more: bool) {
        self.done(OkPacket {
            status: status(more),
            is_eof: true,
            ..OkPacket::default()
        });
    }

    fn done(&mut self, ok: OkPacket<'_>) {
        ok.append(self.agreed, self.sequence, self.out);
        self.sequence += 1;
    }

    fn packet(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        packet::append(self.sequence, self.out, write);
        self.sequence += 1;
    }
}

fn status(more: bool) -> Status {
    let more = if more { Status::MORE_RESULTS.0 } else { 0 };
    Status(Status::AUTOCOMMIT.0 | more)
}

/// Appends the definition of a column of text that belongs to no table.
fn append_definition(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\x03def\0\0\0");
    packet::append_text(name.as_bytes(), out);
    out.extend_from_slice(b"\0\x0c\x2d\0\0\x10\0\0\xfd\x01\0\x27\0\0");
}
