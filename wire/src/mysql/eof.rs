//! EOF packets, which end definitions and rows without `DEPRECATE_EOF`.

use super::{Fault, Status, bytes::Fields, packet::append_packet};

/// Bytes of an EOF packet's payload.
pub(super) const LEN: u32 = 5;

/// The end of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EofPacket {
    /// Warnings that SHOW WARNINGS would list.
    pub warnings: u16,
    /// The server's state. It may say that the session has changed, but never in what.
    pub status: Status,
}

impl EofPacket {
    /// Reads the payload of an EOF packet.
    pub fn read(payload: &[u8]) -> Result<Self, Fault> {
        let mut fields = Fields::of(payload, "EOF packet");
        match fields.u8()? {
            0xfe => {}
            other => return Err(Fault::FirstByte(other)),
        }
        let eof = Self {
            warnings: fields.u16()?,
            status: Status(fields.u16()?),
        };
        fields.end()?;
        Ok(eof)
    }

    /// Appends the packet.
    pub fn append(&self, sequence: u8, out: &mut Vec<u8>) {
        append_packet(sequence, out, |out| {
            out.push(0xfe);
            out.extend_from_slice(&self.warnings.to_le_bytes());
            out.extend_from_slice(&self.status.0.to_le_bytes());
        });
    }
}
