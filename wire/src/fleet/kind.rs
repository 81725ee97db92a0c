//! The kinds of frames.

pub(super) const CHANGE: u8 = 1;
pub(super) const ACK: u8 = 2;
pub(super) const CONFIRM: u8 = 3;
pub(super) const ASK: u8 = 4;
pub(super) const ANSWER: u8 = 5;
