//! The reply to one command, in parts of any size.

use super::{
    Capabilities, Event, Fault, Packets, Piece, Shape,
    packet::LARGEST_PACKET,
    stage::{Role, Stage},
};

/// The most bytes of a message that are kept to be understood. Behind them an OK packet is
/// [cut](super::OkPacket::is_cut), and the message of an error as well.
pub const LONGEST_CONTROL: usize = 64 * 1024;

/// The most bytes of memory that are kept from one reply to the next.
const KEPT: usize = 1024;

/// The result of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<'a> {
    /// Bytes that belong to the reply, up to the end of the message that the event is about.
    pub taken: usize,
    /// The contents of that message.
    pub event: Event<'a>,
    /// The reply ends with these bytes.
    pub is_last: bool,
}

/// Reads the reply to one command. It takes memory only for a message that is understood and comes in parts,
/// at most [`LONGEST_CONTROL`] bytes, and keeps a little of it for the next reply.
#[derive(Debug)]
pub struct ReplyReader {
    packets: Packets,
    capabilities: Capabilities,
    stage: Stage,
    /// The role of the message that has begun.
    role: Role,
    kept: Vec<u8>,
}

/// The location of the message's bytes.
enum MessageSource<'a> {
    /// Nowhere: there are only bytes to pass on.
    Absent,
    Given(&'a [u8]),
    Kept,
}

impl ReplyReader {
    /// Reads a reply of this shape. `capabilities`: what both ends have agreed on; `sequence`: the number of
    /// the reply's first packet, which is that of the command's last one and 1.
    pub const fn new(shape: Shape, capabilities: Capabilities, sequence: u8) -> Self {
        Self {
            packets: Packets::from(sequence),
            capabilities,
            stage: Stage::of(shape),
            role: Role::Bytes,
            kept: Vec::new(),
        }
    }

    /// Begins with the next reply of the same connection.
    pub fn begin(&mut self, shape: Shape, sequence: u8) {
        self.packets = Packets::from(sequence);
        self.stage = Stage::of(shape);
        self.role = Role::Bytes;
        self.kept.clear();
        self.kept.shrink_to(KEPT);
    }

    /// Has the reply ended? No further byte belongs to it.
    pub fn is_ended(&self) -> bool {
        self.stage == Stage::End
    }

    /// The number of the next packet of the connection.
    pub const fn sequence(&self) -> u8 {
        self.packets.sequence()
    }

    /// The client has answered a question of the server with so many packets, which are counted as well.
    pub const fn answered(&mut self, packets: u8) {
        self.packets.skip(packets);
    }

    /// Reads on. All bytes are taken, unless a message comes before their end that says something, or the
    /// reply ends. After a [`Fault`] the connection is of no use.
    pub fn read<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Step<'a>, Fault> {
        let mut taken = 0;
        let mut whole = MessageSource::Absent;
        let mut is_cut = false;
        while taken < bytes.len() && self.stage != Stage::End {
            let piece = self.packets.next(&bytes[taken..])?;
            taken += piece.taken;
            if piece.is_first {
                self.kept.clear();
                self.role = self.role_of(&piece)?;
            }
            if self.role == Role::Bytes {
                if piece.is_last {
                    self.stage = self.stage.passed(self.capabilities);
                }
                continue;
            }
            whole = self.keep(&piece);
            if !matches!(whole, MessageSource::Absent) {
                is_cut = piece.packet as usize > LONGEST_CONTROL;
                break;
            }
        }
        let payload = match whole {
            MessageSource::Absent => {
                return Ok(Step {
                    taken,
                    event: Event::Bytes,
                    is_last: self.stage == Stage::End,
                });
            }
            MessageSource::Given(payload) => payload,
            MessageSource::Kept => &self.kept,
        };
        let (stage, event) = self
            .stage
            .understood(self.role, payload, is_cut, self.capabilities)?;
        self.stage = stage;
        self.role = Role::Bytes;
        Ok(Step {
            taken,
            event,
            is_last: stage == Stage::End,
        })
    }

    fn role_of(&self, piece: &Piece<'_>) -> Result<Role, Fault> {
        let first = *piece.payload.first().ok_or(Fault::Empty)?;
        let role = self.stage.role(first, piece.packet, self.capabilities)?;
        match role {
            Role::Ok | Role::Err => match piece.packet < LARGEST_PACKET {
                true => Ok(role),
                false => Err(Fault::TooLong("OK or ERR packet")),
            },
            Role::Bytes => Ok(role),
            _ if piece.packet as usize > LONGEST_CONTROL => Err(Fault::TooLong("head of a reply")),
            _ => Ok(role),
        }
    }

    /// Keeps a part of a message that is to be understood, and tells where all of it is.
    fn keep<'a>(&mut self, piece: &Piece<'a>) -> MessageSource<'a> {
        let room = LONGEST_CONTROL - self.kept.len();
        let part = &piece.payload[..piece.payload.len().min(room)];
        match (piece.is_first, piece.is_last) {
            (true, true) => return MessageSource::Given(part),
            _ => self.kept.extend_from_slice(part),
        }
        match piece.is_last {
            true => MessageSource::Kept,
            false => MessageSource::Absent,
        }
    }
}
