//! The last packet of a reply, or of a part of one, and the state of the connection that it reports.

use proxima_wire::mysql::{Capabilities, EofPacket, Header, OkPacket, Status};

/// The last packet of a reply.
#[derive(Clone, Copy, Debug)]
pub(super) enum LastPacket<'a> {
    /// A statement is done, or its rows end.
    Ok(OkPacket<'a>),
    /// Rows or definitions end.
    Eof(EofPacket),
    /// The reply ends with an error.
    Error,
}

/// A reply, or a part of one, which ends with such a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplyEnd<'a> {
    /// All of its bytes.
    pub(super) bytes: &'a [u8],
    /// Bytes of the last packet, with its header.
    pub(super) last: usize,
    /// The capabilities on which both ends have agreed.
    pub(super) capabilities: Capabilities,
}

impl<'a> ReplyEnd<'a> {
    /// The bytes before the last packet.
    pub(super) fn before(&self) -> &'a [u8] {
        &self.bytes[..self.bytes.len().saturating_sub(self.last)]
    }

    /// The last packet, with its header.
    pub(super) fn packet(&self) -> &'a [u8] {
        &self.bytes[self.before().len()..]
    }

    /// Do the rows wait in a cursor?
    pub(super) fn has_cursor(&self) -> bool {
        match self.last_packet() {
            Some(LastPacket::Ok(ok)) => ok.status.has(Status::CURSOR_EXISTS),
            Some(LastPacket::Eof(eof)) => eof.status.has(Status::CURSOR_EXISTS),
            Some(LastPacket::Error) | None => false,
        }
    }

    /// Are the columns others than those that were told when the statement was prepared?
    pub(super) fn has_new_columns(&self) -> bool {
        match self.last_packet() {
            Some(LastPacket::Ok(ok)) => ok.status.has(Status::METADATA_CHANGED),
            Some(LastPacket::Eof(eof)) => eof.status.has(Status::METADATA_CHANGED),
            Some(LastPacket::Error) | None => false,
        }
    }

    /// Does another result follow?
    pub(super) fn goes_on(&self) -> bool {
        match self.last_packet() {
            Some(LastPacket::Ok(ok)) => ok.status.has(Status::MORE_RESULTS),
            Some(LastPacket::Eof(eof)) => eof.status.has(Status::MORE_RESULTS),
            Some(LastPacket::Error) | None => false,
        }
    }

    /// Is this the reply from its first packet to its last? A part that is not the last one ends with a packet
    /// which says that another result follows.
    pub(super) fn is_whole(&self) -> bool {
        self.bytes.get(3) == Some(&1) && !self.goes_on()
    }

    /// The last packet; `None` if it reports nothing about the connection.
    pub(super) fn last_packet(&self) -> Option<LastPacket<'a>> {
        let payload = self.packet().get(Header::LEN..)?;
        match payload.first()? {
            0xff => Some(LastPacket::Error),
            0xfe if payload.len() == 5 => EofPacket::read(payload).ok().map(LastPacket::Eof),
            0 | 0xfe => OkPacket::read(payload, self.capabilities, false)
                .ok()
                .map(LastPacket::Ok),
            _ => None,
        }
    }
}
