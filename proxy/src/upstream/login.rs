//! Connecting and logging in to a server.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use proxima_wire::message::{Outcome, Parsed};

use super::Phase;
use crate::{
    client::WHOLE,
    config::schema::Reset,
    engine::{Endpoint, Engine, LaneId},
    members::Failure,
    protocol::{Login, Message, NO_TLS, NO_UPGRADE, ServerLogin},
};

impl Engine {
    /// The connection is made: the login begins, if the protocol has one.
    pub fn lane_connected(&mut self, id: LaneId) {
        let now = self.now;
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        lane.active = now;
        if lane.proofs.defers_version() {
            self.make_ready(id);
            return self.flush_later(Endpoint::Lane(id));
        }
        lane.phase = Phase::Login;
        self.log_in(id, &[]);
    }

    /// Takes one step of the login. Returns the number of bytes used; `None`: the login failed or needs more
    /// bytes.
    pub(super) fn log_in(&mut self, id: LaneId, bytes: &[u8]) -> Option<usize> {
        let lane = self.servers.lanes.get_mut(id)?;
        match lane.phase {
            Phase::Login => {}
            Phase::Greeting => return self.greeted(id, bytes),
            Phase::Connecting | Phase::Ready => return None,
        }
        let words = self.servers.logins.words(lane.login);
        let mut with = ServerLogin {
            words: &words,
            own: lane.member.login.as_deref(),
            pool: &lane.member.pool.name,
            logins: &self.clients.register().logins,
            may_encrypt: lane.member.may_encrypt,
            count: &lane.member.pool.count,
            reached: &lane.member.reached,
            schema_changes: &lane.member.pool.schema_changes,
            prepared: lane.member.health.prepared(),
            noted: &lane.member.noted,
            resets: lane.member.dedicated.reset == Reset::Always,
            is_shared: !lane.dedicated,
            wants_tls: lane.lacks_tls(),
            said: Vec::new(),
            version: 0,
            connections: 0,
        };
        let step = lane
            .member
            .protocol
            .login(&mut lane.state, &mut with, bytes, &mut lane.stream.out);
        lane.member.said.tell(&with.said);
        if with.version != 0 {
            lane.member.pool.version.store(with.version, Relaxed);
        }
        lane.member.health.quota().learn(with.connections);
        let is_over = matches!(step, Login::Ready { .. } | Login::Limited { .. });
        if is_over && lane.lacks_tls() {
            self.fail_lane(id, Failure::Garbage, Outcome::ConnectError, NO_TLS);
            return None;
        }
        let used = match step {
            // Bytes that do not make sense within the size limit of a reply never will.
            Login::More { used: 0 } if bytes.len() as u64 > WHOLE => {
                let what = "greeting without an end";
                self.fail_lane(id, Failure::Garbage, Outcome::ConnectError, what);
                return None;
            }
            Login::More { used } => Some(used).filter(|&used| used > 0),
            // If the server has spoken last in the login, that is an answer on this very connection.
            Login::Ready { used } if lane.member.is_copy() && used == 0 => {
                lane.phase = Phase::Greeting;
                lane.stream.out.extend_from_slice(lane.member.protocol.probe().1);
                Some(used)
            }
            Login::Ready { used } => {
                let opening = lane.take_opening();
                self.make_ready(id);
                if let Some(number) = opening {
                    self.end_opening(id, number);
                }
                Some(used)
            }
            Login::Limited { used, why } => {
                self.limit_lane(id, &why);
                Some(used)
            }
            Login::Upgrade { used } => {
                let transform = lane.member.next_transform(lane.stream.transform.is_some());
                let is_alone = used == bytes.len();
                let begins = |transform| is_alone && lane.stream.upgrade(transform, &[]).is_some();
                if !transform.is_some_and(begins) {
                    self.fail_lane(id, Failure::Garbage, Outcome::ConnectError, NO_UPGRADE);
                    return None;
                }
                // The codec knows which side speaks next.
                self.log_in(id, &[]);
                Some(used).filter(|&used| used > 0)
            }
            Login::Failed(what) => {
                self.fail_lane(id, Failure::Garbage, Outcome::ConnectError, &what);
                return None;
            }
            Login::Rejected(what) => {
                self.fail_lane(id, Failure::Login, Outcome::ConnectError, &what);
                return None;
            }
            Login::Full { reply, is_of_login } => {
                self.lane_is_full(id, &reply, is_of_login);
                return None;
            }
            Login::Denied(reply) => {
                self.deny_lane(id, &reply);
                return None;
            }
        };
        self.flush_later(Endpoint::Lane(id));
        used
    }

    /// The login has ended: the requests that were held may be sent.
    pub(super) fn make_ready(&mut self, id: LaneId) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        lane.phase = Phase::Ready;
        lane.free = self.now;
        self.servers.logins.prove(lane.login);
        if lane.dedicated {
            let (member, login) = (Arc::clone(&lane.member), lane.login);
            self.dedicated_of(&member).full.clear(login);
        }
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        // Those of the login are no replies.
        lane.greeted = std::mem::take(&mut lane.received) > 0;
        if lane.proofs.are_awaited() {
            // The questions go first, and everything else waits for their answers.
            let questions = lane.proofs.asked_bytes(lane.member.protocol);
            lane.stream.out.extend(lane.held.drain(..questions));
        } else {
            self.release_held(id);
        }
    }

    /// Reads the answer to the first probe of a copy's connection. Returns the number of bytes used; `None`:
    /// the probe failed or its answer is incomplete.
    fn greeted(&mut self, id: LaneId, bytes: &[u8]) -> Option<usize> {
        let lane = self.servers.lanes.get_mut(id)?;
        let protocol = lane.member.protocol;
        let (command, _) = protocol.probe();
        match protocol.reply(&lane.state, &mut lane.stream.parse, command, bytes) {
            Parsed::Head(Message::Last(reply)) if !reply.outcome.is_error() => {
                let used = bytes.get(..reply.len() as usize)?.len();
                self.make_ready(id);
                self.flush_later(Endpoint::Lane(id));
                Some(used)
            }
            Parsed::More => None,
            _ => {
                let what = "no answer to the first request";
                self.fail_lane(id, Failure::Garbage, Outcome::ConnectError, what);
                None
            }
        }
    }
}
