//! Large replies, passed on as they come.
//!
//! Invariant: the memory that a large reply takes is bounded. With nobody behind it, the server is held back at
//! [`HIGH_WATER`]. With others behind it, it is collected, up to the configured bytes in all; beyond these the lane waits for the
//! reader, though not for long (`hold.rs`).
//!
//! Invariant: a lane is held back only while the reply that its reader is slow to take is under way. What comes next may be
//! another's, whose progress would free nothing.

use proxima_wire::message::Reply;

use super::{Download, Pace};
use crate::{
    client::{BULK_LANES, HIGH_WATER, WHOLE},
    engine::{Engine, Peer},
    route::ReplyTo,
};

impl Engine {
    /// The head of a large reply has come. Returns the bytes used.
    pub(super) fn begin_download(&mut self, index: u32, reply: &Reply, bytes: &[u8]) -> usize {
        let alone = self
            .lanes
            .get(index as usize)
            .is_some_and(|lane| lane.waiters.len() == 1);
        let collect = !(alone && self.make_bulk(index));
        let Some(lane) = self.lanes.get_mut(index as usize) else {
            return bytes.len();
        };
        let Some(waiter) = lane.waiters.pop_front() else {
            return bytes.len();
        };
        self.in_flight -= 1;
        let (member, generation) = (lane.member.clone(), lane.generation);
        lane.pace = Pace::since(self.now);
        member.health.succeeded();
        self.figures
            .served(member.pool_id, member.id, self.now - waiter.sent, false);
        let mut head = std::mem::take(&mut lane.parts);
        lane.part_bytes = 0;
        head.extend_from_slice(bytes.get(..reply.head as usize).unwrap_or(bytes));
        let claimed = self.claim(waiter.to, &mut head);
        let mut trailer = 0;
        let to = claimed.and_then(|(client, client_generation, seq)| {
            let target = self
                .clients
                .get_mut(client as usize)
                .filter(|client| client.generation == client_generation)?;
            let slot = target.slots.get(seq)?;
            trailer = if slot.part { u64::from(reply.trailer) } else { 0 };
            let listener = target.listener;
            let (command, started) = (slot.command, slot.started);
            target.reply_size = target.reply_size.max(reply.len() as usize);
            target.slots.part(seq, &head, &mut target.stream.out);
            self.figures
                .replied(command, reply.outcome, self.now - started, listener);
            self.flush_later(Peer::Client {
                index: client,
                generation: client_generation,
            });
            Some((client, client_generation, seq))
        });
        let Some(lane) = self.lane(index, generation) else {
            return bytes.len();
        };
        lane.download = Some(Download {
            to,
            remaining: reply.body,
            trailer,
            collect,
        });
        reply.head as usize
    }

    /// From now on this lane is its client's; new requests take a fresh one. False: there are too many such lanes already.
    fn make_bulk(&mut self, index: u32) -> bool {
        let Some(lane) = self.lanes.get(index as usize) else {
            return false;
        };
        if lane.bulk {
            return true;
        }
        let number = lane.member.id.0 as usize;
        if self.by_member[number].is_full() {
            self.by_member[number].wanted = Some(self.now);
            return false;
        }
        if self.by_member[number].bulk as usize >= BULK_LANES
            && let Some(idle) = self.by_member[number].idle.pop()
        {
            self.drop_lane(idle, "");
        }
        if let Some(lane) = self.lanes.get_mut(index as usize) {
            lane.bulk = true;
        }
        let lanes = &mut self.by_member[number];
        lanes.shared = None;
        lanes.bulk += 1;
        true
    }

