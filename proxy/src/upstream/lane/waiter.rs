//! Requests that wait for their replies.

use crate::{engine::ReplyTo, micros::Micros};

/// A request that waits for its reply.
#[derive(Clone, Copy, Debug)]
pub(in crate::upstream) struct Waiter {
    pub(in crate::upstream) to: ReplyTo,
    pub(in crate::upstream) command: u16,
    /// The request may change what a copy holds.
    pub(in crate::upstream) changes: bool,
    /// The place of its first byte among all that the lane was given, modulo 2³².
    pub(in crate::upstream) at: u32,
    /// Where its key stands in it, in bytes from its first one.
    pub(in crate::upstream) key_start: u16,
    /// The length of the key that its reply must name; 0: it names none.
    pub(in crate::upstream) key_len: u8,
    /// It changes nothing.
    pub(in crate::upstream) is_read: bool,
    /// What is known of it should its connection end.
    pub(in crate::upstream) trial: Trial,
    /// Milliseconds that the reply may take beyond the pool's time-out; [`u32::MAX`]: for ever.
    pub(in crate::upstream) extra_time: u32,
    /// When the request was sent.
    pub(in crate::upstream) sent: Micros,
}

impl Waiter {
    /// A placeholder that waits for nothing.
    pub(in crate::upstream) const NOBODY: Self = Self {
        to: ReplyTo::Nobody,
        command: 0,
        changes: false,
        at: 0,
        key_start: 0,
        key_len: 0,
        is_read: false,
        trial: Trial::Innocent,
        extra_time: 0,
        sent: Micros::ZERO,
    };
}

/// What is known of a request that a lost connection has not answered.
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
