//! OK packets, also those that take the place of EOF packets.

use super::{
    Capabilities, Fault, Status, Trackers,
    bytes::{Fields, append_integer, append_string},
    packet::append_packet,
};

const NAME: &str = "OK packet";

/// A server's reply when a statement is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OkPacket<'a> {
    /// Rows that were changed, or found with [`Capabilities::FOUND_ROWS`].
    pub affected_rows: u64,
    /// The first number that AUTO_INCREMENT has made; 0: none.
    pub last_insert_id: u64,
    /// The server's state behind the statement.
    pub status: Status,
    /// Warnings that SHOW WARNINGS would list.
    pub warnings: u16,
    /// A text for humans.
    pub info: &'a [u8],
    /// The changes of the session's state.
    pub trackers: Trackers<'a>,
    /// The packet was longer than is kept: it is unknown what has changed in the session.
    pub is_cut: bool,
    /// The packet takes the place of an EOF packet.
    pub is_eof: bool,
}

impl<'a> OkPacket<'a> {
    /// Reads the payload of an OK packet. `is_cut`: its last bytes are missing; trackers are not read then.
    pub fn read(payload: &'a [u8], capabilities: Capabilities, is_cut: bool) -> Result<Self, Fault> {
        let mut fields = Fields::of(payload, NAME);
        let is_eof = match fields.u8()? {
            0 => false,
            0xfe => true,
            other => return Err(Fault::FirstByte(other)),
        };
        let mut ok = Self {
            affected_rows: fields.integer()?,
            last_insert_id: fields.integer()?,
            status: Status(fields.u16()?),
            warnings: fields.u16()?,
            is_cut,
            is_eof,
            ..Self::default()
        };
        if is_cut {
            return Ok(ok);
        }
        if !capabilities.has(Capabilities::SESSION_TRACK) {
            ok.info = whole_text(fields);
            return Ok(ok);
        }
        if !fields.is_empty() {
            ok.info = fields.string()?;
        }
        if ok.status.has(Status::SESSION_CHANGED) && !fields.is_empty() {
            ok.trackers = Trackers::read(fields.string()?)?;
        }
        fields.end()?;
        Ok(ok)
    }

    /// Appends the packet in the layout that these capabilities ask for. Without
    /// [`Capabilities::SESSION_TRACK`] there are no trackers, and the status does not promise any.
    pub fn append(&self, capabilities: Capabilities, sequence: u8, out: &mut Vec<u8>) {
        let is_tracked = capabilities.has(Capabilities::SESSION_TRACK);
        let trackers = self.trackers.bytes();
        append_packet(sequence, out, |out| {
            out.push(if self.is_eof { 0xfe } else { 0 });
            append_integer(self.affected_rows, out);
            append_integer(self.last_insert_id, out);
            let status = match is_tracked && !trackers.is_empty() {
                true => self.status.0 | Status::SESSION_CHANGED.0,
                false => self.status.0 & !Status::SESSION_CHANGED.0,
            };
            out.extend_from_slice(&status.to_le_bytes());
            out.extend_from_slice(&self.warnings.to_le_bytes());
            let has_trackers = is_tracked && !trackers.is_empty();
            if has_trackers || !self.info.is_empty() {
                append_string(self.info, out);
            }
            if has_trackers {
                append_string(trackers, out);
            }
        });
    }
}

/// The text that is the last field of a packet without trackers. Both servers put its length before it,
/// though the protocol's description has it end with the packet.
fn whole_text(mut fields: Fields<'_>) -> &[u8] {
    let plain = fields.clone().take_rest();
    match fields.string() {
        Ok(text) if fields.is_empty() => text,
        _ => plain,
    }
}
