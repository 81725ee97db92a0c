//! A bound on the work of an expansion.

use std::cell::Cell;

use crate::config::Diagnostic;

/// The work that is left.
#[derive(Debug)]
pub(super) struct Meter {
    limit: usize,
    left: Cell<usize>,
}

impl Meter {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            left: Cell::new(limit),
        }
    }

    /// Counts `work` values that are touched.
    pub(super) fn charge(&self, work: usize) -> Result<(), Diagnostic> {
        match self.left.get().checked_sub(work) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => {
                self.left.set(0);
                let problem = format!("expanding the macros touches more than {} values", self.limit);
                Err(Diagnostic::whole(problem))
            }
        }
    }
}
