//! Timers, and the requests and clients that they wake.

use std::cmp::Ordering;

use super::FlightId;
use crate::{
    client::ClientId,
    copies::{OperationId, TaskId},
    micros::Micros,
};

/// Wakes a sleeper at a certain time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// The time at which it fires, on the worker's clock.
    pub due: Micros,
    /// The sleeper that it wakes.
    pub wakes: Sleeper,
}

/// A request or client that waits for a time. At the same time, within one kind, the older one wakes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sleeper {
    /// A request that a route holds back.
    Flight(FlightId),
    /// A change of copies that waits for its key lock, or for its key's home.
    Operation(OperationId),
    /// A change of a peer that waits for its key lock.
    Task(TaskId),
    /// A client whose value waits for its key lock.
    Client(ClientId),
}

impl Ord for Timer {
    /// The earliest timer is the greatest, because a binary heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.wakes).cmp(&(self.due, self.wakes))
    }
}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
