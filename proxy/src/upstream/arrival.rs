//! Commands that let their clients wait (`BLPOP`) get to a server in the order in which they came.
//!
//! The server serves those that wait for the same key in the order of their arrival. A command for which a
//! connection has to be made arrives late. One that has come behind it and finds a connection waits until
//! that one is sent, for a short time at most. This holds among the workers, too, except for two commands for
//! which connections are made at the same time.

use super::{Arrival, Lane, Phase};
use crate::{
    engine::{Endpoint, Engine, LaneId},
    micros::Micros,
};

/// The longest time for which a command waits for those before it.
const LONGEST: Micros = Micros::millis(200);

impl Engine {
    /// A command that lets its client wait is about to be given to its client's lane.
    pub(super) fn keep_arrival_order(&mut self, id: LaneId) {
        self.servers.arrivals += 1;
        let number = self.servers.arrivals;
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        match lane.phase {
            _ if lane.arrival != Arrival::Past => {}
            Phase::Ready if !lane.holding && lane.waiters.is_empty() && lane.member.health.opening() > 0 => {
                lane.arrival = Arrival::Behind(number);
                lane.holding = true;
            }
            Phase::Ready => {}
            Phase::Connecting | Phase::Login | Phase::Greeting => {
                lane.arrival = Arrival::Opening(number);
                lane.member.health.begin_opening();
            }
        }
    }

    /// This lane's connection is made, after its login: its command is sent if none has come before it.
    pub(super) fn end_opening(&mut self, id: LaneId, number: u64) {
        // What has to go before the command was sent alone, and the command comes behind its answer.
        if let Some(lane) = self.servers.lanes.get_mut(id)
            && !lane.awaits_before
        {
            lane.arrival = Arrival::Behind(number);
            lane.holding = true;
            lane.held = std::mem::take(&mut lane.stream.out);
        }
        self.release_behind();
    }

    /// Sends the commands before which there is none any more.
    pub(super) fn release_behind(&mut self) {
        let (mut opening, mut behind) = (Vec::new(), Vec::new());
        for (id, lane) in self.servers.lanes.iter() {
            match lane.arrival {
                Arrival::Past => {}
                Arrival::Opening(number) => opening.push((lane.member.id, number)),
                Arrival::Behind(number) => behind.push((number, id)),
            }
        }
        behind.sort_by_key(|(number, _)| *number);
        for (number, id) in behind {
            let Some(lane) = self.servers.lanes.get_mut(id) else {
                continue;
            };
            let here = opening.iter().filter(|(member, _)| *member == lane.member.id);
            let is_behind_one = here.clone().any(|(_, other)| *other < number);
            let is_behind_others = lane.member.health.opening() as usize > here.count();
            let since = lane.waiters.first().map_or(Micros::ZERO, |waiter| waiter.sent);
            if (is_behind_one || is_behind_others) && self.now - since < LONGEST {
                continue;
            }
            lane.arrival = Arrival::Past;
            self.release_held(id);
            self.flush_later(Endpoint::Lane(id));
        }
    }
}

impl Lane {
    /// The number of the command that waits for this connection to be made. Others do not wait for it any
    /// more.
    pub(super) fn take_opening(&mut self) -> Option<u64> {
        let Arrival::Opening(number) = self.arrival else {
            return None;
        };
        self.arrival = Arrival::Past;
        self.member.health.end_opening();
        Some(number)
    }
}
