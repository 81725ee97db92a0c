//! Orders that persons give. Each stands until its time is over, or until it is taken back.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Instant,
};

use crate::members::{Member, Pool};

/// One order in force.
#[derive(Clone, Debug)]
pub struct StandingOrder {
    /// The pool that it is for.
    pub pool: Arc<Pool>,
    /// What is ordered.
    pub kind: OrderKind,
    /// When it was ordered.
    pub since: Instant,
    /// When it ends by itself; `None`: when it is taken back.
    pub until: Option<Instant>,
}

/// What may be ordered for a pool.
#[derive(Clone, Debug)]
pub enum OrderKind {
    /// This member is given no new requests.
    Drain {
        /// The member.
        member: Arc<Member>,
        /// Whether a connection that there was when it was ordered is still open, because a request is under
        /// way on it or its server keeps something for a client.
        has_connections: Arc<AtomicBool>,
    },
    /// The pool's requests wait.
    Hold,
    /// This member is the writer.
    Writer {
        /// The member.
        member: Arc<Member>,
        /// The number of the order.
        number: u64,
    },
}

impl OrderKind {
    /// The member that it is about; `None`: the whole pool.
    pub fn member(&self) -> Option<&Arc<Member>> {
        match self {
            Self::Drain { member, .. } | Self::Writer { member, .. } => Some(member),
            Self::Hold => None,
        }
    }

    /// Its name for operators.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Drain { .. } => "drain",
            Self::Hold => "hold",
            Self::Writer { .. } => "writer",
        }
    }
}

impl StandingOrder {
    /// Is it the order for the writer of this pool that has this number?
    pub(super) fn is_of_writer(&self, pool: &Pool, number: u64) -> bool {
        let is_its =
            |kind: &OrderKind| matches!(kind, OrderKind::Writer { number: other, .. } if *other == number);
        self.pool.id == pool.id && is_its(&self.kind)
    }

    /// Has the state of the pool given it up?
    pub(super) fn is_given_up(&self) -> bool {
        match self.kind {
            OrderKind::Writer { number, .. } => self.pool.orders.given_up(number).is_some(),
            OrderKind::Drain { .. } | OrderKind::Hold => false,
        }
    }

    /// Does the other one take the place of this one?
    pub(super) fn gives_way_to(&self, other: &Self) -> bool {
        self.pool.id == other.pool.id
            && match (&self.kind, &other.kind) {
                (OrderKind::Drain { member, .. }, OrderKind::Drain { member: other, .. }) => {
                    member.id == other.id
                }
                (OrderKind::Hold, OrderKind::Hold) | (OrderKind::Writer { .. }, OrderKind::Writer { .. }) => {
                    true
                }
                _ => false,
            }
    }
}
