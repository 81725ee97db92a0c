//! The door of a listener: the part that it serves of a protocol whose servers follow one that takes writes.

use super::Consistency;

/// The rights of a listener's clients, and the freshness of their reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Door {
    /// Whatever writes is rejected, as by a server that only reads.
    pub rejects_writes: bool,
    /// Every request goes to the server that takes writes.
    pub reads_at_writer: bool,
    /// How fresh reads are.
    pub consistency: Consistency,
    /// Nobody is served who speaks plainly.
    pub requires_tls: bool,
}

impl Door {
    /// All is served, and reads are fresh.
    pub const OPEN: Self = Self::of(0);
    /// The number of different doors.
    pub const COUNT: usize = 32;

    /// The number of this door.
    pub const fn number(self) -> usize {
        (self.requires_tls as usize) << 4
            | (self.rejects_writes as usize) << 3
            | (self.reads_at_writer as usize) << 2
            | self.consistency as usize
    }

    /// The door with this number.
    pub const fn of(number: usize) -> Self {
        Self {
            rejects_writes: number & 8 != 0,
            reads_at_writer: number & 4 != 0,
            consistency: Consistency::ALL[number % Consistency::ALL.len()],
            requires_tls: number & 16 != 0,
        }
    }
}
