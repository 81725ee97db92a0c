//! When a lane breaks, is late, or has nothing more to do.

use std::{
    io::{Error, ErrorKind},
    sync::Arc,
};

use proxima_wire::message::Outcome;

use super::{Lane, Phase};
use crate::{
    engine::{Engine, News, Peer, Shortage},
    members::{Failure, MemberId},
    reactor::{Conn, is_shortage},
};

/// Idle bulk lanes kept for the next large message.
const IDLE_BULK: usize = 1;

impl Engine {
    /// The lane broke or its server failed: everybody who waits on it gets the error, and the member's health is told.
    pub(crate) fn fail_lane(&mut self, index: u32, failure: Failure, outcome: Outcome, text: &str) {
        self.blame(index, failure, text);
        self.end_lane(index, outcome, text);
    }

    /// This lane's member has failed.
    fn blame(&mut self, index: u32, failure: Failure, text: &str) {
        let Some(lane) = self.lanes.get(index as usize) else {
            return;
        };
        let member = lane.member.clone();
        self.figures.member(member.id).failed();
        let ejected = member.health.failed(failure);
        if ejected {
            self.wishes
                .news
                .push(News::Ejected(member.clone(), text.to_owned()));
        }
    }

    /// The lane is of no more use, through no fault of its server. Who waits on it has left: no copy is said to have missed
    /// its half of a value, and no other server is asked.
    pub(crate) fn drop_lane(&mut self, index: u32, text: &str) {
        self.end_lane(index, Outcome::ClientError, text);
    }

    fn end_lane(&mut self, index: u32, outcome: Outcome, text: &str) {
        let Some(lane) = self.lanes.try_remove(index as usize) else {
            return;
        };
        let lanes = &mut self.by_member[lane.member.id.0 as usize];
        if lanes.shared == Some(index) {
            lanes.shared = None;
        }
        lanes.idle.retain(|&idle| idle != index);
        self.held_lanes -= usize::from(lane.stream.paused);
        if lane.bulk {
            lanes.bulk = lanes.bulk.saturating_sub(1);
        }
        if let Some(conn) = lane.stream.conn {
            self.wishes.close.push((conn, true));
        }
        if let Some((client, generation, _)) = lane.download.and_then(|download| download.to) {
            // Half a reply has left: nothing but a closed connection tells the client so.
            if self
                .clients
                .get(client as usize)
                .is_some_and(|found| found.generation == generation)
            {
                self.close_client(client, true);
            }
        }
        if lane.bulk {
            self.wake_uploads();
        }
        self.in_flight -= lane.waiters.len();
        let unanswered = lane.member.is_copy && !lane.waiters.is_empty();
        // Before that nothing was sent that a server could still execute.
        let broken = (unanswered && matches!(lane.phase, Phase::Ready))
            .then(|| News::Broken(lane.member.clone(), lane.local));
        if unanswered && outcome != Outcome::ClientError {
            let mut changes = lane.waiters.iter().filter(|waiter| waiter.changes);
            if changes.any(|waiter| !self.notes_misses(waiter.to)) {
                self.miss_aside(&lane.member, b"", text);
            }
        }
        for waiter in lane.waiters {
            self.deliver_error(waiter.to, lane.member.dialect, outcome, text);
        }
        // Behind the news of what was missed, as only the connections of who owes are noted.
        self.wishes.news.extend(broken);
    }