    /// More of a large reply; returns the bytes used.
    pub(super) fn download(&mut self, index: u32, bytes: &[u8]) -> usize {
        let Some(lane) = self.lanes.get_mut(index as usize) else {
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
        match to.and_then(|(client, generation, seq)| {
            let found = self
                .clients
                .get_mut(client as usize)
                .filter(|client| client.generation == generation)?;
            Some((found, client, generation, seq))
        }) {
            Some((client, client_index, generation, seq)) => {
                let collected = client.slots.more(seq, &bytes[..visible], &mut client.stream.out);
                let waiting = collected + client.stream.out.len();
                if done {
                    client.slots.finish(seq, &mut client.stream.out);
                }
                hold = waiting > most;
                let stalled = client.stalled;
                self.flush_later(Peer::Client {
                    index: client_index,
                    generation,
                });
                if done && stalled {
                    self.requeue(client_index);
                }
            }
            // The reader is gone. Nobody is behind: closing is cheaper than reading the rest for nothing.
            None if !done && !collect => {
                self.drop_lane(index, "its client left in the middle of a reply");
                return bytes.len();
            }
            None => {}
        }
        if done {
            let lane = &mut self.lanes[index as usize];
            lane.download = None;
            lane.free = self.now;
            self.hold_lane(index, false);
            self.settle_lane(index);
        } else if hold {
            self.hold_lane(index, true);
        }
        used as usize
    }

    /// A part of a reply whose end only the codec knows. A client gets it as it comes. A flight gets the whole, as long as
    /// that is small; a larger one is claimed as every large reply is.
    pub(super) fn part(&mut self, index: u32, to: ReplyTo, bytes: &[u8]) {
        let Some(lane) = self.lanes.get_mut(index as usize) else {
            return;
        };
        if lane.part_bytes == 0 {
            lane.pace = Pace::since(self.now);
        }
        lane.pace.moved(bytes.len() as u64);
        lane.part_bytes += bytes.len() as u64;
        let large = lane.part_bytes > WHOLE;
        if large && lane.waiters.len() == 1 {
            self.make_bulk(index);
        }
        let ReplyTo::Flight { .. } = to else {
            return self.pass_part(index, to, bytes);
        };
        let Some(lane) = self.lanes.get_mut(index as usize) else {
            return;
        };
        lane.parts.extend_from_slice(bytes);
        if !large {
            return;
        }
        let mut parts = std::mem::take(&mut lane.parts);
        let to = match self.claim(to, &mut parts) {
            Some((index, generation, seq)) => ReplyTo::Client {
                index,
                generation,
                seq,
            },
            None => ReplyTo::Nobody,
        };
        if let Some(waiter) = self
            .lanes
            .get_mut(index as usize)
            .and_then(|lane| lane.waiters.front_mut())
        {
            waiter.to = to;
        }
        self.pass_part(index, to, &parts);
    }

    fn pass_part(&mut self, lane: u32, to: ReplyTo, bytes: &[u8]) {
        let alone = self
            .lanes
            .get(lane as usize)
            .is_some_and(|lane| lane.bulk && lane.part_bytes > WHOLE);
        let found = match to {
            ReplyTo::Client {
                index,
                generation,
                seq,
            } => self
                .client(index, generation)
                .map(|client| (Peer::Client { index, generation }, client, seq)),
            _ => None,
        };
        let Some((peer, client, seq)) = found else {
            // Nobody wants it and nobody is behind: closing is cheaper than reading the rest for nothing.
            if alone {
                self.drop_lane(lane, "its client left in the middle of a reply");
            }
            return;
        };
        let waiting = client.slots.part(seq, bytes, &mut client.stream.out) + client.stream.out.len();
        self.flush_later(peer);
        if waiting > self.most_waiting(!alone) {
            self.hold_lane(lane, true);
        }
    }

    /// Bytes of a large reply that may wait for its reader before its server is held back.
    fn most_waiting(&self, collect: bool) -> usize {
        if collect {
            self.room.collected()
        } else {
            HIGH_WATER
        }
    }

    /// The last part of a reply of several.
    pub(super) fn last_part(&mut self, index: u32, to: ReplyTo, mut reply: Reply, bytes: &[u8]) {
        let Some(lane) = self.lanes.get_mut(index as usize) else {
            return;
        };
        lane.part_bytes = 0;
        lane.free = self.now;
        let mut whole = std::mem::take(&mut lane.parts);
        reply.head += whole.len() as u32;
        whole.extend_from_slice(bytes);
        self.hold_lane(index, false);
        self.deliver(to, &reply, &whole);
    }
}
