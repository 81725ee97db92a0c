//! Orders that clients give which order the same at several proxies.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tokio::task::AbortHandle;

use crate::members::{Member, Pool};

/// The longest time of an order.
pub const LONGEST_ORDER: Duration = Duration::from_secs(60);

/// The whole wish of a client for a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientWish {
    /// What the writer would be given waits.
    pub hold: bool,
    /// The members that are given nothing new, by name or address.
    pub drain: Vec<String>,
    /// The member that takes writes, by name or address.
    pub writer: Option<String>,
    /// The time after which it is over.
    pub time: Duration,
}

/// A wish that is in force.
#[derive(Clone, Debug)]
pub struct ClientOrder {
    /// The client's name for it.
    pub name: String,
    /// What was asked for.
    pub wish: ClientWish,
    /// The pool.
    pub pool: Arc<Pool>,
    /// When it was last given.
    pub since: Instant,
    /// When it ends by itself.
    pub until: Instant,
    /// The members that drain. A pod that takes the place of one of them does not.
    pub drains: Vec<Drained>,
    /// The member that takes writes.
    pub writer: Option<Arc<Member>>,
    /// Its hold. `None`: it has had none since the last order without.
    pub hold: Option<ClientHold>,
    /// The time for which the last hold had writes wait that is over.
    pub last_hold: Option<Duration>,
    pub(super) ends: AbortHandle,
}

/// A member that drains by an order.
#[derive(Clone, Debug)]
pub struct Drained {
    pub(super) asked: String,
    /// The member.
    pub member: Arc<Member>,
    pub(super) has_connections: Arc<AtomicBool>,
}

/// A hold of an order.
#[derive(Clone, Copy, Debug)]
pub struct ClientHold {
    /// The time since which writes wait.
    pub since: Instant,
    /// They wait no more, although it is ordered: they have waited for the longest time.
    pub is_over: bool,
}

impl ClientOrder {
    /// Has it writes wait?
    pub fn is_holding(&self) -> bool {
        self.hold.is_some_and(|hold| !hold.is_over)
    }
}

impl Drained {
    /// Are connections left that were open when it was ordered?
    pub fn has_connections(&self) -> bool {
        self.has_connections.load(Relaxed)
    }
}