    /// The server closed or broke the connection.
    pub fn lane_failed(&mut self, index: u32, generation: u32, error: Option<&Error>) {
        let Some(lane) = self
            .lanes
            .get(index as usize)
            .filter(|l| l.generation == generation)
        else {
            return;
        };
        if let Some(error) = error
            && matches!(lane.phase, Phase::Connecting)
            && is_shortage(error)
        {
            return self.lane_unmade(index, &reason(error));
        }
        let idle = lane.waiters.is_empty() && lane.download.is_none() && matches!(lane.phase, Phase::Ready);
        if idle {
            // Servers close idle connections; the next request opens a new one.
            return self.drop_lane(index, "");
        }
        let text = match error {
            Some(error) => reason(error),
            None => "Connection closed by the server".into(),
        };
        let refused = matches!(lane.phase, Phase::Connecting) && error.is_some_and(is_refusal);
        let failure = if refused {
            Failure::Refused
        } else {
            Failure::Connection
        };
        // As the errors that follow do.
        let named = format!("{}: {text}", lane.member.address);
        self.blame(index, failure, &text);
        self.end_lane(index, Outcome::ConnectError, &named);
    }

    /// There was no descriptor for the connection. Nothing was sent, and the server is not to blame: it is neither ejected, nor
    /// has a copy missed anything, as its change is refused.
    fn lane_unmade(&mut self, index: u32, why: &str) {
        let Some(lane) = self.lanes.get(index as usize) else {
            return;
        };
        let text = format!("cannot connect to {}: {why} in this proxy", lane.member.address);
        self.fall_short(Shortage::Connect, &text);
        self.end_lane(index, Outcome::Overloaded, &text);
    }

    /// Ends lanes whose server is late, and what waits too long for an agreement. Called a few times a second.
    pub fn check_lanes(&mut self) {
        self.look_at_parked();
        let now = self.now;
        let late: Vec<(u32, u32, bool)> = self
            .lanes
            .iter()
            .filter_map(|(index, lane)| Some((index as u32, lane.generation, lane.is_late(now)?)))
            .collect();
        for (index, generation, connecting) in late {
            // The end of one can end another, and bring a fresh one in its place.
            if self
                .lanes
                .get(index as usize)
                .is_none_or(|lane| lane.generation != generation)
            {
                continue;
            }
            if connecting {
                self.fail_lane(
                    index,
                    Failure::Connection,
                    Outcome::ConnectTimeout,
                    "connection timeout",
                );
            } else {
                self.fail_lane(index, Failure::Timeout, Outcome::Timeout, "timeout");
            }
        }
    }

    /// Ends lanes that are held back for a reader who has taken all that was for him, and longer than he may take for it: a
    /// reply of his that comes first is late, and may stand behind this one (a failed server's requests go to others).
    pub(crate) fn end_forgotten(&mut self, refused: &dyn Fn(Conn) -> usize) {
        if self.held_lanes == 0 {
            return;
        }
        let patience = self.limits.write_timeout.as_micros() as u64;
        let takes = |(client, generation): (u32, u32)| {
            self.clients
                .get(client as usize)
                .filter(|client| client.generation == generation)
                .is_some_and(|client| {
                    !client.stream.out.is_empty() || client.stream.conn.map_or(0, refused) > 0
                })
        };
        let forgotten: Vec<(u32, u32)> = self
            .lanes
            .iter()
            .filter(|(_, lane)| lane.stream.paused && self.now.saturating_sub(lane.active) > patience)
            .filter(|(_, lane)| !lane.reader().is_some_and(takes))
            .map(|(index, lane)| (index as u32, lane.generation))
            .collect();
        for (index, generation) in forgotten {
            // The end of one can end another.
            if self.lane(index, generation).is_some() {
                let text = "the reply before it waits for an earlier one of its client";
                self.end_lane(index, Outcome::ConnectError, text);
            }
        }
    }

    /// Ends the lanes on which this copy may still be given a change: what it owes must not be paid before that is known.
    pub(crate) fn cut_changes(&mut self, member: MemberId) {
        let changing: Vec<(u32, u32)> = self
            .lanes
            .iter()
            .filter(|(_, lane)| lane.member.id == member && lane.waiters.iter().any(|waiter| waiter.changes))
            .map(|(index, lane)| (index as u32, lane.generation))
            .collect();
        for (index, generation) in changing {
            // The end of one can end another.
            if self.lane(index, generation).is_some() {
                self.end_lane(
                    index,
                    Outcome::ConnectError,
                    "the server missed a write and is not asked before it was repaired",
                );
            }
        }
    }

