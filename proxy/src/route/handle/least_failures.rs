//! least_failures, a policy of `failover`: behind the first child comes the one with the fewest failures in a
//! row. Each worker counts by itself.

use std::cell::Cell;

use super::failover::Policy;
use crate::route::tree::{AttemptRecord, Children, Query};

/// The policy.
#[derive(Debug)]
pub(in crate::route) struct LeastFailures {
    tries: u32,
    /// Failures in a row, by child.
    failures: Vec<Cell<u32>>,
}

/// The children that can be asked.
const MOST: usize = 64;

impl LeastFailures {
    /// At most so many tries over this number of children.
    pub(in crate::route) fn new(tries: u32, children: usize) -> Self {
        Self {
            tries,
            failures: vec![Cell::new(0); children.min(MOST)],
        }
    }
}

impl Policy for LeastFailures {
    fn next(&self, _: &Query<'_>, tried: &AttemptRecord, _: &Children<'_>) -> Option<usize> {
        if tried.count >= self.tries {
            return None;
        }
        let left = (0..self.failures.len()).filter(|&child| !tried.has(child));
        left.min_by_key(|&child| self.failures[child].get())
    }

    fn learn(&self, child: usize, failed: bool) {
        if let Some(failures) = self.failures.get(child) {
            failures.set(if failed {
                failures.get().saturating_add(1)
            } else {
                0
            });
        }
    }

    fn why(&self) -> String {
        format!("those with the fewest failures first, {} at most", self.tries)
    }
}
