//! Dedicated lanes on which the server keeps only what the last request has left. They stay their client's for
//! a second, in case that it asks for that, or until another client wants a lane.

use std::sync::Arc;

use super::dedicated::{Dedicated, LOOK};
use crate::{
    client::LaneEvent,
    engine::{ClientId, Engine, LaneId},
    members::Member,
    micros::Micros,
    protocol::Retention,
    upstream::Lane,
};

/// Time for which such a lane stays its client's while nobody wants it.
const LONGEST: Micros = Micros::secs(1);
/// Time for which it stays its client's whoever wants it: a client that goes on at once finds what it has
/// left.
const SHORTEST: Micros = Micros::millis(5);

impl Engine {
    /// A lane stays its client's for what the last request has left there: others may take it.
    pub(super) fn note_passing(&mut self, id: LaneId) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        if !std::mem::replace(&mut lane.is_passing, true) {
            let (member, login) = (Arc::clone(&lane.member), lane.login);
            self.dedicated_of(&member).append_passing(login, id);
        }
    }

    /// Takes a lane with this login from a client that has not used it for the longest time, as far as one is
    /// found at once. `takes_firm`: also one for which its client is likely to ask.
    pub(super) fn take_passing(
        &mut self,
        member: &Arc<Member>,
        login: u16,
        takes_firm: bool,
    ) -> Option<LaneId> {
        let now = self.now;
        for _ in 0..LOOK {
            let id = self.dedicated_of(member).passing.get_mut(&login)?.pop_front()?;
            let Some(lane) = self.servers.lanes.get_mut(id) else {
                continue;
            };
            let Some(retention) = lane.passing(|owner| self.clients.retention(owner)) else {
                lane.is_passing = false;
                continue;
            };
            if lane.login != login {
                // Its session has another login since.
                let login = lane.login;
                self.dedicated_of(member).append_passing(login, id);
                continue;
            }
            let is_taken = lane.closes.is_none()
                && now - lane.active >= SHORTEST
                && (takes_firm && retention == Retention::Firm || retention == Retention::Loose);
            if is_taken {
                lane.is_passing = false;
                self.tell_owner(id, LaneEvent::Released);
                self.disown(id);
                return Some(id);
            }
            self.dedicated_of(member).append_passing(login, id);
        }
        None
    }

    /// Frees the lanes that have been left for long enough: those that clients of the same server wait for
    /// after a moment.
    pub(super) fn free_passing(&mut self) {
        let (now, servers, clients) = (self.now, &self.servers, &self.clients);
        let is_over = |lane: &Lane, retention: Retention| {
            let lanes = servers.by_member[lane.member.id.0 as usize].dedicated.as_ref();
            let is_wanted = lanes.is_some_and(|lanes| !lanes.queue.is_empty());
            let limit = match is_wanted && retention != Retention::Brief {
                true => SHORTEST,
                false => LONGEST,
            };
            now - lane.active >= limit
        };
        let retention = |lane: &Lane| lane.passing(|owner| clients.retention(owner));
        let all = servers.lanes.iter().filter(|(_, lane)| {
            lane.is_passing && retention(lane).is_some_and(|retention| is_over(lane, retention))
        });
        let over: Vec<LaneId> = all.map(|(id, _)| id).collect();
        for id in over {
            self.tell_owner(id, LaneEvent::Released);
            self.free_lane(id);
        }
    }
}

impl Lane {
    /// The retention of its client, if the server keeps only what the last request has left.
    fn passing(&self, of: impl Fn(ClientId) -> Option<Retention>) -> Option<Retention> {
        let rests = self.is_unused() && !self.is_streaming();
        let retention = self.owner.filter(|_| rests).and_then(of)?;
        retention.is_passing().then_some(retention)
    }
}

impl Dedicated {
    fn append_passing(&mut self, login: u16, lane: LaneId) {
        self.passing.entry(login).or_default().push_back(lane);
    }

    /// Forgets a lane that has ended.
    pub(super) fn forget_passing(&mut self, lane: LaneId) {
        self.passing.retain(|_, lanes| {
            lanes.retain(|&other| other != lane);
            !lanes.is_empty()
        });
    }
}
