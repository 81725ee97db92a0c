//! The subscriptions of one client, which may be at several servers.
//!
//! A channel is at the server of its name, a pattern at every server. A server counts what it has, and the
//! client is told the sum. The names are the servers' to keep, so that a client costs a few bytes for each
//! connection, however much it subscribes.
//!
//! Invariant: all connections of a client have the same patterns. A client with patterns has a connection to
//! every server that was up, and is closed when another server may get its messages
//! ([`is_outdated`](Subscriptions::is_outdated)).

mod change;

use std::{rc::Rc, sync::Arc};

pub(super) use self::change::{Change, Part};
use crate::{
    engine::LaneId,
    members::{Member, MemberId},
    protocol::{Confirmation, Subject, SubscriptionCounts},
    route::Tree,
};

/// The connections with a client's subscriptions, and the change of them that is under way.
pub(super) struct Subscriptions {
    /// The connections, in the order of their servers' numbers.
    held: Vec<Held>,
    /// All subscriptions of the client.
    totals: SubscriptionCounts,
    /// The change under way. The client is served no further before it is made.
    pub(super) change: Option<Change>,
    /// Servers that were down when the client subscribed. Their channels are at other servers meanwhile.
    missing: Vec<Arc<Member>>,
    /// The tree by which the channels' servers were found.
    tree: Rc<Tree>,
}

/// A connection to one server.
struct Held {
    member: MemberId,
    lane: LaneId,
    counts: SubscriptionCounts,
}

/// What a confirmation has brought about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// More confirmations are to come from this server.
    More,
    /// The server has confirmed its part, and others have not.
    Part,
    /// The whole change is made.
    Made,
}

impl Subscriptions {
    /// No subscriptions yet.
    pub(super) fn new(tree: Rc<Tree>) -> Self {
        Self {
            held: Vec::new(),
            totals: SubscriptionCounts::default(),
            change: None,
            missing: Vec::new(),
            tree,
        }
    }

    /// Returns whether messages for the client may be sent to a server where it has not subscribed: servers
    /// have come or gone, one with subscriptions is down, or one is up again whose channels were elsewhere.
    /// `is_up` tells of a connection's server.
    pub(super) fn is_outdated(
        &mut self,
        tree: &Rc<Tree>,
        listener: usize,
        is_up: impl Fn(LaneId) -> bool,
    ) -> bool {
        if !Rc::ptr_eq(tree, &self.tree) {
            let ids = |tree: &Tree| -> Vec<MemberId> {
                tree.reach(listener).iter().map(|member| member.id).collect()
            };
            if ids(tree) != ids(&self.tree) {
                return true;
            }
            self.tree = Rc::clone(tree);
        }
        let is_served = |held: &Held| is_up(held.lane);
        !self.held.iter().all(is_served) || self.missing.iter().any(|member| member.is_up())
    }

    /// Notes the servers that are down while the client subscribes.
    pub(super) fn note_missing(&mut self, reach: &[Arc<Member>]) {
        self.missing.clear();
        self.missing
            .extend(reach.iter().filter(|member| !member.is_up()).map(Arc::clone));
    }

    /// All subscriptions of the client.
    pub(super) fn totals(&self) -> SubscriptionCounts {
        self.totals
    }

    /// Has the client any subscription?
    pub(super) fn is_any(&self) -> bool {
        !self.totals.is_zero()
    }

    /// Does the client hold no connection?
    pub(super) fn is_bare(&self) -> bool {
        self.held.is_empty()
    }

    /// Bytes of memory that they take.
    pub(super) fn holds(&self) -> usize {
        let change = self.change.as_ref().map_or(0, Change::holds);
        self.held.capacity() * size_of::<Held>() + change
    }

    /// The connections.
    pub(super) fn lanes(&self) -> impl Iterator<Item = LaneId> {
        self.held.iter().map(|held| held.lane)
    }

    /// The server with the greatest number to which the client has a connection.
    pub(super) fn last_held(&self) -> Option<MemberId> {
        self.held.last().map(|held| held.member)
    }

    /// The connection to this server.
    pub(super) fn lane_to(&self, member: MemberId) -> Option<LaneId> {
        let at = self.find(member).ok()?;
        self.held.get(at).map(|held| held.lane)
    }

    fn find(&self, member: MemberId) -> Result<usize, usize> {
        self.held.binary_search_by_key(&member, |held| held.member)
    }

    /// The next server of the change under way to which there is no connection.
    pub(super) fn lacking(&mut self) -> Option<Arc<Member>> {
        let is_held = |member: MemberId| {
            self.held
                .binary_search_by_key(&member, |held| held.member)
                .is_ok()
        };
        self.change.as_mut()?.lacking(&is_held)
    }

    /// Adds a connection, on which nothing is subscribed yet.
    pub(super) fn hold(&mut self, member: MemberId, lane: LaneId) {
        if let Err(at) = self.find(member) {
            let counts = SubscriptionCounts::default();
            self.held.insert(at, Held { member, lane, counts });
        }
    }

    /// The servers with subscriptions of this kind, each with their number and the connection.
    pub(super) fn with(&self, subject: Subject) -> impl Iterator<Item = (LaneId, u32)> {
        let counted = move |held: &Held| (held.lane, held.counts.of(subject));
        self.held.iter().map(counted).filter(|&(_, count)| count > 0)
    }

    /// Gives up the connections without subscriptions, and returns them.
    pub(super) fn release(&mut self) -> Vec<LaneId> {
        let is_free = |held: &mut Held| held.counts.is_zero();
        self.held.extract_if(.., is_free).map(|held| held.lane).collect()
    }

    /// Returns whether a message from this server belongs behind confirmations that have not left.
    pub(super) fn holds_back(&self, member: MemberId) -> bool {
        self.change
            .as_ref()
            .is_some_and(|change| change.has_begun(member))
    }

    /// Returns whether this server has still to confirm names of the change under way.
    pub(super) fn is_confirming(&self, member: MemberId) -> bool {
        self.change
            .as_ref()
            .is_some_and(|change| change.is_confirming(member))
    }

    /// Takes a server's confirmation, which is in `message`. Each confirmation whose turn it is goes to
    /// `tell`, with the name and the count. `None`: the server was asked for no such thing.
    pub(super) fn confirmed(
        &mut self,
        member: MemberId,
        confirmation: &Confirmation,
        message: &[u8],
        tell: &mut dyn FnMut(Option<&[u8]>, u32),
    ) -> Option<Progress> {
        let at = self.find(member).ok()?;
        let held = self.held.get_mut(at)?;
        let change = self.change.as_mut()?;
        let delta = held.counts.confirm(confirmation)?;
        change.confirmed(member, (confirmation, message, delta), &mut self.totals, tell)
    }
}
