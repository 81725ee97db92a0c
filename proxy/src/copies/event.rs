//! Events of copies, from a worker to the control thread.

use std::{net::SocketAddr, sync::Arc};

use super::MissedKeys;
use crate::members::{Member, MemberId};

/// An event of a copy, from a worker to the control thread.
#[derive(Clone, Debug)]
pub enum Event {
    /// This copy missed a write, for this reason: this worker no longer reads it.
    Stale {
        /// The copy.
        member: Arc<Member>,
        /// The reason, for operators.
        why: String,
    },
    /// A connection to this copy broke with requests unanswered.
    Broken {
        /// The copy.
        member: Arc<Member>,
        /// Our end of the connection; `None` if it is unknown.
        end: Option<SocketAddr>,
    },
    /// This worker follows a proposal.
    Acknowledged {
        /// The worker's number.
        worker: usize,
        /// The copy.
        member: MemberId,
        /// The proposal.
        epoch: u64,
        /// Keys that the worker saw the copy miss until then.
        missed: MissedKeys,
    },
}
