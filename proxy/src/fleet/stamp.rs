//! The order of all changes of a fleet.

use std::fmt;

use super::Slot;

/// A hybrid timestamp: microseconds of Unix time, or more where a change had to come after one that was seen,
/// and the slot of the peer that drew it, so that no two peers ever draw the same. Stamps are ordered by time,
/// then by slot. Zero is before every change.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(u64);

impl Stamp {
    /// The bits of the slot, below those of the time: the 53 bits of the time last until the year 2255.
    const SLOT: u32 = Slot::BITS;

    /// The stamp before every change.
    pub const ZERO: Self = Self(0);

    /// The stamp of this time, in microseconds of Unix time, drawn by this peer.
    pub const fn new(micros: u64, slot: Slot) -> Self {
        Self(micros << Self::SLOT | slot.0 as u64)
    }

    /// The stamp that [`bits`](Self::bits) gave.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Its bits, whose order is that of stamps.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Its time, in microseconds.
    pub const fn micros(self) -> u64 {
        self.0 >> Self::SLOT
    }

    /// The peer that drew it.
    pub const fn slot(self) -> Slot {
        Slot((self.0 & ((1 << Self::SLOT) - 1)) as u16)
    }

    /// The earliest stamp of this slot that is later than `self`.
    pub const fn next(self, slot: Slot) -> Self {
        Self::new(self.micros() + 1, slot)
    }
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.micros(), self.slot().0)
    }
}
