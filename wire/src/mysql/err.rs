//! ERR packets.

use super::{Fault, bytes::Fields, packet::append_packet};

/// The number that stands for a report of MariaDB's progress, which is no error.
const PROGRESS: u16 = 0xffff;

/// Why a server rejects a statement or a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrPacket<'a> {
    /// The server's number of the error.
    pub code: u16,
    /// The SQL state. `None`: a server that greets with an error does not know yet that the client can read
    /// it.
    pub state: Option<[u8; 5]>,
    /// The error in words.
    pub message: &'a [u8],
}

impl<'a> ErrPacket<'a> {
    /// Reads the payload of an ERR packet.
    pub fn read(payload: &'a [u8]) -> Result<Self, Fault> {
        let mut fields = Fields::of(payload, "ERR packet");
        match fields.u8()? {
            0xff => {}
            other => return Err(Fault::FirstByte(other)),
        }
        let code = fields.u16()?;
        if code == PROGRESS {
            return Err(Fault::Progress);
        }
        let rest = fields.take_rest();
        let (state, message) = match rest.split_first_chunk::<6>() {
            Some((&[b'#', a, b, c, d, e], message)) => (Some([a, b, c, d, e]), message),
            _ => (None, rest),
        };
        Ok(Self { code, state, message })
    }

    /// Appends the packet.
    pub fn append(&self, sequence: u8, out: &mut Vec<u8>) {
        append_packet(sequence, out, |out| {
            out.push(0xff);
            out.extend_from_slice(&self.code.to_le_bytes());
            if let Some(state) = self.state {
                out.push(b'#');
                out.extend_from_slice(&state);
            }
            out.extend_from_slice(self.message);
        });
    }
}
