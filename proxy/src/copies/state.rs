//! The states of a copy: what it may be used for.

use std::fmt;

use serde::Serialize;

/// The state of one copy. Every worker takes each step before the next one begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CopyState {
    /// Read and written; a write is acknowledged when this copy has taken it.
    #[default]
    Current,
    /// It missed a write and is no longer read. Writes still wait for it, as another worker may still read
    /// it.
    Leaving,
    /// No worker reads it: writes go on without it, and it misses them.
    Out,
    /// Written again, but not read: what it missed is being repaired.
    Joining,
    /// It is repaired and every worker writes to it; it is about to be read.
    Opening,
}

impl fmt::Display for CopyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl CopyState {
    /// All states, in the order of the steps.
    pub const ALL: [Self; 5] = [
        Self::Current,
        Self::Leaving,
        Self::Out,
        Self::Joining,
        Self::Opening,
    ];

    /// The word for it in logs, metrics and `/members`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Leaving => "leaving",
            Self::Out => "out",
            Self::Joining => "joining",
            Self::Opening => "opening",
        }
    }

    /// May it be read?
    #[inline]
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Current)
    }

    /// Are writes sent to it?
    #[inline]
    pub(super) const fn is_written(self) -> bool {
        matches!(self, Self::Current | Self::Joining | Self::Opening)
    }

    /// Does a write that it misses have to wait until it is out?
    #[inline]
    pub const fn is_required(self) -> bool {
        matches!(self, Self::Current | Self::Leaving | Self::Opening)
    }
}
