//! Lanes that carry one large message at a time, as it comes.

use std::sync::Arc;

use crate::{
    engine::{Engine, LaneId},
    members::Member,
    micros::Micros,
};

/// The most bulk lanes of one worker to one member.
pub const BULK_LANES: usize = 4;
/// The most bulk lanes that pass on messages as they come. The remaining one is kept for requests that have
/// arrived completely: such a request waits for servers only, however many clients send or read slowly.
pub const STREAMED: usize = BULK_LANES - 1;

/// The most idle bulk lanes that are kept for later large messages.
const IDLE: usize = 1;

/// A worker's bulk lanes to one member.
#[derive(Debug, Default)]
pub(in crate::upstream) struct Bulk {
    /// All of them, busy or idle.
    count: u32,
    /// Those that wait for work.
    idle: Vec<LaneId>,
    /// The time at which a large message last found no seat.
    pub(in crate::upstream) wanted: Option<Micros>,
}

impl Bulk {
    /// Is there no seat for one more large message? `is_whole`: the message is a request that has arrived
    /// completely.
    pub(in crate::upstream) fn is_full(&self, is_whole: bool) -> bool {
        let seats = if is_whole { BULK_LANES } else { STREAMED };
        self.count as usize - self.idle.len() >= seats
    }

    /// A lane has ended. `is_bulk`: it was one of these.
    pub(in crate::upstream) fn forget(&mut self, id: LaneId, is_bulk: bool) {
        self.idle.retain(|&idle| idle != id);
        self.count = self.count.saturating_sub(u32::from(is_bulk));
    }
}

impl Engine {
    /// A lane for one large message to this member with this login: an idle one or a fresh one.
    pub(in crate::upstream) fn bulk_lane(&mut self, member: &Arc<Member>, login: u16) -> LaneId {
        self.lanes_of(member);
        let lanes = &mut self.servers.by_member[member.id.0 as usize].bulk;
        let is_its = |&idle: &LaneId| {
            self.servers
                .lanes
                .get(idle)
                .is_some_and(|lane| lane.login == login)
        };
        if let Some(at) = lanes.idle.iter().position(is_its) {
            return lanes.idle.swap_remove(at);
        }
        // An idle lane with another login is of no use here, and takes a seat.
        if lanes.count as usize >= BULK_LANES
            && let Some(other) = lanes.idle.pop()
        {
            self.drop_lane(other, "");
        }
        let id = self.open_lane(member, login, true);
        self.lanes_of(member).bulk.count += 1;
        id
    }

    /// Makes this lane a bulk lane for its client; new requests take a fresh lane. Returns false if the
    /// member has no seat for one more bulk lane.
    pub(in crate::upstream) fn make_bulk(&mut self, id: LaneId) -> bool {
        let Some(lane) = self.servers.lanes.get(id) else {
            return false;
        };
        if lane.bulk || lane.dedicated {
            return true;
        }
        let number = lane.member.id.0 as usize;
        if self.servers.by_member[number].bulk.is_full(false) {
            self.servers.by_member[number].bulk.wanted = Some(self.now);
            return false;
        }
        if self.servers.by_member[number].bulk.count as usize >= BULK_LANES
            && let Some(idle) = self.servers.by_member[number].bulk.idle.pop()
        {
            self.drop_lane(idle, "");
        }
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return false;
        };
        lane.bulk = true;
        let lanes = &mut self.servers.by_member[number];
        lanes.shared.unset(lane.login);
        lanes.bulk.count += 1;
        true
    }

    /// A lane has finished a message. A bulk lane becomes the shared lane, waits for the next large message,
    /// or is closed.
    pub(in crate::upstream) fn settle_bulk(&mut self, id: LaneId) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        if !lane.bulk || !lane.is_unused() {
            return;
        }
        let lanes = &mut self.servers.by_member[lane.member.id.0 as usize];
        if lanes.shared.get(lane.login).is_none() {
            lanes.shared.set(lane.login, id);
            lane.bulk = false;
            lanes.bulk.count = lanes.bulk.count.saturating_sub(1);
        } else if lanes.bulk.idle.len() < IDLE && !lanes.bulk.idle.contains(&id) {
            lanes.bulk.idle.push(id);
        } else if !lanes.bulk.idle.contains(&id) {
            self.drop_lane(id, "");
        }
        self.wake_uploads();
    }
}
