//! From a server's bytes to replies.

use proxima_wire::message::{Outcome, Parsed};

use super::Phase;
use crate::{
    client::WHOLE,
    dialect::{Message, UNASKED},
    engine::Engine,
    members::Failure,
};

impl Engine {
    /// Plain bytes from a server.
    pub fn lane_bytes(&mut self, index: u32, generation: u32, bytes: &[u8]) {
        let now = self.now;
        let Some(lane) = self.lane(index, generation) else {
            return;
        };
        lane.active = now;
        if lane.stream.stash.is_empty() {
            let used = self.replies(index, bytes);
            if let Some(lane) = self.lane(index, generation) {
                lane.stream.keep(&bytes[used..]);
            }
            return;
        }
        let mut stash = std::mem::take(&mut lane.stream.stash);
        let mut at = 0;
        // Only the message that has begun is put together; what follows it is read where it is.
        while at < bytes.len() {
            let begun = stash.len();
            let missing = self.missing(index, &stash).clamp(1, bytes.len() - at);
            stash.extend_from_slice(&bytes[at..at + missing]);
            at += missing;
            let used = self.replies(index, &stash);
            if used >= begun {
                at -= stash.len() - used;
                stash.clear();
                break;
            }
            stash.drain(..used);
        }
        let lives = self
            .lanes
            .get(index as usize)
            .is_some_and(|lane| lane.generation == generation);
        if lives && stash.is_empty() && at < bytes.len() {
            at += self.replies(index, &bytes[at..]);
        }
        if let Some(lane) = self.lane(index, generation) {
            stash.extend_from_slice(&bytes[at.min(bytes.len())..]);
            lane.stream.stash = stash;
        }
    }

    /// How many bytes the message that begins with `stash` still lacks; where that cannot be told yet, as many as its first
    /// line may take.
    fn missing(&self, index: u32, stash: &[u8]) -> usize {
        const LINE: usize = 512;
        let Some(lane) = self.lanes.get(index as usize) else {
            return LINE;
        };
        if !matches!(lane.phase, Phase::Ready) {
            return LINE;
        }
        let command = lane.waiters.front().map_or(UNASKED, |waiter| waiter.command);
        match lane.member.dialect.reply(command, stash) {
            Parsed::Head(Message::Last(reply) | Message::Part(reply) | Message::Push(reply))
                if reply.len() <= WHOLE =>
            {
                (reply.len() as usize).saturating_sub(stash.len())
            }
            _ => LINE,
        }
    }

    /// Hands out as many replies as there are; returns how many bytes they were.
    fn replies(&mut self, index: u32, bytes: &[u8]) -> usize {
        let mut at = 0;
        loop {
            let Some(lane) = self.lanes.get_mut(index as usize) else {
                return bytes.len();
            };
            let rest = &bytes[at..];
            if lane.download.is_some() {
                at += self.download(index, rest);
                if self
                    .lanes
                    .get(index as usize)
                    .is_some_and(|lane| lane.download.is_some())
                {
                    return at;
                }
                continue;
            }
            if rest.is_empty() {
                return at;
            }
            if !matches!(lane.phase, Phase::Ready) {
                match self.log_in(index, rest) {
                    Some(used) => at += used,
                    None => return at,
                }
                continue;
            }
            let waiter = lane.waiters.front().copied();
            let command = waiter.map_or(UNASKED, |waiter| waiter.command);
            // By reference: a copy of what was just written in parts makes the processor wait until it has left its store buffer.
            match (&lane.member.dialect.reply(command, rest), waiter) {
                (Parsed::More, _) => return at,
                (Parsed::Head(Message::Push(reply)), _) if reply.len() <= WHOLE => {
                    let Some(_) = rest.get(..reply.len() as usize) else {
                        return at;
                    };
                    at += reply.len() as usize;
                    self.figures.pushes += 1;
                }
                (Parsed::Head(Message::Part(reply)), Some(waiter)) if reply.len() <= WHOLE => {
                    let Some(part) = rest.get(..reply.len() as usize) else {
                        return at;
                    };
                    at += part.len();
                    self.part(index, waiter.to, part);
                }
                (Parsed::Head(Message::Last(reply)), Some(waiter)) => {
                    if reply.len() > WHOLE {
                        at += self.begin_download(index, reply, rest);
                        continue;
                    }
                    let Some(whole) = rest.get(..reply.len() as usize) else {
                        return at;
                    };
                    if !lane.member.dialect.is_whole(reply, whole) {
                        self.fail_lane(
                            index,
                            Failure::Garbage,
                            Outcome::ConnectError,
                            "the server's reply has no end",
                        );
                        return bytes.len();
                    }
                    at += whole.len();
                    let member = lane.member.id;
                    let failed = reply.outcome.is_failover();
                    lane.waiters.pop_front();
                    self.in_flight -= 1;
                    if !failed {
                        lane.member.health.succeeded();
                    }
                    self.figures
                        .member(member)
                        .replied(self.now - waiter.sent, failed);
                    if lane.part_bytes == 0 {
                        self.deliver(waiter.to, reply, whole);
                    } else {
                        self.last_part(index, waiter.to, *reply, whole);
                    }
                    if lane_is_bulk(self, index) {
                        self.settle_lane(index);
                    }
                }
                _ => {
                    let text = "the server answered what is no reply";
                    self.fail_lane(index, Failure::Garbage, Outcome::ConnectError, text);
                    return bytes.len();
                }
            }
        }
    }
}

#[inline]
fn lane_is_bulk(engine: &Engine, index: u32) -> bool {
    engine.lanes.get(index as usize).is_some_and(|lane| lane.bulk)
}
