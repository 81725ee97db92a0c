//! Detection of late servers.
//!
//! A lane is late if, for its pool's time-out, neither a reply has come nor the server has taken any bytes of
//! the awaited request. Bytes that wait here for a slow link are the proxy's own load, and no fault of the
//! server. Bytes behind the awaited request do not count: the kernel of a frozen server goes on taking them.

use super::{Lane, Phase, Uptake};
use crate::{
    engine::{Engine, LaneId},
    members::Failure,
    micros::Micros,
    reactor::Conn,
};
use proxima_wire::message::Outcome;

/// The ways in which a lane can be late.
#[derive(Clone, Copy)]
enum Late {
    Connecting,
    Answering,
}

impl Engine {
    /// Ends lanes whose server is late, and requests that have waited too long for an agreement or for a slow
    /// client. Called a few times a second. `refused` returns the bytes that a socket has not taken yet,
    /// `unacknowledged` those that it has taken and its peer has not acknowledged.
    pub fn check_lanes(&mut self, refused: &dyn Fn(Conn) -> usize, unacknowledged: &dyn Fn(Conn) -> usize) {
        self.settle();
        self.near.end_due(self.now);
        self.end_unanswered();
        self.release_behind();
        self.end_pauses();
        self.end_dawdling();
        self.end_waits_for_seats();
        self.check_dedicated();
        self.end_queues();
        self.check_closings();
        self.retry_cancels();
        self.end_overdue();
        let now = self.now;
        let queued = |conn| refused(conn) + unacknowledged(conn);
        let late: Vec<(LaneId, Late)> = self
            .servers
            .lanes
            .iter_mut()
            .filter_map(|(id, lane)| Some((id, lane.is_late(now, &queued)?)))
            .collect();
        for (id, late) in late {
            // The end of one lane can end another, and open a fresh one in its place.
            if self.servers.lanes.get_mut(id).is_none() {
                continue;
            }
            let (failure, outcome, text) = match late {
                Late::Connecting => (Failure::Connection, Outcome::ConnectTimeout, "connection timeout"),
                Late::Answering => (Failure::Timeout, Outcome::Timeout, "timeout"),
            };
            self.fail_lane(id, failure, outcome, text);
        }
        self.close_idle();
    }

    /// Closes connections on which nothing was asked for as long as the configuration allows.
    fn close_idle(&mut self) {
        let (now, limit) = (self.now, Micros::from(self.limits.server_idle));
        if limit == Micros::ZERO {
            return;
        }
        let is_idle = |lane: &Lane| {
            let rests = matches!(lane.phase, Phase::Ready) && !lane.dedicated && lane.owner.is_none();
            rests && lane.is_unused() && now - lane.free > limit
        };
        let lanes = self.servers.lanes.iter().filter(|(_, lane)| is_idle(lane));
        let idle: Vec<LaneId> = lanes.map(|(id, _)| id).collect();
        for id in idle {
            if let Some(lane) = self.servers.lanes.get(id) {
                self.metrics.member(lane.member.id).idle += 1;
                self.drop_lane(id, "");
            }
        }
    }
}

impl Lane {
    /// The way in which this lane is late; `None` if it is in time.
    fn is_late(&mut self, now: Micros, queued: &dyn Fn(Conn) -> usize) -> Option<Late> {
        let is_connecting = match self.phase {
            Phase::Connecting | Phase::Greeting => true,
            // The requests behind it wait for a reply, and a copy that does not answer does not count as a
            // copy.
            Phase::Login => self.member.is_copy() || self.waiters.is_empty(),
            Phase::Ready => false,
        };
        if is_connecting {
            let limit = match self.phase {
                // What a server does for one of its users may take as long as a request.
                Phase::Login if self.login != 0 => self.member.connect_timeout.max(self.member.timeout),
                _ => self.member.connect_timeout,
            };
            let limit = Micros::from(limit);
            return ((now - self.free) > limit).then_some(Late::Connecting);
        }
        // The lane is paused for a slow reader, or the server has taken all bytes that a slow writer has
        // given. While they are held here, it is the server that is waited for.
        let took_all = matches!(self.phase, Phase::Ready) && !self.holding && self.unsent() == 0;
        if self.stream.paused || self.uploading.is_some() && took_all {
            return None;
        }
        if self.pushed > 0 {
            let limit = Micros::from(self.member.timeout);
            return self.pushes_slowly(now, limit).then_some(Late::Answering);
        }
        let since = match self.waiters.first() {
            // A large message is not late as long as its bytes move.
            _ if self.is_streaming() || self.uploading.is_some() => self.active,
            Some(waiter) if self.bulk => waiter.sent.max(self.active),
            Some(waiter) => waiter.sent.max(self.free),
            None => return None,
        };
        // The member is read last: most lanes of many are idle, and their members lie in distant memory.
        let waits = matches!(self.phase, Phase::Ready) && !self.is_streaming() && self.uploading.is_none();
        let extra_time = match self.waiters.first().filter(|_| waits) {
            Some(waiter) if waiter.extra_time == u32::MAX => return None,
            waiter => waiter.map_or(Micros::ZERO, |waiter| {
                Micros::millis(u64::from(waiter.extra_time))
            }),
        };
        let limit = Micros::from(self.member.timeout) + extra_time;
        let age = now - since;
        if age <= limit / 2 {
            self.uptake = None;
            return None;
        }
        let since = since.max(self.take_up(now, queued));
        ((now - since) > limit).then_some(Late::Answering)
    }

    /// The time at which the server last took bytes of the awaited request; zero if not since the first call
    /// for this request.
    fn take_up(&mut self, now: Micros, queued: &dyn Fn(Conn) -> usize) -> Micros {
        let Some(conn) = self.stream.conn else {
            return Micros::ZERO;
        };
        let left = self.unsent() + queued(conn);
        let taken = self.given.saturating_sub(left as u64);
        let uptake = self.uptake.get_or_insert(Uptake {
            end: self.given,
            taken,
            moved: Micros::ZERO,
        });
        if taken > uptake.taken && uptake.taken < uptake.end {
            uptake.moved = now;
        }
        uptake.taken = taken;
        uptake.moved
    }
}
