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
    lanes: Vec<SubscriptionLane>,
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
struct SubscriptionLane {
    member: MemberId,
    lane: LaneId,
    counts: SubscriptionCounts,
}

/// The progress of a change after a confirmation.
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
            lanes: Vec::new(),
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
        let is_served = |lane: &SubscriptionLane| is_up(lane.lane);
        !self.lanes.iter().all(is_served) || self.missing.iter().any(|member| member.is_up())
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

    /// Has the client no connection with subscriptions?
    pub(super) fn is_bare(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Bytes of memory that they take.
    pub(super) fn memory_bytes(&self) -> usize {
        let change = self.change.as_ref().map_or(0, Change::memory_bytes);
        self.lanes.capacity() * size_of::<SubscriptionLane>() + change
    }

    /// The connections.
    pub(super) fn lanes(&self) -> impl Iterator<Item = LaneId> {
        self.lanes.iter().map(|lane| lane.lane)
    }

    /// The server with the greatest number to which the client has a connection.
    pub(super) fn last_server(&self) -> Option<MemberId> {
        self.lanes.last().map(|lane| lane.member)
    }

    /// The connection to this server.
    pub(super) fn lane_to(&self, member: MemberId) -> Option<LaneId> {
        let at = self.find(member).ok()?;
        self.lanes.get(at).map(|lane| lane.lane)
    }

    fn find(&self, member: MemberId) -> Result<usize, usize> {
        self.lanes.binary_search_by_key(&member, |lane| lane.member)
    }

    /// The next server of the change under way to which there is no connection.
    pub(super) fn lacking(&mut self) -> Option<Arc<Member>> {
        let has_lane = |member: MemberId| {
            self.lanes
                .binary_search_by_key(&member, |lane| lane.member)
                .is_ok()
        };
        self.change.as_mut()?.lacking(&has_lane)
    }

    /// Adds a connection, on which nothing is subscribed yet.
    pub(super) fn add_lane(&mut self, member: MemberId, lane: LaneId) {
        if let Err(at) = self.find(member) {
            let counts = SubscriptionCounts::default();
            self.lanes.insert(at, SubscriptionLane { member, lane, counts });
        }
    }

    /// The servers with subscriptions of this kind, each with their number and the connection.
    pub(super) fn with(&self, subject: Subject) -> impl Iterator<Item = (LaneId, u32)> {
        let counted = move |lane: &SubscriptionLane| (lane.lane, lane.counts.of(subject));
        self.lanes.iter().map(counted).filter(|&(_, count)| count > 0)
    }

    /// Gives up the connections without subscriptions, and returns them.
    pub(super) fn release(&mut self) -> Vec<LaneId> {
        let is_free = |lane: &mut SubscriptionLane| lane.counts.is_zero();
        self.lanes.extract_if(.., is_free).map(|lane| lane.lane).collect()
    }

    /// Returns whether this server has begun to confirm the change under way: its messages belong behind
    /// confirmations that have not left.
    pub(super) fn is_change_begun(&self, member: MemberId) -> bool {
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
    /// `tell`, with the name and the count. `None` if the server was not asked for this.
    pub(super) fn confirmed(
        &mut self,
        member: MemberId,
        confirmation: &Confirmation,
        message: &[u8],
        tell: &mut dyn FnMut(Option<&[u8]>, u32),
    ) -> Option<Progress> {
        let at = self.find(member).ok()?;
        let lane = self.lanes.get_mut(at)?;
        let change = self.change.as_mut()?;
        let delta = lane.counts.confirm(confirmation)?;
        change.confirmed(member, (confirmation, message, delta), &mut self.totals, tell)
    }
}
