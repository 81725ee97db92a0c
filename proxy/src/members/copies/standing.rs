//! What a copy may be used for.

use std::fmt;

use serde::Serialize;

/// The standing of one copy. Each step is taken by every worker before the next one begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Read and written; a write is acknowledged when it has taken it.
    #[default]
    Current,
    /// It missed a write: not read any more. No write is acknowledged without it yet, as another worker may still read it.
    Leaving,
    /// Nobody reads it: writes go on without it, and it owes them.
    Out,
    /// Written again, not read: what it owes is being paid.
    Joining,
    /// Its debt is paid and every worker writes to it; about to be read.
    Opening,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Standing {
    /// All of them, in the order of the steps.
    pub const ALL: [Self; 5] = [
        Self::Current,
        Self::Leaving,
        Self::Out,
        Self::Joining,
        Self::Opening,
    ];

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
    pub const fn is_written(self) -> bool {
        matches!(self, Self::Current | Self::Joining | Self::Opening)
    }

    /// Does a write that it misses have to wait until it is out?
    #[inline]
    pub const fn is_required(self) -> bool {
        matches!(self, Self::Current | Self::Leaving | Self::Opening)
    }
}
