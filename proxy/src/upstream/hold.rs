//! Lanes that are held back, because the reader of a large reply is slow to take it.
//!
//! Invariant: for slow readers a request is delayed by half its pool's time-out at most, however many of them there are before
//! it. A lane may be held back for a quarter of the time-out while others wait behind the reply; of that it regains one
//! microsecond in the four that follow, so that within a time-out it is a quarter and a quarter of the rest. After that the
//! reader is closed with a reset, what is left of the reply is read and thrown away, and the lane lives on. It is not held
//! back again before it has regained some of its time: the next reader for whom it would have to be is closed at once.

use super::{Lane, LaneId, Waiter};
use crate::{client::ClientId, engine::Engine, micros::Micros, route::ReplyTo};

/// How long a lane was held back with others behind it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hold {
    spent: Micros,
    /// When it was last held back, or let go.
    changed: Micros,
}

impl Hold {
    /// What a quarter of the time-out is reduced by when it ends.
    const REGAINED: u64 = 4;

    fn begin(&mut self, now: Micros) {
        self.spent = self.owed_at(now);
        self.changed = now;
    }

    /// Of a lane that is not held back: what it has spent and not regained.
    fn owed_at(&self, now: Micros) -> Micros {
        self.spent - (now - self.changed) / Self::REGAINED
    }

    /// `behind`: since when the first of the others waits.
    fn end(&mut self, now: Micros, behind: Option<Micros>) {
        self.spent = self.spent(now, behind);
        self.changed = now;
    }

    /// Of a lane that is held back now.
    fn spent(&self, now: Micros, behind: Option<Micros>) -> Micros {
        self.spent + behind.map_or(Micros::ZERO, |behind| now - self.changed.max(behind))
    }
}

impl Engine {
    /// Stops or starts reading from a server. A lane that others wait for and that has no time left for it is not stopped:
    /// its reader goes.
    pub(crate) fn hold_lane(&mut self, id: LaneId, hold: bool) {
        let now = self.now;
        if let Some(lane) = self.servers.lanes.get(id)
            && hold
            && !lane.stream.paused
            && lane.has_no_time_left(now)
        {
            return self.give_up_reader(id);
        }
        if let Some(lane) = self.servers.lanes.get_mut(id)
            && let Some(conn) = lane.stream.conn
            && lane.stream.paused != hold
        {
            lane.stream.paused = hold;
            if hold {
                self.servers.held_lanes += 1;
                lane.hold.begin(now);
            } else {
                self.servers.held_lanes -= 1;
                let behind = lane.behind();
                lane.hold.end(now, behind);
                lane.free = now;
            }
            lane.active = now;
            self.actions.pause.push((conn, hold));
        }
    }

    /// Is the next reply of this lane for a read of this client, through whatever steps of the tree? A change is let through:
    /// others may wait for its key.
    pub(super) fn reads_next(&self, lane: LaneId, client: ClientId) -> bool {
        let lane = self.servers.lanes.get(lane);
        let first = lane.and_then(|lane| lane.waiters.front());
        first.is_some_and(|waiter| self.reader_of(waiter.to) == Some(client))
    }

    /// Servers that were held back for this client go on.
    pub(crate) fn release_lanes(&mut self, client: ClientId) {
        if self.servers.held_lanes == 0 {
            return;
        }
        let held: Vec<LaneId> = self
            .servers
            .lanes
            .iter()
            .filter(|(_, lane)| lane.stream.paused)
            .filter(|(_, lane)| lane.reader().is_none_or(|reader| reader == client))
            .map(|(id, _)| id)
            .collect();
        for lane in held {
            self.hold_lane(lane, false);
        }
    }

    /// Gives up readers who have held back others for too long.
    pub(super) fn end_holds(&mut self) {
        if self.servers.held_lanes == 0 {
            return;
        }
        let now = self.now;
        let spent: Vec<LaneId> = self
            .servers
            .lanes
            .iter()
            .filter(|(_, lane)| lane.stream.paused && lane.has_held_enough(now))
            .map(|(id, _)| id)
            .collect();
        for id in spent {
            self.give_up_reader(id);
        }
    }

    fn give_up_reader(&mut self, id: LaneId) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        let reader = lane.reader();
        match (&mut lane.download, lane.waiters.front_mut()) {
            (Some(download), _) => {
                download.to = None;
                download.collect = true;
            }
            (None, Some(waiter)) if reader.is_some() => waiter.to = ReplyTo::Nobody,
            // A step of the tree waits for what comes next. It must have its answer, and holds nobody back.
            _ => {}
        }
        self.hold_lane(id, false);
        if let Some(client) = reader {
            self.close_slow(client);
        }
    }
}

impl Lane {
    /// Since when anybody but the reader waits for the end of the reply under way.
    fn behind(&self) -> Option<Micros> {
        if self.dedicated {
            return None;
        }
        let reader = self.reader();
        let is_anothers = |waiter: &&Waiter| match waiter.to {
            ReplyTo::Client { client: id, .. } => reader != Some(id),
            ReplyTo::Flight { .. } | ReplyTo::Operation { .. } | ReplyTo::Nobody => true,
        };
        let mut behind = self.waiters.iter().skip(usize::from(self.download.is_none()));
        behind.find(is_anothers).map(|waiter| waiter.sent)
    }

    /// Of a lane that is held back: must it be let go?
    fn has_held_enough(&self, now: Micros) -> bool {
        let behind = self.behind();
        behind.is_some() && self.hold.spent(now, behind) > self.time_to_hold()
    }

    /// Of one that is not: may it be held back no more?
    fn has_no_time_left(&self, now: Micros) -> bool {
        self.behind().is_some() && self.hold.owed_at(now) >= self.time_to_hold()
    }

    fn time_to_hold(&self) -> Micros {
        Micros::from(self.member.timeout) / 4
    }
}

#[cfg(test)]
mod tests {
    use super::{Hold, Micros};

    const TIMEOUT: Micros = Micros::secs(1);

    #[test]
    fn slow_readers_one_after_the_other_delay_a_request_by_half_its_time_out_at_most() {
        for rest in [0, 1_000, 50_000, 200_000] {
            let (mut hold, mut now, mut delayed) = (Hold::default(), TIMEOUT, Micros::ZERO);
            let sent = now;
            while now - sent < TIMEOUT {
                if hold.owed_at(now) >= TIMEOUT / 4 {
                    now += Micros(rest.max(100));
                    continue;
                }
                hold.begin(now);
                while hold.spent(now, Some(sent)) <= TIMEOUT / 4 {
                    now += Micros(100);
                    delayed += Micros(100);
                }
                hold.end(now, Some(sent));
                now += Micros(rest.max(100));
            }
            assert!(delayed <= TIMEOUT / 2, "{delayed:?} with {rest} between them");
        }
    }

    #[test]
    fn a_lane_that_nobody_waits_for_is_held_at_no_cost() {
        let mut hold = Hold::default();
        hold.begin(Micros::ZERO);
        hold.end(TIMEOUT, None);
        hold.begin(TIMEOUT);
        assert_eq!(hold.spent(TIMEOUT, Some(Micros::ZERO)), Micros::ZERO);
        assert_eq!(
            hold.spent(TIMEOUT + Micros(5), Some(TIMEOUT + Micros(2))),
            Micros(3)
        );
    }
}
