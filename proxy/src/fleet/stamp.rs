//! The order of all changes of a fleet.

use std::fmt;

use super::Slot;

/// A hybrid timestamp: microseconds of Unix time, or more where a change had to come after one that was seen,
/// and the slot of the peer that drew it, so that no two peers ever draw the same. Stamps are ordered by
/// time, then by slot. The last bit says whether a home has decided the change. Zero is before every change.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(u64);

/// The bits below those of the time. The 52 bits of the time last until the year 2112.
const BELOW: u32 = Slot::BITS + 1;

impl Stamp {
    /// The stamp before every change.
    pub const ZERO: Self = Self(0);
    /// The stamp after every change.
    pub const MAX: Self = Self(u64::MAX);

    /// The stamp of this time, in microseconds of Unix time, drawn by this peer.
    pub const fn new(micros: u64, slot: Slot) -> Self {
        Self(micros << BELOW | (slot.0 as u64) << 1)
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
        self.0 >> BELOW
    }

    /// The peer that drew it.
    pub const fn slot(self) -> Slot {
        Slot((self.0 >> 1 & ((1 << Slot::BITS) - 1)) as u16)
    }

    /// The same stamp, of a change that a home has decided.
    pub const fn decided(self) -> Self {
        Self(self.0 | 1)
    }

    /// Has a home decided the change?
    pub const fn is_decided(self) -> bool {
        self.0 & 1 == 1
    }
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decided = if self.is_decided() { "d" } else { "" };
        write!(f, "{}.{}{decided}", self.micros(), self.slot().0)
    }
}
