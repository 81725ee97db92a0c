//! What waits until a certain time.

use std::cmp::Ordering;

use super::FlightId;
use crate::{client::ClientId, copies::OperationId, micros::Micros};

/// Wakes what waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    pub due: Micros,
    pub wakes: Sleeper,
}

/// Who is woken; of one kind, at one time, the older first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sleeper {
    /// A request that a route holds back.
    Flight(FlightId),
    /// A change of copies that waits for the lock of its key, or for its home.
    Operation(OperationId),
    /// A client whose value waits for the lock of its key.
    Client(ClientId),
}

impl Ord for Timer {
    /// The earliest is the greatest: a binary heap gives it first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.wakes).cmp(&(self.due, self.wakes))
    }
}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
