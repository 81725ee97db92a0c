//! When a lane breaks, is late, or has nothing more to do.

use std::{
    io::{Error, ErrorKind},
    sync::Arc,
};

use proxima_wire::message::Outcome;

use super::{LaneId, Phase};
use crate::{
    copies,
    dialect::Failed,
    engine::{Engine, Peer, Shortage, WorkerEvent},
    members::{Failure, MemberId},
    reactor::is_shortage,
};

/// Why a copy is not asked that has to be repaired first.
pub(super) const UNREPAIRED: &str = "it missed writes and is not asked before it is repaired";

/// Idle bulk lanes kept for the next large message.
const IDLE_BULK: usize = 1;

impl Engine {
    /// The lane broke or its server failed: everybody who waits on it gets the error, and the member's health is told.
    pub(crate) fn fail_lane(&mut self, id: LaneId, failure: Failure, outcome: Outcome, what: &str) {
        self.blame(id, failure, what);
        self.end_lane(id, outcome, what);
    }

    /// This lane's member has failed.
    fn blame(&mut self, id: LaneId, failure: Failure, what: &str) {
        let Some(lane) = self.servers.lanes.get(id) else {
            return;
        };
        // What ends or is silent on one client's own lane may be that client's doing. Others, and probes, will see.
        let is_its_own = lane.dedicated && matches!(lane.phase, Phase::Ready);
        if is_its_own && matches!(failure, Failure::Connection | Failure::Timeout) {
            return;
        }
        let member = lane.member.clone();
        self.metrics.member(member.id).failed();
        let ejected = member.health.failed(failure);
        if ejected {
            self.actions
                .events
                .push(WorkerEvent::Ejected(member.clone(), what.to_owned()));
        }
    }

    /// The lane is of no more use, through no fault of its server. Who waits on it has left: no copy is said to have missed
    /// its half of a value, and no other server is asked.
    pub(crate) fn drop_lane(&mut self, id: LaneId, text: &str) {
        self.end_lane(id, Outcome::ClientError, text);
    }

    /// Who waits on the lane gets an error, which names the server unless the lane was dropped.
    pub(super) fn end_lane(&mut self, id: LaneId, outcome: Outcome, what: &str) {
        let Some(lane) = self.servers.lanes.remove(id) else {
            return;
        };
        let lanes = &mut self.servers.by_member[lane.member.id.0 as usize];
        if lanes.shared(lane.login) == Some(id) {
            lanes.unshare(lane.login);
        }
        lanes.idle.retain(|&idle| idle != id);
        self.servers.held_lanes -= usize::from(lane.stream.paused);
        if lane.bulk {
            lanes.bulk = lanes.bulk.saturating_sub(1);
        }
        self.servers.logins.lane_closed(lane.login);
        if lane.dedicated {
            self.lost(id, &lane);
        }
        if let Some(conn) = lane.stream.conn {
            self.actions.close.push((conn, true));
        }
        if let Some((client, _)) = lane.download.and_then(|download| download.to) {
            // Half a reply has left: nothing but a closed connection tells the client so.
            self.close_client(client, true);
        }
        if let Some(client) = lane.uploading {
            self.requeue(client);
        }
        if lane.bulk {
            self.wake_uploads();
        }
        self.servers.in_flight -= lane.waiters.len();
        let unanswered = lane.member.is_copy() && !lane.waiters.is_empty();
        // Before that nothing was sent that a server could still execute.
        let broken = (unanswered && matches!(lane.phase, Phase::Ready)).then(|| {
            let (member, end) = (lane.member.clone(), lane.local);
            WorkerEvent::Copy(copies::Event::Broken { member, end })
        });
        if unanswered && outcome != Outcome::ClientError {
            let mut changes = lane.waiters.iter().filter(|waiter| waiter.changes);
            if changes.any(|waiter| !self.tracks_misses(waiter.to)) {
                self.miss_bypass_write(&lane.member, b"", what);
            }
        }
        let failed = match outcome {
            Outcome::ClientError => Failed::here(outcome, what),
            _ => Failed::at(&lane.member.address, outcome, what),
        };
        for waiter in lane.waiters {
            self.fail(waiter.to, &failed);
        }
        // Behind the event that a write was missed: only the connections of stale copies are remembered.
        self.actions.events.extend(broken);
    }

