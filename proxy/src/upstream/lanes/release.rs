//! The end of a client's use of a dedicated lane: the lane is reset, given to another client, or closed.

use std::sync::Arc;

use super::{close::CLOSED, dedicated::Idle};
use crate::{
    client::LaneEvent,
    engine::{Endpoint, Engine, LaneId, ReplyTo},
    micros::Micros,
    protocol::Retention,
    route::Answer,
    upstream::{Close, Lane, Trial, Waiter},
};

impl Engine {
    /// A dedicated lane has no request in flight: it is returned to the idle lanes, if the server keeps no
    /// state.
    pub(crate) fn give_back(&mut self, id: LaneId) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        let Some(owner) = lane.owner else {
            return;
        };
        if !lane.is_unused() || lane.is_streaming() {
            return;
        }
        let (ends, moves) = (
            lane.closes == Some(Close::AfterReply),
            lane.closes == Some(Close::ForGood),
        );
        let lanes = self.servers.by_member[lane.member.id.0 as usize]
            .dedicated
            .as_ref();
        let is_wanted = lanes.is_some_and(|lanes| !lanes.queue.is_empty());
        if self.clients.is_subscribed_on(owner, lane.member.id, id) {
            return;
        }
        match self.clients.retention(owner) {
            None => return self.drop_lane(id, ""),
            Some(Retention::Kept) if !ends => return,
            Some(Retention::Brief) if !ends => return self.note_passing(id),
            Some(Retention::Loose | Retention::Firm) if !ends && !moves && !is_wanted => {
                return self.note_passing(id);
            }
            Some(Retention::Loose | Retention::Firm | Retention::Brief) => {
                self.tell_owner(id, LaneEvent::Released);
            }
            Some(Retention::Kept) => return self.drop_lane(id, CLOSED),
            Some(Retention::Dirty) => {
                self.tell_owner(id, LaneEvent::Released);
                return self.reset_lane(id);
            }
            Some(Retention::Spoilt) => {
                // The client's next dedicated request gets another lane.
                self.tell_owner(id, LaneEvent::Released);
                return self.drop_lane(id, "");
            }
            Some(Retention::Moved) => {
                self.tell_owner(id, LaneEvent::Released);
                let Some(login) = self.login_of(owner) else {
                    return self.drop_lane(id, "");
                };
                self.servers.move_lane(id, login);
            }
            Some(Retention::Clean) => self.tell_owner(id, LaneEvent::Freed),
        }
        self.free_lane(id);
    }

    /// Takes a dedicated lane from its client.
    pub(super) fn disown(&mut self, id: LaneId) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        let charged = std::mem::take(&mut lane.charged);
        if let Some(owner) = lane.owner.take() {
            self.discharge_lane(owner, charged);
        }
        self.pause_lane(id, false);
        if let Some(lane) = self.servers.lanes.get_mut(id) {
            lane.waits_for_owner = false;
        }
    }

    /// Has the server forget what it keeps of the lane's last client. The lane belongs to no client until
    /// that is answered.
    fn reset_lane(&mut self, id: LaneId) {
        self.disown(id);
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        let out = lane.stream.filling(&mut self.buffers);
        let begun = out.len();
        let Some(command) = lane.member.protocol.reset(&mut lane.state, out) else {
            return self.drop_lane(id, "");
        };
        let size = out.len() - begun;
        lane.waiters.push(Waiter {
            to: ReplyTo::Lane { lane: id },
            command,
            at: lane.given as u32,
            sent: self.now,
            trial: Trial::Large,
            ..Waiter::NOBODY
        });
        lane.given += size as u64;
        lane.resets = true;
        self.servers.in_flight += 1;
        self.metrics.sent_own(lane.member.pool.id, command);
        self.flush_later(Endpoint::Lane(id));
    }

    /// The server has answered on a lane of which it is asked something for the lane itself: that it forgets
    /// its last client, or that it proves something.
    pub(crate) fn lane_answered(&mut self, id: LaneId, answer: &Answer<'_>) {
        match self.servers.lanes.get_mut(id) {
            Some(lane) if lane.resets => {
                lane.resets = false;
                match answer.outcome().is_error() {
                    true => self.drop_lane(id, "it cannot be reset"),
                    false => self.free_lane(id),
                }
            }
            _ => self.proved(id, answer),
        }
    }

    /// Returns a dedicated lane, on which the server keeps nothing, to the idle ones.
    pub(crate) fn free_lane(&mut self, id: LaneId) {
        let former = self.servers.lanes.get(id).and_then(|lane| lane.owner);
        self.disown(id);
        let Some(lane) = self.servers.lanes.get(id) else {
            return;
        };
        let member = Arc::clone(&lane.member);
        if lane.closes.is_some() || !self.tree.names(member.id) || self.must_give_up(&member) {
            return self.drop_lane(id, "");
        }
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        if lane.cancels > 0 {
            // It belongs to no client until the server has answered: its client goes on elsewhere.
            return;
        }
        lane.free = self.now;
        self.dedicated_of(&member).idle.push(Idle { lane: id, former });
        self.give_lanes(&member);
    }

    /// A dedicated lane has ended: the state that the server kept for its client is lost.
    pub(in crate::upstream) fn lost(&mut self, id: LaneId, lane: &Lane) {
        self.servers.dedicated -= 1;
        let dedicated = self.dedicated_of(&lane.member);
        dedicated.count -= 1;
        dedicated.idle.retain(|idle| idle.lane != id);
        if lane.is_passing {
            dedicated.forget_passing(id);
        }
        lane.member.health.quota().give_back();
        if let Some(owner) = lane.owner {
            self.lane_has(owner, id, &lane.member, LaneEvent::Lost(&lane.state));
        }
        if self.servers.queued > 0 {
            self.give_lanes(&lane.member);
        }
    }

    /// A client has left. Its dedicated lane is reset at once, or closed, which ends what the server kept for
    /// it; where the server kept nothing, it is free for others.
    pub(crate) fn leave_own_lane(&mut self, own: Option<LaneId>, retention: Retention) {
        let Some((id, lane)) = own.and_then(|id| Some((id, self.servers.lanes.get(id)?))) else {
            return;
        };
        let rests = lane.is_ready() && lane.is_unused() && !lane.is_streaming() && !lane.holding;
        match retention {
            Retention::Clean if rests => self.free_lane(id),
            _ if retention.is_passing() && rests => self.free_lane(id),
            Retention::Kept | Retention::Dirty if rests => self.reset_lane(id),
            _ => self.drop_lane(id, "its client left"),
        }
    }

    /// Closes idle lanes that have rested for long, and half of those that other workers want. Clients that
    /// wait get what others have given back. Where some had to wait, lanes are opened for the next ones.
    pub(in crate::upstream) fn check_dedicated(&mut self) {
        self.free_passing();
        let (now, mut gone, mut served, mut ahead) = (self.now, Vec::new(), Vec::new(), Vec::new());
        for dedicated in self
            .servers
            .by_member
            .iter()
            .filter_map(|lanes| lanes.dedicated.as_ref())
        {
            let idle = dedicated
                .idle
                .iter()
                .filter_map(|idle| Some((idle.lane, self.servers.lanes.get(idle.lane)?)));
            let wanted = dedicated.idle.first().and_then(|idle| {
                let quota = self.servers.lanes.get(idle.lane)?.member.health.quota();
                quota
                    .is_wanted(dedicated.wish)
                    .then(|| dedicated.idle.len().div_ceil(2))
            });
            gone.extend(idle.enumerate().filter_map(|(at, (id, lane))| {
                // The server counts from its last answer.
                let limit = lane.member.protocol.idle_limit(&lane.state);
                let ends = limit.is_some_and(|limit| now - lane.active > Micros::from(limit));
                let rests = now - lane.free > Micros::from(lane.member.dedicated.idle_timeout);
                let is_wanted = wanted.is_some_and(|wanted| at < wanted);
                (is_wanted || ends || rests).then_some(id)
            }));
            let waiting = dedicated.queue.front();
            served.extend(waiting.map(|queued| Arc::clone(&queued.member)));
            ahead.extend(dedicated.missed.member.clone());
        }
        for id in gone {
            self.drop_lane(id, "");
        }
        for member in served {
            self.give_lanes(&member);
        }
        for member in ahead {
            self.open_ahead(&member);
        }
    }
}
