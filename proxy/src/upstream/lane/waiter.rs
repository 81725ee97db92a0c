//! Requests that wait for their replies.

use crate::{engine::ReplyTo, micros::Micros};

/// A request that waits for its reply.
#[derive(Clone, Copy, Debug)]
pub(in crate::upstream) struct Waiter {
    pub(in crate::upstream) to: ReplyTo,
    pub(in crate::upstream) command: u16,
    /// The change that it may make, and those that must know when it is answered.
    pub(in crate::upstream) effects: Effects,
    /// The position of its first byte among all that the lane was given, modulo 2³².
    pub(in crate::upstream) at: u32,
    /// The position of its key in it, in bytes.
    pub(in crate::upstream) key_start: u16,
    /// The length of the key that its reply must name; 0 if the reply names no key.
    pub(in crate::upstream) key_len: u8,
    /// The facts that matter if its connection ends.
    pub(in crate::upstream) trial: Trial,
    /// Milliseconds that the reply may take beyond the pool's time-out; [`u32::MAX`]: for ever.
    pub(in crate::upstream) extra_time: u32,
    /// The time at which the request was sent.
    pub(in crate::upstream) sent: Micros,
}

impl Waiter {
    /// A placeholder that waits for nothing.
    pub(in crate::upstream) const NOBODY: Self = Self {
        to: ReplyTo::Nobody,
        command: 0,
        effects: Effects::NONE,
        at: 0,
        key_start: 0,
        key_len: 0,
        trial: Trial::Innocent,
        extra_time: 0,
        sent: Micros::ZERO,
    };
}

/// The known facts about a request that a lost connection has not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::upstream) enum Trial {
    /// Nothing.
    Innocent,
    /// It is larger than what servers take from everybody.
    Large,
    /// A connection has ended at it.
    Suspect,
    /// It is sent nowhere any more.
    Blamed,
}

/// The change that a request may make, and those that must know when it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::upstream) struct Effects(u8);

impl Effects {
    /// Nothing that anything depends on.
    pub(in crate::upstream) const NONE: Self = Self(0);
    /// It changes nothing.
    const READS: u8 = 1;
    /// It may change what a copy holds.
    const COPY: u8 = 2;
    /// Its lane has its change, for the near cache.
    const COUNTED: u8 = 4;

    /// Those of a request: whether it is a read, and whether it may change what a copy holds.
    #[inline]
    pub(in crate::upstream) const fn new(reads: bool, changes_copy: bool) -> Self {
        Self((Self::READS * reads as u8) | (Self::COPY * changes_copy as u8))
    }

    /// The same, with its change on the lane.
    #[inline]
    pub(in crate::upstream) const fn counted(self) -> Self {
        Self(self.0 | Self::COUNTED)
    }

    /// Does it change nothing?
    pub(in crate::upstream) const fn reads(self) -> bool {
        self.0 & Self::READS != 0
    }

    /// May it change what a copy holds?
    pub(in crate::upstream) const fn change_copy(self) -> bool {
        self.0 & Self::COPY != 0
    }

    /// Has its lane its change?
    #[inline]
    pub(in crate::upstream) const fn is_counted(self) -> bool {
        self.0 & Self::COUNTED != 0
    }
}
