//! Counters of failovers.

/// Counts of failovers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FailoverCounts {
    /// Failed tries that were not the last allowed one, except those of ejected children.
    pub errors: u64,
    /// Tries of ejected children that were not the last allowed one.
    pub ejected: u64,
    /// Requests for which the last allowed child failed as well.
    pub all_failed: u64,
    /// Failovers that a limit did not allow.
    pub limited: u64,
    /// Draws that led to a child that was asked before, of requests that no child answered.
    pub collisions: u64,
    /// Draws that led to a domain that had failed, of requests that no child answered.
    pub domain_collisions: u64,
}

impl FailoverCounts {
    pub(crate) const fn add(&mut self, other: &Self) {
        self.errors += other.errors;
        self.ejected += other.ejected;
        self.all_failed += other.all_failed;
        self.limited += other.limited;
        self.collisions += other.collisions;
        self.domain_collisions += other.domain_collisions;
    }
}
