//! Messages in parts of any size.

use super::{
    Fault,
    packet::{Header, LARGEST_PACKET},
};

/// Finds the ends of messages and checks the numbers of their packets, without keeping any payload.
#[derive(Clone, Copy, Debug)]
pub struct Packets {
    /// The bytes of a header that have come.
    header: [u8; Header::LEN],
    have: u8,
    /// The number that the next packet has.
    sequence: u8,
    /// Payload bytes of this packet that are still to come.
    left: u32,
    /// Payload bytes of the first packet of this message.
    first: u32,
    /// A message has begun and has not ended.
    is_within: bool,
    /// No payload byte of the message has come.
    is_fresh: bool,
    /// The next packet continues this message.
    is_full: bool,
}

/// A part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Bytes that the piece takes, with the header before it.
    pub taken: usize,
    /// Payload bytes. There are none while a header is incomplete.
    pub payload: &'a [u8],
    /// Payload bytes of the message's first packet. [`LARGEST_PACKET`]: the message is longer.
    pub packet: u32,
    /// The message begins with this payload, which is empty only if the message is.
    pub is_first: bool,
    /// The message ends with this payload.
    pub is_last: bool,
}

impl Packets {
    /// Reads packets from this number on.
    pub const fn from(sequence: u8) -> Self {
        Self {
            header: [0; Header::LEN],
            have: 0,
            sequence,
            left: 0,
            first: 0,
            is_within: false,
            is_fresh: false,
            is_full: false,
        }
    }

    /// The number that the next packet must have.
    pub const fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Skips the numbers of packets that the other end has sent in between.
    pub const fn skip(&mut self, packets: u8) {
        self.sequence = self.sequence.wrapping_add(packets);
    }

    /// Is this between two messages?
    pub const fn is_between(&self) -> bool {
        !self.is_within && self.have == 0
    }

    /// Takes the first bytes: the rest of a header, and then what there is of its packet's payload.
    pub fn next<'a>(&mut self, bytes: &'a [u8]) -> Result<Piece<'a>, Fault> {
        let mut taken = 0;
        if self.left == 0 {
            let have = usize::from(self.have);
            taken = bytes.len().min(Header::LEN - have);
            self.header[have..have + taken].copy_from_slice(&bytes[..taken]);
            self.have += taken as u8;
            if usize::from(self.have) < Header::LEN {
                return Ok(self.piece(taken, &[], false));
            }
            self.begin(Header::of(self.header))?;
        }
        let rest = &bytes[taken..];
        let payload = &rest[..rest.len().min(self.left as usize)];
        self.left -= payload.len() as u32;
        let is_last = self.left == 0 && !self.is_full;
        Ok(self.piece(taken + payload.len(), payload, is_last))
    }

    fn begin(&mut self, header: Header) -> Result<(), Fault> {
        if header.sequence != self.sequence {
            return Err(Fault::Sequence {
                expected: self.sequence,
                found: header.sequence,
            });
        }
        self.have = 0;
        self.sequence = self.sequence.wrapping_add(1);
        self.left = header.len;
        self.is_full = header.len == LARGEST_PACKET;
        if !self.is_within {
            self.is_within = true;
            self.is_fresh = true;
            self.first = header.len;
        }
        Ok(())
    }

    fn piece<'a>(&mut self, taken: usize, payload: &'a [u8], is_last: bool) -> Piece<'a> {
        let is_first = self.is_fresh && (is_last || !payload.is_empty());
        self.is_fresh &= !is_first;
        self.is_within &= !is_last;
        Piece {
            taken,
            payload,
            packet: self.first,
            is_first,
            is_last,
        }
    }
}
