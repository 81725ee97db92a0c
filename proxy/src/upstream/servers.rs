//! A worker's connections to servers.

use std::{net::SocketAddr, sync::Arc};

use super::{Askers, Closing, Lane, Lanes, Logins, Phase, Waiter};
use crate::{
    engine::{ClientId, LaneId, ReplyTo},
    members::{Member, MemberId},
    metrics::Metrics,
    micros::Micros,
    protocol::PrecedingRequest,
    stream::Stream,
    table::Table,
};

/// All lanes of one worker, with their counters.
#[derive(Default)]
pub struct Servers {
    pub(super) lanes: Table<Lane>,
    /// The lanes to each member, by the member's number.
    pub(super) by_member: Vec<Lanes>,
    /// The logins that lanes use.
    pub(super) logins: Logins,
    /// Requests that were sent to servers and have no reply yet.
    pub(super) in_flight: usize,
    /// Lanes that are not read because their reader is slow.
    pub(super) paused_lanes: usize,
    /// Those of them that belong to one client.
    pub(super) paused_own: usize,
    /// Lanes of clients that are read on in this turn, as their clients may take more.
    pub(super) woken: Vec<LaneId>,
    /// Requests that wait for a dedicated lane.
    pub(super) queued: usize,
    /// Dedicated lanes to all servers.
    pub(super) dedicated: usize,
    /// Commands so far that let their clients wait.
    pub(super) arrivals: u64,
    /// The client whose upload is being dispatched.
    pub(super) uploader: Option<ClientId>,
    /// Bulk lanes that this upload was given.
    pub(super) uploads: Vec<LaneId>,
    /// The upload that is being dispatched waits for a dedicated lane.
    pub(super) upload_waits: bool,
    /// Questions of pools' own that are under way.
    pub(super) askers: Askers,
    /// Requests that wait to be sent, by which something is ended.
    pub(super) cancels: usize,
    /// Orders to close connections that have not been carried out to their end.
    pub(super) closings: Vec<Closing>,
    /// Scratch space for what goes before a request.
    pub(super) before: Vec<PrecedingRequest>,
    /// Scratch space for the end of a reply that its client reads in place of the server's.
    pub(super) ending: Vec<u8>,
}

impl Servers {
    /// The login of this number, in the codec's words.
    pub(crate) fn login_words(&self, login: u16) -> Arc<[u8]> {
        self.logins.words(login)
    }

    /// The lane with this handle; `None` if the lane has ended.
    pub fn lane(&self, id: LaneId) -> Option<&Lane> {
        self.lanes.get(id)
    }

    /// All lanes.
    pub fn lanes(&self) -> impl Iterator<Item = (LaneId, &Lane)> {
        self.lanes.iter()
    }

    /// The byte stream of a lane; `None`: the lane has ended.
    pub fn stream(&mut self, id: LaneId) -> Option<&mut Stream> {
        self.lanes.get_mut(id).map(|lane| &mut lane.stream)
    }

    /// Is the connection of this lane still being made?
    pub fn is_connecting(&self, id: LaneId) -> bool {
        let lane = self.lanes.get(id);
        lane.is_some_and(|lane| matches!(lane.phase, Phase::Connecting))
    }

    /// Notes the local address of a lane's connection, by which the server of a copy lists it.
    pub fn note_address(&mut self, id: LaneId, local: Option<SocketAddr>) {
        if let Some(lane) = self.lanes.get_mut(id) {
            lane.local = local;
        }
    }

