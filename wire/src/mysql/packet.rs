//! One packet: a length of three bytes, a sequence number, and the payload.

/// The most bytes of a packet's payload. A packet of this size is continued by the next, which may be empty.
pub const LARGEST_PACKET: u32 = 0xff_ffff;

/// The header before a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the payload, at most [`LARGEST_PACKET`].
    pub len: u32,
    /// The packet's number. It begins at 0 with each command, counts the packets of both ends, and wraps.
    pub sequence: u8,
}

impl Header {
    /// Bytes of a header.
    pub const LEN: usize = 4;

    /// The header in these bytes.
    pub const fn of([a, b, c, sequence]: [u8; Self::LEN]) -> Self {
        Self {
            len: u32::from_le_bytes([a, b, c, 0]),
            sequence,
        }
    }

    /// Its bytes. Only the lowest three bytes of a larger length are used.
    pub const fn bytes(self) -> [u8; Self::LEN] {
        let [a, b, c, _] = self.len.to_le_bytes();
        [a, b, c, self.sequence]
    }
}

/// Appends a message whose payload `write` appends, as packets from this sequence number on. Returns the
/// number of the next packet.
pub fn append_packet(sequence: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> u8 {
    let mut start = out.len();
    out.extend_from_slice(&[0; Header::LEN]);
    write(out);
    let mut sequence = sequence;
    loop {
        let len = out.len().saturating_sub(start + Header::LEN);
        let is_full = len >= LARGEST_PACKET as usize;
        let len = len.min(LARGEST_PACKET as usize) as u32;
        out[start..start + Header::LEN].copy_from_slice(&Header { len, sequence }.bytes());
        sequence = sequence.wrapping_add(1);
        if !is_full {
            return sequence;
        }
        start += Header::LEN + len as usize;
        out.splice(start..start, [0; Header::LEN]);
    }
}
