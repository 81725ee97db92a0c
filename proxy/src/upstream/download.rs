//! Large replies, passed on to the client while they arrive.
//!
//! Invariant: the memory that a large reply takes is bounded. If no other request waits behind it, the lane
//! is not read any further while more than [`HIGH_WATER`] bytes wait for the client. If others wait behind
//! it, the reply is buffered, up to the configured total; beyond that total the lane waits for the reader,
//! for a limited time (`pause.rs`). A part of a split request that must come before anything else can leave
//! is read to its end: if there is no room for that, clients are closed (`room.rs`).
//!
//! Invariant: a lane is paused only while a reply to the slow reader is under way. The next reply may be
//! for another client, and holding it back would free no memory. If the next reply is for the same reader,
//! the lane stays paused.

use proxima_wire::message::Reply;

use super::{Download, Lane, Pace};
use crate::{
    client::{HIGH_WATER, WHOLE},
    engine::{Engine, LaneId, ReplyTo},
};

impl Engine {
    /// The head of a large reply has come. Returns the number of bytes used.
    pub(super) fn begin_download(&mut self, id: LaneId, reply: &Reply, bytes: &[u8]) -> usize {
        let alone = self
            .servers
            .lanes
            .get(id)
            .is_some_and(|lane| (lane.waiters.len() == 1 || lane.dedicated) && lane.unwritten.is_empty());
        let collect = !(alone && self.make_bulk(id));
        let command = self
            .servers
            .lanes
            .get(id)
            .and_then(|lane| Some(lane.waiters.first()?.command));
        let command = command.unwrap_or_default();
        let to = self
            .servers
            .lanes
            .get(id)
            .map_or(ReplyTo::Nobody, Lane::waits_for);
        if let Some((_, ending)) = self.finish_fitted(id, (to, command), reply, bytes) {
            self.give_ending(ending);
        }
        self.note_reply(id, command, reply, bytes);
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return bytes.len();
        };
        let Some(&waiter) = lane.waiters.first() else {
            return bytes.len();
        };
        lane.end_change();
        let is_own = lane.dedicated;
        lane.waiters.drop_first();
        if lane.waiters.is_empty() {
            lane.stream.drop_kept(&mut self.buffers);
        }
        self.servers.in_flight -= 1;
        let member = lane.member.clone();
        lane.pace = Pace::since(self.now);
        member.health.succeeded();
        let micros = (self.now - waiter.sent).0;
        self.metrics
            .served(member.pool.id, member.id, micros, reply.outcome);
        let mut parts = std::mem::take(&mut lane.parts);
        lane.part_bytes = 0;
        if is_own {
            self.end_queued_changes(id, reply, bytes);
        }
        let mut head = bytes.get(..reply.head as usize).unwrap_or(bytes);
        let slot = match waiter.to {
            ReplyTo::Client { client: id, seq } if parts.is_empty() => Some((id, seq)),
            to => {
                parts.extend_from_slice(head);
                let slot = self.handing_on(member.id, |engine| engine.give_large_reply(to, &mut parts));
                head = &parts;
                slot
            }
        };
        let trailer = slot.and_then(|slot| self.begin_large_reply(slot, reply, head));
        let to = slot.filter(|_| trailer.is_some());
        let trailer = trailer.unwrap_or(0);
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return bytes.len();
        };
        lane.download = Some(Download {
            to,
            remaining: reply.body,
            trailer,
            collect: collect || to.is_some_and(|(client, seq)| self.clients.is_part(client, seq)),
        });
        reply.head as usize
    }

    /// Passes on more bytes of a large reply. Returns the number of bytes used.
    pub(super) fn download(&mut self, id: LaneId, bytes: &[u8]) -> usize {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return bytes.len();
        };
        let Some(download) = &mut lane.download else {
            return 0;
        };
        let used = download.remaining.min(bytes.len() as u64);
        lane.pace.moved(used);
        let visible = download.remaining.saturating_sub(download.trailer).min(used) as usize;
        download.remaining -= used;
        let (done, to, collect) = (download.remaining == 0, download.to, download.collect);
        let most = self.most_waiting(collect);
        let mut hold = false;
        match to.and_then(|to| self.pass_piece(to, &bytes[..visible], done)) {
            Some(waiting) => {
                let is_due = || to.is_some_and(|(client, seq)| self.clients.is_due_part(client, seq));
                hold = waiting > most && !is_due();
            }
            // The reader is gone and no request waits behind it: closing is cheaper than reading and
            // discarding the rest.
            None if !done && !collect && !self.is_waited_for(id) => {
                self.drop_lane(id, "its client left in the middle of a reply");
                return bytes.len();
            }
            None => {}
        }
        if done {
            if let Some(lane) = self.servers.lanes.get_mut(id) {
                lane.download = None;
                lane.free = self.now;
            }
            let reader = to.map(|(client, _)| client);
            let goes_on = hold && reader.is_some_and(|reader| self.reads_next(id, reader));
            self.pause_lane(id, goes_on);
            self.settle_lane(id);
            self.release_answered(id);
        } else if hold {
            self.pause_lane(id, true);
        }
        used as usize
    }

    /// Passes on one part of a reply whose end only the codec knows. A client gets each part as it comes. A
    /// flight gets the whole reply as long as it is small; a larger one goes to one client, as every large
    /// reply does.
    pub(super) fn part(&mut self, id: LaneId, to: ReplyTo, bytes: &[u8]) {
        let most = match to {
            ReplyTo::Flight { .. } => self.largest_whole(to),
            _ => WHOLE,
        };
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        if lane.part_bytes == 0 {
            lane.pace = Pace::since(self.now);
        }
        lane.pace.moved(bytes.len() as u64);
        lane.part_bytes += bytes.len() as u64;
        let large = lane.part_bytes > most;
        if large && lane.waiters.len() == 1 && lane.unwritten.is_empty() {
            self.make_bulk(id);
        }
        if !matches!(
            to,
            ReplyTo::Flight { .. }
                | ReplyTo::Operation { .. }
                | ReplyTo::Admission { .. }
                | ReplyTo::Pool { .. }
        ) {
            return self.pass_part(id, to, bytes);
        }
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        lane.parts.extend_from_slice(bytes);
        if !large {
            return;
        }
        let (mut parts, member) = (std::mem::take(&mut lane.parts), lane.member.id);
        let to = match self.handing_on(member, |engine| engine.give_large_reply(to, &mut parts)) {
            Some((id, seq)) => ReplyTo::Client { client: id, seq },
            None => ReplyTo::Nobody,
        };
        if let Some(waiter) = self
            .servers
            .lanes
            .get_mut(id)
            .and_then(|lane| lane.waiters.first_mut())
        {
            waiter.to = to;
        }
        self.pass_part(id, to, &parts);
    }

    /// Passes on one part of a reply to the client that waits for it, if there is one.
    fn pass_part(&mut self, lane: LaneId, to: ReplyTo, bytes: &[u8]) {
        let alone = self.servers.lanes.get(lane).is_some_and(|lane| {
            let is_last = lane.waiters.len() == 1 && lane.unwritten.is_empty();
            (lane.bulk || lane.dedicated) && is_last && lane.part_bytes > WHOLE
        });
        let waiting = match to {
            ReplyTo::Client { client: id, seq } => self.pass_piece((id, seq), bytes, false),
            _ => None,
        };
        let Some(waiting) = waiting else {
            // The reader is gone and no request waits behind it: closing is cheaper than reading and
            // discarding the rest.
            if alone {
                self.drop_lane(lane, "its client left in the middle of a reply");
            }
            return;
        };
        let slot = match to {
            ReplyTo::Client { client, seq } => Some((client, seq)),
            _ => None,
        };
        let is_part = slot.is_some_and(|(client, seq)| self.clients.is_part(client, seq));
        let is_due = || slot.is_some_and(|(client, seq)| self.clients.is_due_part(client, seq));
        if waiting > self.most_waiting(!alone || is_part) && !is_due() {
            self.pause_lane(lane, true);
        }
    }

    /// Does any request wait behind the large reply that is being received on this lane?
    fn is_waited_for(&self, id: LaneId) -> bool {
        let lane = self.servers.lanes.get(id);
        lane.is_some_and(|lane| !lane.waiters.is_empty() || !lane.unwritten.is_empty())
    }

    /// The most bytes of a large reply that may wait for its reader before the lane is paused.
    fn most_waiting(&self, collect: bool) -> usize {
        if collect {
            self.clients.collected()
        } else {
            HIGH_WATER
        }
    }

    /// Delivers a reply that came in parts, now that its last part is here.
    pub(super) fn last_part(&mut self, id: LaneId, to: ReplyTo, mut reply: Reply, bytes: &[u8]) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        let member = lane.member.id;
        lane.part_bytes = 0;
        lane.free = self.now;
        let mut whole = std::mem::take(&mut lane.parts);
        reply.head += whole.len() as u32;
        whole.extend_from_slice(bytes);
        self.pause_lane(id, false);
        self.deliver_from(member, to, &reply, &whole);
    }
}
