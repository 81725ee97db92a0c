//! The ends of this peer's lease before its time. Without one it ends by its time (`fleet/lease.rs`). Workers
//! notice an end when their next turn begins (`copies/path/fleet/turn.rs`), and answer no read from then on.

use super::{Fleet, guard};
use crate::fleet::Stay;

/// The reason for an end of the lease before its time.
pub(super) enum LeaseEnd {
    /// This proxy leaves the fleet.
    Goodbye,
    /// The leader of this term has taken the lease of this stay away.
    TakenAway { stay: Stay, term: u64 },
    /// The view does not have this stay any more: nothing is stored before another stay has its floor.
    NotInView,
}

impl Fleet {
    /// Ends the lease: from the next turn of each worker on nothing is answered.
    pub(super) fn end_lease(&self, why: LeaseEnd) {
        match why {
            LeaseEnd::Goodbye => guard(&self.mine).leaves = true,
            LeaseEnd::TakenAway { stay, term } => guard(&self.mine).void = Some((stay, term)),
            LeaseEnd::NotInView => {}
        }
        self.lease.end();
    }
}
