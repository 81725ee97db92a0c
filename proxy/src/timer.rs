//! Requests that a route holds back until a certain time.

use std::cmp::Ordering;

/// Wakes a flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// Microseconds of the worker's clock.
    pub due: u64,
    pub flight: u32,
    pub generation: u32,
}

impl Ord for Timer {
    /// The earliest is the greatest: a binary heap gives it first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.generation).cmp(&(self.due, self.generation))
    }
}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
