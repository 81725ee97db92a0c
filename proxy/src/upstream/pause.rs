//! Lanes that are paused (not read), because the reader of a large reply is slow.
//!
//! Invariant: slow readers delay a request by at most half its time-out, however many of them are before it.
//! Here that is its pool's time-out, or `limits.write_timeout` if that is shorter. A lane may be paused
//! for a quarter of the time-out while others wait behind the reply. A lane that is not paused regains one
//! microsecond of this time in four. Within one time-out that makes a quarter, and a quarter of the rest.
//! When the time is used up, the reader is closed with a reset, the rest of its reply is read and discarded,
//! and the lane lives on. The lane is not paused again before it has regained some time: the next slow
//! reader is closed at once.

use super::{Lane, Pace, Waiter};
use crate::{
    config::schema::Limits,
    engine::{ClientId, Engine, LaneId, ReplyTo},
    micros::Micros,
};

impl Engine {
    /// Pauses or resumes reading from a server. If requests of others wait behind the reply and the lane has
    /// no time left, the lane is not paused; the reader is closed instead.
    pub(crate) fn pause_lane(&mut self, id: LaneId, pause: bool) {
        let now = self.now;
        if let Some(lane) = self.servers.lanes.get(id)
            && pause
            && !lane.stream.paused
            && lane.has_no_time_left(now, self.pause_limit(lane))
        {
            return self.give_up_reader(id);
        }
        let is_gate_closed = self.clients.is_gate_closed();
        if let Some(lane) = self.servers.lanes.get_mut(id)
            && (pause || lane.owner.is_none() || !is_gate_closed)
            && let Some(conn) = lane.stream.conn
            && lane.stream.paused != pause
        {
            lane.stream.paused = pause;
            self.servers.paused_own = self.servers.paused_own + usize::from(pause && lane.dedicated)
                - usize::from(!pause && lane.dedicated);
            if pause {
                self.servers.paused_lanes += 1;
                lane.pause_time.begin(now);
            } else {
                self.servers.paused_lanes -= 1;
                let behind = lane.behind();
                lane.pause_time.end(now, behind);
                lane.free = now;
                if lane.pushed > 0 {
                    // The server is not charged for the time of the pause.
                    lane.pace = Pace::since(now);
                }
            }
            lane.active = now;
            self.actions.pause.push((conn, pause));
        }
    }

    /// Is the next reply of this lane for a read of this client, through whatever steps of the tree? Replies
    /// to changes are let through, because other requests may wait for the key.
    pub(super) fn reads_next(&self, lane: LaneId, client: ClientId) -> bool {
        let lane = self.servers.lanes.get(lane);
        let first = lane.and_then(|lane| lane.waiters.first());
        first.is_some_and(|waiter| self.reader_of(waiter.to) == Some(client))
    }

    /// Resumes reading from servers that were paused for this client.
    pub(crate) fn resume_lanes(&mut self, client: ClientId) {
        if self.servers.paused_own > 0 {
            self.wake_own_lanes(client);
        }
        if self.servers.paused_lanes == self.servers.paused_own {
            return;
        }
        let paused: Vec<LaneId> = self
            .servers
            .lanes
            .iter()
            .filter(|(_, lane)| lane.stream.paused && !lane.dedicated)
            .filter(|(_, lane)| lane.reader().is_none_or(|reader| reader == client))
            .map(|(id, _)| id)
            .collect();
        for lane in paused {
            self.pause_lane(lane, false);
        }
    }

    /// Gives up the readers for which lanes were paused too long.
    pub(super) fn end_pauses(&mut self) {
        if self.servers.paused_lanes == 0 {
            return;
        }
        // A client may take more although nothing was sent to it.
        self.wake_all_own_lanes();
        let now = self.now;
        let spent: Vec<LaneId> = self
            .servers
            .lanes
            .iter()
            .filter(|(_, lane)| lane.stream.paused && lane.is_paused_too_long(now, self.pause_limit(lane)))
            .map(|(id, _)| id)
            .collect();
        for id in spent {
            self.give_up_reader(id);
        }
    }

    /// The longest time for which the lane may be paused while others wait.
    fn pause_limit(&self, lane: &Lane) -> Micros {
        lane.wait_for_clients(&self.limits) / 4
    }

    /// Closes the reader of this lane and discards the rest of its reply.
    fn give_up_reader(&mut self, id: LaneId) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        let reader = lane.reader();
        match (&mut lane.download, lane.waiters.first_mut()) {
            (Some(download), _) => {
                download.to = None;
                download.collect = true;
            }
            (None, Some(waiter)) if reader.is_some() => waiter.to = ReplyTo::Nobody,
            // A step of the tree waits for this reply. It must get the reply, and it delays no other request.
            _ => {}
        }
        self.pause_lane(id, false);
        if let Some(client) = reader {
            self.close_slow(client);
        }
    }
}

impl Lane {
    /// The time since which a request other than the reader's has waited for the end of the reply under way;
    /// `None` if no other waits.
    fn behind(&self) -> Option<Micros> {
        if self.dedicated {
            return None;
        }
        let reader = self.reader();
        let is_anothers = |waiter: &&Waiter| match waiter.to {
            ReplyTo::Client { client: id, .. } => reader != Some(id),
            ReplyTo::Flight { .. }
            | ReplyTo::Operation { .. }
            | ReplyTo::Peer { .. }
            | ReplyTo::Admission { .. }
            | ReplyTo::Pool { .. }
            | ReplyTo::Lane { .. }
            | ReplyTo::Nobody => true,
        };
        let mut behind = self.waiters.iter().skip(usize::from(self.download.is_none()));
        behind.find(is_anothers).map(|waiter| waiter.sent)
    }

    /// Must this lane, which is paused, be resumed?
    fn is_paused_too_long(&self, now: Micros, most: Micros) -> bool {
        let behind = self.behind();
        behind.is_some() && self.pause_time.spent(now, behind) > most
    }

    /// Has this lane, which is not paused, used up its time?
    fn has_no_time_left(&self, now: Micros, most: Micros) -> bool {
        self.behind().is_some() && self.pause_time.unregained_at(now) >= most
    }

    /// The time for which requests may wait for slow clients: the pool's time-out, which may be without end,
    /// or the time for which a client may make no progress.
    pub(super) fn wait_for_clients(&self, limits: &Limits) -> Micros {
        self.member.timeout.min(limits.write_timeout).into()
    }
}
