//! The freshness of reads by what a client has said of itself, as the routes of its listener have it.

use std::fmt;

use super::Consistency;

/// How fresh a client's reads are by the routes of its listener. They look at nothing that a request says, so
/// that it is known before it walks them.
pub trait ConsistencyByLogin: fmt::Debug {
    /// The word for a client of this user that uses this schema; `None`: no route says it.
    fn of(&self, user: &[u8], schema: &[u8]) -> Option<Consistency>;
}
