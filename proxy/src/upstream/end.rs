//! Lanes that break, that are late, or that have no more work.

use std::{
    collections::BTreeSet,
    io::{Error, ErrorKind},
    sync::{Arc, mpsc},
};

use proxima_wire::message::{Outcome, Reply};

use super::{Arrival, Close, Closed, Lane, Phase};
use crate::{
    client::LaneEvent,
    config::schema::EjectBy,
    copies,
    engine::{Endpoint, Engine, LaneId, Shortage, WorkerEvent},
    members::{Failure, Member, MemberId},
    protocol::{Failed, Fate, Retention},
    reactor::{is_shortage, reason},
};

/// The error text for a copy that is not asked because it missed writes.
pub(super) const UNREPAIRED: &str = "it missed writes and is not asked before it is repaired";

impl Engine {
    /// The lane broke or its server failed: every request that waits on the lane gets the error. The failure
    /// counts against the member's health, unless it may be this one connection's: then another one is made,
    /// which decides.
    pub(crate) fn fail_lane(&mut self, id: LaneId, failure: Failure, outcome: Outcome, what: &str) {
        self.count_failure(id, failure, outcome, what);
        if self.has_unproven_login(id) {
            return self.end_unproven_login(id, outcome, what);
        }
        let lane = self.servers.lanes.get_mut(id);
        let next = lane.and_then(|lane| lane.next(failure, outcome));
        match &next {
            Some(next) => self.metrics.member(next.member.id).failed(),
            None => self.blame(id, failure, what),
        }
        self.end_lane(id, outcome, what);
        if let Some(next) = next {
            self.connect_again(next, &Failed::at("", outcome, what));
        }
    }

    /// Does a server that has greeted this lane take long over, or break off, a login that none has ever
    /// accepted? Any client that may connect to a listener can bring such a login: it says nothing of the
    /// server.
    fn has_unproven_login(&self, id: LaneId) -> bool {
        self.servers.lanes.get(id).is_some_and(|lane| {
            let is_login = matches!(lane.phase, Phase::Login) && lane.received > 0;
            is_login && !self.servers.logins.is_proven(lane.login)
        })
    }

