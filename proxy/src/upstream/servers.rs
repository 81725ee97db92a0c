//! The connections of a worker to servers.

use std::net::SocketAddr;

use super::{Lane, LaneId, Lanes, Logins, Phase};
use crate::{
    client::ClientId, members::Member, metrics::Metrics, micros::Micros, route::ReplyTo, stream::Stream,
    table::Table,
};

/// What a worker knows of its connections to servers.
#[derive(Default)]
pub struct Servers {
    pub(super) lanes: Table<Lane>,
    /// Which lanes each member has, by member number.
    pub(super) by_member: Vec<Lanes>,
    /// As whom lanes log in.
    pub(super) logins: Logins,
    /// Requests sent to servers and not answered.
    pub(super) in_flight: usize,
    /// Lanes that are not read because their reader is slow.
    pub(super) held_lanes: usize,
    /// Requests that wait for a lane of their client's own.
    pub(super) queued: usize,
    /// The client whose upload is being dispatched.
    pub(super) uploader: Option<ClientId>,
    /// Bulk lanes that its upload was given.
    pub(super) uploads: Vec<LaneId>,
}

impl Servers {
    /// A lane.
    pub fn lane(&self, id: LaneId) -> Option<&Lane> {
        self.lanes.get(id)
    }

    /// All lanes.
    pub fn lanes(&self) -> impl Iterator<Item = (LaneId, &Lane)> {
        self.lanes.iter()
    }

    /// The bytes of a lane's connection.
    pub fn stream(&mut self, id: LaneId) -> Option<&mut Stream> {
        self.lanes.get_mut(id).map(|lane| &mut lane.stream)
    }

    /// Is this a lane whose connection is still being made?
    pub fn is_connecting(&self, id: LaneId) -> bool {
        let lane = self.lanes.get(id);
        lane.is_some_and(|lane| matches!(lane.phase, Phase::Connecting))
    }

    /// Our end of a lane's connection, by which the server of a copy lists it.
    pub fn note_address(&mut self, id: LaneId, local: Option<SocketAddr>) {
        if let Some(lane) = self.lanes.get_mut(id) {
            lane.local = local;
        }
    }

    /// Requests sent to servers and not answered.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Does anything wait for a server?
    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        self.in_flight > 0 || self.queued > 0
    }

    /// Does the server of this lane answer what it was asked whenever it likes?
    pub(crate) fn is_blocked(&self, id: LaneId) -> bool {
        let first = self.lanes.get(id).and_then(|lane| lane.waiters.front());
        first.is_some_and(|waiter| waiter.extra_time == u32::MAX)
    }

    /// Is there a copy with a change that it has not answered?
    pub(crate) fn leaves_unanswered(&self) -> bool {
        self.lanes
            .iter()
            .any(|(_, lane)| lane.member.is_copy() && lane.waiters.iter().any(|waiter| waiter.changes))
    }

    /// Is any server held back because its reader is slow?
    #[inline]
    pub fn holds_lanes(&self) -> bool {
        self.held_lanes > 0
    }

    /// Bytes of memory that lanes and those who wait for one take.
    pub(crate) fn holds(&self) -> usize {
        let lanes: usize = self.lanes.iter().map(|(_, lane)| lane.holds()).sum();
        let queues = self.by_member.iter().filter_map(|lanes| lanes.dedicated.as_ref());
        lanes + queues.map(|dedicated| dedicated.holds()).sum::<usize>()
    }

    /// Fills in the gauges about lanes.
    pub(crate) fn report(&self, metrics: &mut Metrics) {
        metrics.open_lanes = self.lanes.len() as u64;
        metrics.in_flight = self.in_flight as u64;
        for (_, lane) in self.lanes.iter() {
            let member = metrics.member(lane.member.id);
            member.lanes += 1;
            member.waiting += lane.waiters.len() as u64;
        }
    }

    /// The first of these members that has no place for one more large message, which is a request that is here whole, or comes
    /// as it comes. That a place was wanted is noted.
    pub(crate) fn find_full<'a>(
        &mut self,
        members: impl IntoIterator<Item = &'a Member>,
        is_whole: bool,
        now: Micros,
    ) -> Option<&'a Member> {
        let by_member = &mut self.by_member;
        members.into_iter().find(|member| {
            let lanes = by_member.get_mut(member.id.0 as usize);
            lanes.is_some_and(|lanes| {
                let is_full = lanes.is_full(is_whole);
                if is_full {
                    lanes.wanted = Some(now);
                }
                is_full
            })
        })
    }

    /// What is streamed from here on is this client's.
    pub(crate) fn begin_upload(&mut self, client: ClientId) {
        self.uploads.clear();
        self.uploader = Some(client);
    }

    /// The lanes that what was streamed since then was given.
    pub(crate) fn upload_lanes(&mut self) -> Vec<LaneId> {
        self.uploader = None;
        std::mem::take(&mut self.uploads)
    }

    /// Forgets those of these lanes that have ended. True: one of the others has so many bytes to send that its client waits.
    pub(crate) fn is_slow(&mut self, lanes: &mut Vec<LaneId>, high_water: usize) -> bool {
        lanes.retain(|&lane| self.lanes.get(lane).is_some());
        lanes.iter().any(|&lane| {
            let lane = self.lanes.get_mut(lane);
            lane.is_some_and(|lane| lane.requests().len() >= high_water)
        })
    }

    /// The lanes whose next reply is for this request.
    pub(crate) fn awaiting(&self, to: ReplyTo) -> Vec<LaneId> {
        let waits = |lane: &Lane| lane.waiters.front().is_some_and(|waiter| waiter.to == to);
        let lanes = self.lanes.iter().filter(|(_, lane)| waits(lane));
        lanes.map(|(id, _)| id).collect()
    }
}
