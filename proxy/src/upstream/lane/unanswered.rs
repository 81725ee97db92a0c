//! A change for which no answer comes.

use crate::{micros::Micros, near::OpenChange};

/// A change whose request has no answer: it is over when a later request on the lane has one.
pub(in crate::upstream) struct Unanswered {
    /// The position behind its request among all bytes that the lane was given, modulo 2³².
    pub(in crate::upstream) end: u32,
    pub(in crate::upstream) sent: Micros,
    pub(in crate::upstream) change: OpenChange,
}