    /// Lanes follow the settings that their members have now.
    pub fn renew_lanes(&mut self) {
        let members = self.tree.members();
        for (_, lane) in &mut self.lanes {
            if let Ok(at) = members.binary_search_by_key(&lane.member.id, |member| member.id)
                && !Arc::ptr_eq(&members[at], &lane.member)
            {
                lane.member = Arc::clone(&members[at]);
            }
        }
    }

    /// Closes the lanes to members that the tree does not name any more, as soon as nobody waits on them.
    pub fn retire_lanes(&mut self) {
        let gone: Vec<u32> = self
            .lanes
            .iter()
            .filter(|(_, lane)| !self.tree.names(lane.member.id))
            .filter(|(_, lane)| {
                lane.waiters.is_empty() && lane.download.is_none() && lane.uploading.is_none()
            })
            .map(|(index, _)| index as u32)
            .collect();
        for index in gone {
            self.drop_lane(index, "");
        }
    }

    /// A bulk lane has done its message: it waits for the next or is closed.
    pub(crate) fn settle_lane(&mut self, index: u32) {
        let Some(lane) = self.lanes.get_mut(index as usize) else {
            return;
        };
        let busy = !lane.waiters.is_empty() || lane.download.is_some() || lane.uploading.is_some();
        if !lane.bulk || busy {
            return;
        }
        let lanes = &mut self.by_member[lane.member.id.0 as usize];
        if lanes.shared.is_none() {
            lanes.shared = Some(index);
            lane.bulk = false;
            lanes.bulk = lanes.bulk.saturating_sub(1);
        } else if lanes.idle.len() < IDLE_BULK && !lanes.idle.contains(&index) {
            lanes.idle.push(index);
        } else if !lanes.idle.contains(&index) {
            self.drop_lane(index, "");
        }
        self.wake_uploads();
    }

    /// Uploads that waited for a bulk lane, or for one that was slow, go on.
    fn wake_uploads(&mut self) {
        let stalled: Vec<u32> = self
            .clients
            .iter()
            .filter(|(_, client)| client.stalled)
            .map(|(index, _)| index as u32)
            .collect();
        for client in stalled {
            self.requeue(client);
        }
    }

    /// A server has taken what was sent to it: clients that wait to send it more go on.
    pub fn lane_drained(&mut self, index: u32, generation: u32) {
        let now = self.now;
        let Some(lane) = self.lane(index, generation) else {
            return;
        };
        lane.active = now;
        let more = !lane.stream.out.is_empty() || !lane.stream.wire.is_empty();
        let uploading = lane.uploading;
        if more {
            self.flush_later(Peer::Lane { index, generation });
        }
        if let Some((client, _)) = uploading {
            self.requeue(client);
        }
    }
}

impl Lane {
    /// Is the server late? Some(true): with the connection itself.
    fn is_late(&self, now: u64) -> Option<bool> {
        if !matches!(self.phase, Phase::Ready) {
            let limit = self.member.connect_timeout.as_micros() as u64;
            return (now.saturating_sub(self.free) > limit).then_some(true);
        }
        // Held back for a slow reader, or it has taken all that a slow writer gave.
        if self.stream.paused || self.uploading.is_some() && self.stream.out.is_empty() {
            return None;
        }
        let since = match self.waiters.front() {
            // As long as bytes move, a large message is not late.
            _ if self.is_streaming() || self.uploading.is_some() => self.active,
            Some(waiter) if self.bulk => waiter.sent.max(self.active),
            Some(waiter) => waiter.sent.max(self.free),
            None => return None,
        };
        // The member is looked at last: most lanes of many are idle, and theirs is far memory.
        let limit = self.member.timeout.as_micros() as u64;
        (now.saturating_sub(since) > limit).then_some(false)
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