    /// Ends such a lane. What waits for it is asked nowhere else.
    fn end_unproven_login(&mut self, id: LaneId, outcome: Outcome, what: &str) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        let (member, unwritten) = (Arc::clone(&lane.member), std::mem::take(&mut lane.unwritten));
        self.end_lane(id, outcome, what);
        let failed = Failed {
            fate: Fate::Blamed,
            ..Failed::at(&member.address, outcome, what)
        };
        self.fail_unwritten(unwritten, &failed);
    }

    /// Counts how a lane has failed.
    fn count_failure(&mut self, id: LaneId, failure: Failure, outcome: Outcome, what: &str) {
        let Some(member) = self.servers.lanes.get(id).map(|lane| lane.member.id) else {
            return;
        };
        let counts = self.metrics.member(member);
        match (failure, outcome) {
            (Failure::Timeout, _) | (_, Outcome::ConnectTimeout) => counts.timed_out += 1,
            _ if what == Failed::CLOSED => counts.closed += 1,
            _ => counts.broken += 1,
        }
    }

    /// Counts a failure of this lane's member.
    fn blame(&mut self, id: LaneId, failure: Failure, what: &str) {
        let Some(lane) = self.servers.lanes.get(id) else {
            return;
        };
        // What a pool's state asks is judged by the state.
        if self.servers.by_member[lane.member.id.0 as usize].own == Some(id) {
            return;
        }
        // A dedicated lane on which the server has answered, and which ends, may be its client's doing. The
        // next one will find a real failure.
        if lane.dedicated && lane.is_proven() && failure == Failure::Connection {
            return;
        }
        // It says why it takes no more connections, and serves those that it has.
        let is_refusal = lane.logs_in() && failure == Failure::Garbage;
        if is_refusal && self.servers.serves_otherwise(lane.member.id) {
            return;
        }
        let member = lane.member.clone();
        self.metrics.member(member.id).failed();
        let ejected = match member.health.eject().by {
            EjectBy::Suspicion => member.health.failed(failure),
            // All workers connect in advance, and a server that is not there is one event.
            EjectBy::LostConnections if lane.is_in_advance() && self.facts.worker != 0 => false,
            EjectBy::LostConnections => {
                // A warm lane may have been silent since before the latest count. A late reply is an
                // event of its own if its request was sent after that count. A connection that was lost is
                // none: the request may have been sent to a server that was dead already.
                let sent = lane.waiters.first().filter(|_| failure == Failure::Timeout);
                let proven = sent.map_or(lane.free, |waiter| waiter.sent.max(lane.free));
                member.health.lost(proven, self.now)
            }
        };
        if ejected {
            self.actions
                .events
                .push(WorkerEvent::Ejected(member.clone(), what.to_owned()));
        }
    }

    /// The server does not accept the login that clients of this lane have named. Each request that waits
    /// gets the server's words.
    pub(super) fn deny_lane(&mut self, id: LaneId, words: &[u8]) {
        let (waiters, unwritten) = match self.servers.lanes.get_mut(id) {
            Some(lane) => (
                std::mem::take(&mut lane.waiters),
                std::mem::take(&mut lane.unwritten),
            ),
            None => return,
        };
        self.servers.in_flight -= waiters.len() + unwritten.len();
        self.drop_lane(id, "");
        let reply = Reply::new(Outcome::ClientError, words.len());
        for unwritten in unwritten {
            self.deliver(unwritten.to, &reply, words);
        }
        for waiter in waiters {
            self.deliver(waiter.to, &reply, words);
        }
    }

    /// Ends a lane that is of no more use, through no fault of its server. The clients that waited on it have
    /// left: no copy is marked as having missed a write, and no other server is asked.
    pub(crate) fn drop_lane(&mut self, id: LaneId, text: &str) {
        self.end_lane(id, Outcome::ClientError, text);
    }

    /// Ends a lane. Each request that waits on it gets an error, which names the server unless the lane was
    /// dropped.
    pub(super) fn end_lane(&mut self, id: LaneId, outcome: Outcome, what: &str) {
        let Some(mut lane) = self.servers.lanes.remove(id) else {
            return;
        };
        lane.take_opening();
        let lanes = &mut self.servers.by_member[lane.member.id.0 as usize];
        if lanes.shared.get(lane.login) == Some(id) {
            lanes.shared.unset(lane.login);
        }
        lanes.bulk.forget(id, lane.bulk);
        lanes.own = lanes.own.filter(|&own| own != id);
        self.forget_cancels(id, &lane.member);
        self.cancel_abandoned(&lane, outcome);
        self.servers.paused_lanes -= usize::from(lane.stream.paused);
        self.servers.paused_own -= usize::from(lane.stream.paused && lane.dedicated);
        self.servers.logins.lane_closed(lane.login);
        // What belongs to what the server kept is of no use elsewhere, although nothing is kept from now on.
        let retention = lane.owner.and_then(|owner| self.clients.retention(owner));
        let is_bound = retention.is_some_and(|retention| retention != Retention::Clean);
        if lane.dedicated {
            self.lost(id, &lane);
        }
        if let Some(conn) = lane.stream.conn {
            // Where nothing is cut off, a transform can say goodbye, or what is wrong, and so can the protocol.
            let is_ready = matches!(lane.phase, Phase::Ready);
            let cuts = is_ready && !lane.is_unused();
            let rests = is_ready && !cuts && lane.unsent() == 0 && outcome == Outcome::ClientError;
            let last = if rests {
                lane.member.protocol.farewell()
            } else {
                b""
            };
            let farewell = lane.stream.farewell(last).filter(|_| !cuts);
            self.actions.close.push((conn, farewell.is_none()));
            self.actions.farewells.extend(farewell.map(|bytes| (conn, bytes)));
        }
        if let Some((client, _)) = lane.download.and_then(|download| download.to) {
            // The client has part of a reply already: only a closed connection tells the client that the rest
            // is missing.
            self.close_client(client, true);
        }
        if let Some(owner) = lane.owner {
            self.discharge_lane(owner, lane.charged);
            if self.clients.is_pushing(owner, id) {
                // The same holds for a message of which the client has a part.
                self.close_client(owner, true);
            }
        }
        if let Some(client) = lane.uploading {
            self.requeue(client);
        }
        if lane.bulk {
            self.wake_uploads();
        }
        self.servers.in_flight -= lane.waiters.len();
        let counts = self.metrics.member(lane.member.id);
        counts.lost += lane.waiters.len() as u64;
        if outcome != Outcome::ClientError {
            counts.outcomes.count(outcome, lane.waiters.len() as u64);
        }
        counts.sent_bytes += lane.given;
        if matches!(lane.phase, Phase::Ready) {
            counts.received_bytes += lane.received;
        }
        let unanswered = lane.member.is_copy() && !lane.waiters.is_empty();
        // Before the lane was ready nothing was sent that a server could still execute.
        let broken = (unanswered && matches!(lane.phase, Phase::Ready)).then(|| {
            let (member, end) = (lane.member.clone(), lane.local);
            WorkerEvent::Copy(copies::Event::Broken { member, end })
        });
        if unanswered && outcome != Outcome::ClientError {
            let mut changes = lane.waiters.iter().filter(|waiter| waiter.effects.change_copy());
            if changes.any(|waiter| !self.tracks_misses(waiter.to)) {
                self.miss_bypass_write(&lane.member, b"", what);
            }
        }
        let changes = lane.take_changes();
        self.outlive(changes, matches!(lane.phase, Phase::Ready));
        let failed = match outcome {
            Outcome::ClientError => Failed::here(outcome, what),
            _ => Failed::at(&lane.member.address, outcome, what),
        };
        let is_ready = matches!(lane.phase, Phase::Ready);
        for waiter in lane.waiters {
            let fate = if is_bound {
                Fate::Blamed
            } else {
                waiter.fate(is_ready)
            };
            self.fail(waiter.to, &Failed { fate, ..failed });
        }
        let fate = if is_bound { Fate::Blamed } else { Fate::Unsent };
        self.fail_unwritten(lane.unwritten, &Failed { fate, ..failed });
        if let Some(owner) = lane.owner {
            self.lane_has(owner, id, &lane.member, LaneEvent::Ended);
        }
        // This event comes after the event of the missed write, because only connections of stale copies are
        // remembered.
        self.actions.events.extend(broken);
    }

    /// The server closed the connection, or the connection broke.
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
        let counts = lane.member.health.eject().by == EjectBy::LostConnections;
        if idle {
            let what = error.map_or_else(|| Failed::CLOSED.to_owned(), reason);
            self.count_failure(id, Failure::Connection, Outcome::ConnectError, &what);
            if counts {
                self.blame(id, Failure::Connection, Failed::CLOSED);
            }
            // Servers close idle connections; the next request opens a new one.
            return self.drop_lane(id, "");
        }
        let what = match error {
            Some(error) => reason(error),
            None => Failed::CLOSED.into(),
        };
        let refused = matches!(lane.phase, Phase::Connecting) && error.is_some_and(is_refusal);
        let failure = if refused {
            Failure::Refused
        } else {
            Failure::Connection
        };
        self.fail_lane(id, failure, Outcome::ConnectError, &what);
    }

    /// The process had no file descriptor for the connection. Nothing was sent, and the server is not to
    /// blame: it is not ejected. A copy has missed no write either, as the change is rejected.
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

    /// Ends the lanes on which this copy may still be given a change. A repair must not begin before the fate
    /// of those changes is known.
    pub(crate) fn cut_changes(&mut self, member: MemberId) {
        let changing: Vec<LaneId> = self
            .servers
            .lanes
            .iter()
            .filter(|(_, lane)| {
                lane.member.id == member && lane.waiters.iter().any(|waiter| waiter.effects.change_copy())
            })
            .map(|(id, _)| id)
            .collect();
        for id in changing {
            // The end of one lane can end another.
            self.end_lane(id, Outcome::ConnectError, UNREPAIRED);
        }
    }

    /// Gives each lane the current settings of its member. Those that were made with another TLS, user or
    /// database than it has now are closed as soon as nothing waits on them.
    pub fn renew_lanes(&mut self) {
        let members = self.tree.members();
        let mut changed = BTreeSet::new();
        for (id, lane) in self.servers.lanes.iter_mut() {
            if let Ok(at) = members.binary_search_by_key(&lane.member.id, |member| member.id)
                && !Arc::ptr_eq(&members[at], &lane.member)
            {
                if !members[at].has_tls_of(&lane.member) || !members[at].has_login_of(&lane.member) {
                    changed.insert(lane.member.id);
                }
                let lanes = self.servers.by_member.get_mut(lane.member.id.0 as usize);
                let cancels = lanes.as_ref().and_then(|lanes| lanes.cancels.as_ref()?.lane) == Some(id);
                if let Some(dedicated) = lanes.and_then(|lanes| lanes.dedicated.as_mut()) {
                    dedicated.withdraw_wish(&lane.member);
                }
                lane.move_counts(&members[at], cancels);
                lane.member = Arc::clone(&members[at]);
            }
        }
        for member in changed {
            // Nobody waits for their end.
            let (done, _) = mpsc::channel();
            self.close_lanes(Closed::Member(member), Close::WhenIdle, done);
        }
    }

    /// Closes idle lanes that have no further use: the tree no longer names the member, or no client wants
    /// the login. A dedicated lane is kept for the next client with its login, as long as any is kept.
    /// Returns whether all lanes without use are closed: the others are busy.
    pub fn retire_lanes(&mut self) -> bool {
        self.retire(|engine, lane| {
            !engine.tree.names(lane.member.id)
                || !lane.dedicated && !engine.servers.logins.is_wanted(lane.login)
        })
    }

    /// Closes idle lanes with logins that no client wants: another login needs room.
    pub(crate) fn retire_logins(&mut self) {
        self.retire(|engine, lane| !engine.servers.logins.is_wanted(lane.login));
    }

    fn retire(&mut self, is_useless: impl Fn(&Self, &Lane) -> bool) -> bool {
        let lanes = self.servers.lanes.iter();
        let useless = lanes.filter(|(_, lane)| is_useless(self, lane));
        let (idle, busy): (Vec<_>, Vec<_>) =
            useless.partition(|(_, lane)| lane.is_unused() && lane.owner.is_none());
        let are_all_idle = busy.is_empty();
        let gone: Vec<LaneId> = idle.into_iter().map(|(id, _)| id).collect();
        for id in gone {
            self.drop_lane(id, "");
        }
        are_all_idle
    }

    /// A lane has finished a message. A dedicated lane may return to the idle ones; a bulk lane becomes the
    /// shared lane, waits for the next large message, or is closed.
    pub(crate) fn settle_lane(&mut self, id: LaneId) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        if lane.dedicated {
            return self.give_back(id);
        }
        self.settle_bulk(id);
    }

    /// The socket has taken bytes of this lane: a client that waits to send more goes on.
    pub fn lane_drained(&mut self, id: LaneId) {
        let now = self.now;
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        let more = lane.unsent() > 0 || !lane.stream.wire.is_empty();
        let uploading = lane.uploading;
        if uploading.is_some() {
            lane.active = now;
        }
        if more {
            self.flush_later(Endpoint::Lane(id));
        }
        if let Some(client) = uploading {
            self.requeue(client);
        }
    }
}

impl Lane {
    /// Its member gets these settings, which may count connections anew. What it has taken of the old counts
    /// is given back there, and is given back to the new ones when it ends. `cancels`: something is ended on
    /// it.
    fn move_counts(&self, next: &Member, cancels: bool) {
        let (old, new) = (&self.member.health, &next.health);
        if Arc::ptr_eq(old, new) {
            return;
        }
        if self.dedicated {
            old.quota().give_back();
            let _ = new.quota().take(u32::MAX);
        }
        if cancels {
            old.cancels().give_back();
            let _ = new.cancels().take();
        }
        if matches!(self.arrival, Arrival::Opening(_)) {
            old.end_opening();
            new.begin_opening();
        }
    }
}

/// Does this error say that no server listens at the address? For a Unix socket a missing file says so.
fn is_refusal(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset | ErrorKind::NotFound
    )
}