    /// The server closed or broke the connection.
    pub fn lane_failed(&mut self, id: LaneId, error: Option<&Error>) {
        let Some(lane) = self.servers.lanes.get(id) else {
            return;
        };
        if let Some(error) = error
            && matches!(lane.phase, Phase::Connecting)
            && is_shortage(error)
        {
            return self.lane_unmade(id, &reason(error));
        }
        let idle = lane.waiters.is_empty() && lane.download.is_none() && matches!(lane.phase, Phase::Ready);
        if idle {
            // Servers close idle connections; the next request opens a new one.
            return self.drop_lane(id, "");
        }
        let what = match error {
            Some(error) => reason(error),
            None => "Connection closed by the server".into(),
        };
        let refused = matches!(lane.phase, Phase::Connecting) && error.is_some_and(is_refusal);
        let failure = if refused {
            Failure::Refused
        } else {
            Failure::Connection
        };
        self.fail_lane(id, failure, Outcome::ConnectError, &what);
    }

    /// There was no descriptor for the connection. Nothing was sent, and the server is not to blame: it is neither ejected, nor
    /// has a copy missed anything, as its change is refused.
    fn lane_unmade(&mut self, id: LaneId, why: &str) {
        let Some(lane) = self.servers.lanes.get(id) else {
            return;
        };
        let told = format!("cannot connect to {}: {why} in this proxy", lane.member.address);
        self.fall_short(Shortage::Connect, &told);
        self.end_lane(
            id,
            Outcome::Overloaded,
            &format!("cannot connect: {why} in this proxy"),
        );
    }

    /// Ends the lanes on which this copy may still be given a change: it must not be repaired before that is known.
    pub(crate) fn cut_changes(&mut self, member: MemberId) {
        let changing: Vec<LaneId> = self
            .servers
            .lanes
            .iter()
            .filter(|(_, lane)| lane.member.id == member && lane.waiters.iter().any(|waiter| waiter.changes))
            .map(|(id, _)| id)
            .collect();
        for id in changing {
            // The end of one can end another.
            self.end_lane(id, Outcome::ConnectError, UNREPAIRED);
        }
    }

    /// Lanes follow the settings that their members have now.
    pub fn renew_lanes(&mut self) {
        let members = self.tree.members();
        for (_, lane) in self.servers.lanes.iter_mut() {
            if let Ok(at) = members.binary_search_by_key(&lane.member.id, |member| member.id)
                && !Arc::ptr_eq(&members[at], &lane.member)
            {
                lane.member = Arc::clone(&members[at]);
            }
        }
    }

    /// Closes the lanes to members that the tree does not name any more, or of logins that nobody wants, as soon as nobody waits on
    /// them.
    pub fn retire_lanes(&mut self) {
        let gone: Vec<LaneId> = self
            .servers
            .lanes
            .iter()
            .filter(|(_, lane)| {
                !self.tree.names(lane.member.id) || !self.servers.logins.is_wanted(lane.login)
            })
            .filter(|(_, lane)| {
                let idle = lane.waiters.is_empty() && lane.download.is_none() && lane.uploading.is_none();
                idle && lane.owner.is_none()
            })
            .map(|(id, _)| id)
            .collect();
        for id in gone {
            self.drop_lane(id, "");
        }
    }

    /// A bulk lane has done its message: it waits for the next or is closed.
    pub(crate) fn settle_lane(&mut self, id: LaneId) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        if lane.dedicated {
            return self.give_back(id);
        }
        let busy = !lane.waiters.is_empty() || lane.download.is_some() || lane.uploading.is_some();
        if !lane.bulk || busy {
            return;
        }
        let lanes = &mut self.servers.by_member[lane.member.id.0 as usize];
        if lanes.shared(lane.login).is_none() {
            lanes.share(lane.login, id);
            lane.bulk = false;
            lanes.bulk = lanes.bulk.saturating_sub(1);
        } else if lanes.idle.len() < IDLE_BULK && !lanes.idle.contains(&id) {
            lanes.idle.push(id);
        } else if !lanes.idle.contains(&id) {
            self.drop_lane(id, "");
        }
        self.wake_uploads();
    }

    /// A server has taken what was sent to it: clients that wait to send it more go on.
    pub fn lane_drained(&mut self, id: LaneId) {
        let now = self.now;
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        let more = !lane.stream.out.is_empty() || !lane.stream.wire.is_empty();
        let uploading = lane.uploading;
        if uploading.is_some() {
            lane.active = now;
        }
        if more {
            self.flush_later(Peer::Lane(id));
        }
        if let Some(client) = uploading {
            self.requeue(client);
        }
    }
}

/// Does this answer to the wish for a connection say that nobody is there? (Of a Unix socket: it is not there itself.)
fn is_refusal(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset | ErrorKind::NotFound
    )
}

/// The words for a connection error that operators know.
pub fn reason(error: &Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}
