//! Messages that no request has asked for, on their way to the client that owns the lane.
//!
//! Invariant: a message may be as long as a server makes it, and takes little memory. It is passed on in
//! parts, and a lane of a client is not read while more than [`HIGH_WATER`](crate::client::HIGH_WATER) bytes
//! wait for that client. A client is therefore closed because it takes nothing for a time, and not because of
//! what it is sent.
//!
//! Invariant: bytes that have come for clients and were not passed on are charged to them at once, and no
//! lane of a client is read while clients take all memory but the reserve (`room.rs`).
//!
//! Invariant: a message without an end ends its own connection. It is bounded in bytes, and it must go on.

use proxima_wire::message::Outcome;

use super::{Lane, Pace};
use crate::{
    client::{LaneEvent, WHOLE},
    engine::{ClientId, Engine, LaneId},
    members::Failure,
    micros::Micros,
    protocol::MALFORMED,
};

/// The longest message, in bytes: a string of a server and what belongs to it.
const LONGEST: u64 = (512 << 20) + WHOLE;
/// A server that has begun a message sends at least this many bytes of it in each time-out.
const LEAST: u64 = WHOLE;
/// An empty read buffer up to this size is kept for the lane's next bytes.
const KEPT: usize = 16 * 1024;

impl Engine {
    /// Returns whether the client that owns this lane takes the next message. If not, the lane waits for it.
    pub(super) fn owner_takes(&mut self, id: LaneId) -> bool {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return false;
        };
        let Some(owner) = lane.owner else {
            return true;
        };
        let takes = self
            .clients
            .takes_from(owner, id, lane.member.id, lane.waits_for());
        lane.waits_for_owner = !takes;
        if !takes {
            self.pause_lane(id, true);
        }
        takes
    }

    /// Returns whether what has come on this lane waits until its owner takes more.
    pub(super) fn waits_for_owner(&self, id: LaneId) -> bool {
        let lane = self.servers.lanes.get(id);
        lane.is_some_and(|lane| lane.waits_for_owner)
    }

    /// Takes a part of a message that no request has asked for. On a shared lane it is for no client.
    pub(super) fn push_part(&mut self, id: LaneId, bytes: &[u8], is_last: bool) {
        let now = self.now;
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        if lane.pushed == 0 {
            lane.pace = Pace::since(now);
        }
        lane.pace.moved(bytes.len() as u64);
        lane.pushed += bytes.len() as u64;
        let most = lane.owner.map_or(WHOLE, |_| LONGEST);
        if lane.pushed > most {
            return self.fail_lane(id, Failure::Garbage, Outcome::ConnectError, MALFORMED);
        }
        let is_first = lane.pushed == bytes.len() as u64;
        if is_last {
            lane.pushed = 0;
            lane.free = now;
        }
        let (owner, member) = (lane.owner, lane.member.id);
        let collects = !lane.confirmation.is_empty();
        let Some(owner) = owner else { return };
        if collects || is_first && self.clients.confirms(owner, id, member, bytes) {
            return self.collect_confirmation(id, bytes, is_last);
        }
        if !self.push_part_to_client(owner, (id, member), bytes, is_last) {
            return self.close_slow(owner);
        }
        if is_last {
            // The server may have ended what it kept for the client meanwhile.
            self.settle_lane(id);
        }
    }

    /// Puts a long confirmation together: it is counted, and not passed on.
    fn collect_confirmation(&mut self, id: LaneId, bytes: &[u8], is_last: bool) {
        let most = WHOLE.max(self.clients.share() as u64);
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        lane.confirmation.extend_from_slice(bytes);
        if lane.confirmation.len() as u64 > most {
            self.tell_owner(id, LaneEvent::Overwhelmed);
        } else if is_last {
            let whole = std::mem::take(&mut lane.confirmation);
            self.push(id, &whole);
        }
    }

    /// Has the lanes of this client read on: it has taken what waited for it.
    pub(super) fn wake_own_lanes(&mut self, client: ClientId) {
        let Some(lanes) = self.clients.lanes_of(client) else {
            return;
        };
        for id in lanes {
            self.wake_lane(id);
        }
    }

    /// Resumes all paused lanes of clients.
    pub(crate) fn wake_all_own_lanes(&mut self) {
        if self.servers.paused_own == 0 {
            return;
        }
        let is_held = |lane: &Lane| lane.dedicated && lane.stream.paused;
        let lanes = self.servers.lanes.iter().filter(|(_, lane)| is_held(lane));
        let held: Vec<LaneId> = lanes.map(|(id, _)| id).collect();
        for id in held {
            self.wake_lane(id);
        }
    }

    fn wake_lane(&mut self, id: LaneId) {
        if let Some(lane) = self.servers.lanes.get_mut(id)
            && lane.stream.paused
            && !std::mem::replace(&mut lane.is_woken, true)
        {
            self.servers.woken.push(id);
        }
    }

    /// Goes on with the lanes of clients that may take more: first with what has come already.
    pub fn read_on(&mut self) {
        for id in std::mem::take(&mut self.servers.woken) {
            let Some(lane) = self.servers.lanes.get_mut(id) else {
                continue;
            };
            (lane.is_woken, lane.waits_for_owner) = (false, false);
            let mut read_buffer = std::mem::take(&mut lane.stream.read_buffer);
            let used = self.replies(id, &read_buffer);
            if let Some(lane) = self.servers.lanes.get_mut(id) {
                read_buffer.drain(..used.min(read_buffer.len()));
                lane.stream.read_buffer = read_buffer;
            }
            self.charge_lane(id);
            let lane = self.servers.lanes.get(id);
            if lane.is_some_and(|lane| !lane.waits_for_owner) && self.owner_takes(id) {
                self.pause_lane(id, false);
            }
        }
    }

    /// Returns whether lanes wait to be read on in the next turn.
    pub fn has_woken_lanes(&self) -> bool {
        !self.servers.woken.is_empty()
    }

    /// Charges the client that owns this lane for what has come on it. If clients then take all memory but
    /// the reserve, no lane of a client is read any more.
    pub(super) fn charge_lane(&mut self, id: LaneId) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        let Some(owner) = lane.owner else { return };
        let buffer = &mut lane.stream.read_buffer;
        if buffer.is_empty() && buffer.capacity() > KEPT {
            *buffer = Vec::new();
        }
        let bytes = buffer.capacity() + lane.parts.capacity() + lane.confirmation.capacity();
        let before = std::mem::replace(&mut lane.charged, bytes);
        self.clients.charge_for_lane(owner, before, bytes);
        if self.clients.closes_gate(self.now) {
            let lanes = self.servers.lanes.iter();
            let read = lanes.filter(|(_, lane)| lane.owner.is_some() && !lane.stream.paused);
            let read: Vec<LaneId> = read.map(|(id, _)| id).collect();
            for id in read {
                self.pause_lane(id, true);
            }
        }
    }

    /// Takes a lane, which ends or gets another owner, from what its client is charged.
    pub(super) fn discharge_lane(&mut self, owner: ClientId, charged: usize) {
        self.clients.charge_for_lane(owner, charged, 0);
    }
}

impl Lane {
    /// Does a message that no request has asked for come too slowly, now that this limit has passed?
    pub(super) fn pushes_slowly(&mut self, now: Micros, limit: Micros) -> bool {
        self.pushed > 0 && self.pace.stalls(now, limit, LEAST)
    }
}
