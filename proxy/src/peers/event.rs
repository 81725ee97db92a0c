//! An event of a peer, from a worker to the control thread.

use crate::fleet::{Slot, Stay, keeper::MissedByPeer};

/// An event of a peer, from a worker to the control thread.
#[derive(Clone, Debug)]
pub enum Event {
    /// This worker has installed a view.
    Installed {
        /// The worker's number.
        worker: usize,
        /// The number of the view.
        view: u64,
    },
    /// Decisions that this worker coordinates, and that began before this view, have ended.
    Settled {
        /// The worker's number.
        worker: usize,
        /// The number of the view.
        view: u64,
    },
    /// A peer has left a change unanswered for too long.
    Late {
        /// The worker's number.
        worker: usize,
        /// The peer.
        slot: Slot,
        /// Its stay.
        stay: Stay,
    },
    /// This peer was removed from the fleet. What this worker had under way is void.
    Left {
        /// The worker's number.
        worker: usize,
        /// Keys of which the own copies may hold what others do not.
        keys: MissedByPeer,
    },
    /// A link by which this worker reaches a peer has ended.
    Lost {
        /// The worker's number.
        worker: usize,
        /// The peer.
        slot: Slot,
        /// Its stay.
        stay: Stay,
        /// The reason, for operators.
        why: String,
    },
}