    /// Requests that were sent to servers and have no reply yet.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Does any request wait for a server, or to be sent to one?
    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        self.in_flight > 0 || self.queued > 0 || self.cancels > 0
    }

    /// Does any dedicated lane have to end in time, or be given to another worker that wants it?
    #[inline]
    pub(crate) fn has_dedicated(&self) -> bool {
        self.dedicated > 0
    }

    /// Does this member serve requests on any lane?
    pub(super) fn serves_otherwise(&self, member: MemberId) -> bool {
        let mut lanes = self.lanes.iter();
        lanes.any(|(_, lane)| lane.member.id == member && lane.is_proven())
    }

    /// May the server of this lane let its client wait for what it has asked last?
    pub(crate) fn lets_wait(&self, id: LaneId) -> bool {
        let first = self.lanes.get(id).and_then(|lane| lane.waiters.first());
        first.is_some_and(|waiter| waiter.extra_time > 0)
    }

    /// Does the server of this lane let its client wait, since `before` or earlier?
    pub(crate) fn is_blocked(&self, id: LaneId, before: Micros) -> bool {
        self.lanes.get(id).is_some_and(|lane| lane.is_blocked(before))
    }

    /// The clients whose servers have let them wait since `before` or earlier.
    pub(crate) fn blocked(&self, before: Micros) -> impl Iterator<Item = ClientId> {
        let lanes = self.lanes.iter().filter(|(_, lane)| lane.dedicated);
        lanes
            .filter(move |(_, lane)| lane.is_blocked(before))
            .filter_map(|(_, lane)| lane.owner)
    }

    /// Does any copy have a change that it has not answered?
    pub(crate) fn leaves_unanswered(&self) -> bool {
        self.lanes.iter().any(|(_, lane)| {
            lane.member.is_copy() && lane.waiters.iter().any(|waiter| waiter.effects.change_copy())
        })
    }

    /// Takes away the answers that copies still owe to readers: the destination of each, its command, and the
    /// copy.
    pub(crate) fn take_reads_of_copies(&mut self) -> Vec<(ReplyTo, u16, Arc<Member>)> {
        let is_read = |waiter: &Waiter| {
            let is_looked_at = matches!(
                waiter.to,
                ReplyTo::Client { .. } | ReplyTo::Flight { .. } | ReplyTo::Peer { .. }
            );
            !waiter.effects.change_copy() && is_looked_at
        };
        let mut taken = Vec::new();
        let lanes = self.lanes.iter_mut().filter(|(_, lane)| lane.member.is_copy());
        for (_, lane) in lanes {
            for waiter in lane.waiters.iter_mut().filter(|waiter| is_read(waiter)) {
                let to = std::mem::replace(&mut waiter.to, ReplyTo::Nobody);
                taken.push((to, waiter.command, Arc::clone(&lane.member)));
            }
        }
        taken
    }

    /// Is any lane paused because its reader is slow?
    #[inline]
    pub fn has_paused_lanes(&self) -> bool {
        self.paused_lanes > 0
    }

    /// Bytes of memory that lanes and the requests queued for them take.
    pub(crate) fn memory_bytes(&self) -> usize {
        let lanes: usize = self.lanes.iter().map(|(_, lane)| lane.memory_bytes()).sum();
        let queues = self.by_member.iter().filter_map(|lanes| lanes.dedicated.as_ref());
        let cancels = self.by_member.iter().filter_map(|lanes| lanes.cancels.as_ref());
        lanes
            + queues.map(|dedicated| dedicated.queue_memory()).sum::<usize>()
            + cancels.map(|cancels| cancels.memory()).sum::<usize>()
    }

    /// Fills in the gauges of lanes.
    pub(crate) fn report(&self, metrics: &mut Metrics) {
        metrics.open_lanes = self.lanes.len() as u64;
        metrics.in_flight = self.in_flight as u64;
        for (number, lanes) in self.by_member.iter().enumerate() {
            if let Some(dedicated) = &lanes.dedicated {
                let member = metrics.member(MemberId(number as u32));
                member.dedicated += dedicated.in_use() as u64;
                member.dedicated_idle += dedicated.idle_count() as u64;
                member.dedicated_queued += dedicated.queue.len() as u64;
            }
        }
        for (_, lane) in self.lanes.iter() {
            let member = metrics.member(lane.member.id);
            member.lanes += 1;
            let waiting = lane.waiters.len() as u64;
            member.waiting += waiting;
            member.sent_bytes += lane.given;
            member.unsent_bytes += lane.unsent() as u64;
            if matches!(lane.phase, Phase::Ready) {
                member.received_bytes += lane.received;
            } else {
                member.held += waiting;
                member.held_bytes += lane.held.len() as u64;
            }
        }
        for member in &mut metrics.members {
            let has_had = member.closed + member.broken + member.timed_out + member.idle > 0;
            member.workers = u64::from(member.lanes > 0);
            member.former_workers = u64::from(member.lanes == 0 && has_had);
        }
    }

    /// Returns the first of these members that has no seat for one more large message, and notes that a
    /// seat was wanted. `is_whole`: the message is a request that has arrived completely.
    pub(crate) fn find_full<'a>(
        &mut self,
        members: impl IntoIterator<Item = &'a Member>,
        is_whole: bool,
        now: Micros,
    ) -> Option<&'a Member> {
        let by_member = &mut self.by_member;
        members.into_iter().find(|member| {
            let lanes = by_member.get_mut(member.id.0 as usize);
            lanes.is_some_and(|Lanes { bulk, .. }| {
                let is_full = bulk.is_full(is_whole);
                if is_full {
                    bulk.wanted = Some(now);
                }
                is_full
            })
        })
    }

    /// Begins an upload: large requests that are sent from now on belong to this client.
    pub(crate) fn begin_upload(&mut self, client: ClientId) {
        self.uploads.clear();
        self.uploader = Some(client);
    }

    /// Ends the dispatch of the upload. Returns the lanes that it was given.
    pub(crate) fn upload_lanes(&mut self) -> Vec<LaneId> {
        self.uploader = None;
        std::mem::take(&mut self.uploads)
    }

    /// Notes that the upload that is being dispatched waits for its pool.
    pub(crate) fn hold_upload(&mut self) {
        self.upload_waits = true;
    }

    /// Returns whether the upload that was dispatched waits for a dedicated lane.
    pub(crate) fn upload_waits(&mut self) -> bool {
        std::mem::take(&mut self.upload_waits)
    }

    /// Removes the lanes that have ended. Returns true if one of the others has `high_water` bytes or more to
    /// send.
    pub(crate) fn is_slow(&mut self, lanes: &mut Vec<LaneId>, high_water: usize) -> bool {
        lanes.retain(|&lane| self.lanes.get(lane).is_some());
        lanes.iter().any(|&lane| {
            let lane = self.lanes.get_mut(lane);
            lane.is_some_and(|lane| lane.requests().len() >= high_water)
        })
    }

    /// The lanes whose next reply is for this request.
    pub(crate) fn awaiting(&self, to: ReplyTo) -> Vec<LaneId> {
        let waits = |lane: &Lane| lane.waiters.first().is_some_and(|waiter| waiter.to == to);
        let lanes = self.lanes.iter().filter(|(_, lane)| waits(lane));
        lanes.map(|(id, _)| id).collect()
    }
}
