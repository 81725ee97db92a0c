//! Parsing of a server's bytes into replies.

use proxima_wire::message::{Outcome, Parsed, Reply};

use super::{Phase, Waiter};
use crate::{
    client::{LaneEvent, WHOLE},
    engine::{Engine, LaneId},
    members::Failure,
    protocol::{FOREIGN, MALFORMED, Message, UNASKED},
};

impl Engine {
    /// Takes plain bytes from a server.
    pub fn lane_bytes(&mut self, id: LaneId, bytes: &[u8]) {
        let now = self.now;
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        lane.active = now;
        lane.received += bytes.len() as u64;
        if lane.fitted {
            lane.member.health.heard();
        }
        let is_own = lane.owner.is_some();
        if lane.waits_for_owner {
            lane.stream.read_buffer.extend_from_slice(bytes);
            self.charge_lane(id);
            return self.keep_within_room();
        }
        if lane.stream.read_buffer.is_empty() {
            let used = self.replies(id, bytes);
            if let Some(lane) = self.servers.lanes.get_mut(id) {
                lane.stream.read_buffer.extend_from_slice(&bytes[used..]);
            }
            if is_own {
                self.charge_lane(id);
            }
            return self.keep_within_room();
        }
        let mut read_buffer = std::mem::take(&mut lane.stream.read_buffer);
        let mut at = 0;
        // Only the message that has begun is put together in the read buffer; the bytes behind it are read in
        // place.
        while at < bytes.len() && !self.waits_for_owner(id) {
            let begun = read_buffer.len();
            let missing = self.missing(id, &read_buffer).clamp(1, bytes.len() - at);
            read_buffer.extend_from_slice(&bytes[at..at + missing]);
            at += missing;
            let used = self.replies(id, &read_buffer);
            if used >= begun {
                at -= read_buffer.len() - used;
                read_buffer.clear();
                break;
            }
            read_buffer.drain(..used);
        }
        let lives = self.servers.lanes.get(id).is_some();
        if lives && read_buffer.is_empty() && at < bytes.len() {
            at += self.replies(id, &bytes[at..]);
        }
        if let Some(lane) = self.servers.lanes.get_mut(id) {
            read_buffer.extend_from_slice(&bytes[at.min(bytes.len())..]);
            lane.stream.read_buffer = read_buffer;
        }
        if is_own {
            self.charge_lane(id);
        }
        self.keep_within_room();
    }

    /// The number of bytes that the message in `read_buffer` still lacks. Where that is not known yet, the
    /// most bytes that the first line may take.
    fn missing(&self, id: LaneId, read_buffer: &[u8]) -> usize {
        const LINE: usize = 512;
        let Some(lane) = self.servers.lanes.get(id) else {
            return LINE;
        };
        if !matches!(lane.phase, Phase::Ready) {
            // A login sees all bytes that have come: none may follow the message that begins the upgrade.
            return usize::MAX;
        }
        let command = lane.waiters.first().map_or(UNASKED, |waiter| waiter.command);
        let mut parse = lane.stream.parse;
        match lane
            .member
            .protocol
            .reply(&lane.state, &mut parse, command, read_buffer)
        {
            Parsed::Head(message) if message.head().len() <= lane.largest_push(self.clients.share()) => {
                (message.head().len() as usize).saturating_sub(read_buffer.len())
            }
            _ => LINE,
        }
    }

    /// Delivers all complete replies. Returns the number of bytes used.
    pub(super) fn replies(&mut self, id: LaneId, bytes: &[u8]) -> usize {
        let (mut at, now) = (0, self.now);
        while let Some(lane) = self.servers.lanes.get_mut(id) {
            let rest = &bytes[at..];
            if lane.is_plain()
                && let Some(waiter) = lane.waiters.first()
                && let &Waiter {
                    to, command, sent, ..
                } = waiter
                && let Some(reply) =
                    &lane
                        .member
                        .protocol
                        .whole(&lane.state, command, lane.asked(waiter), rest, WHOLE)
            {
                let whole = &rest[..reply.len() as usize];
                at += whole.len();
                let (pool, member) = (lane.member.pool.id, lane.member.id);
                lane.answered(reply, now, &mut self.buffers);
                self.servers.in_flight -= 1;
                self.metrics
                    .served(pool, member, (self.now - sent).0, reply.outcome);
                if self.is_fetching()
                    && let Some(lane) = self.servers.lanes.get(id)
                {
                    self.preload_fetched(|number| Some(lane.waiters.get(number)?.to));
                }
                self.deliver_from(member, to, reply, whole);
                continue;
            }
            match self.message(id, rest) {
                Some(used) => at += used,
                None => return at,
            }
        }
        bytes.len()
    }

    /// The request that waits first on this lane is answered by pushes alone: it waits no longer.
    pub(crate) fn end_wait(&mut self, id: LaneId) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        let Some(&Waiter { sent, .. }) = lane.waiters.first() else {
            return;
        };
        let (pool, member) = (lane.member.pool.id, lane.member.id);
        lane.answered(&Reply::new(Outcome::Ok, 0), self.now, &mut self.buffers);
        self.servers.in_flight -= 1;
        self.metrics
            .served(pool, member, (self.now - sent).0, Outcome::Ok);
    }

    /// Passes on what has come of a part, which may be larger than what is read at once. Returns the number
    /// of bytes used.
    fn pass_part_on(&mut self, id: LaneId, bytes: &[u8]) -> usize {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return bytes.len();
        };
        let piece = &bytes[..lane.part_left.min(bytes.len() as u64) as usize];
        lane.part_left -= piece.len() as u64;
        let to = lane.waits_for();
        self.part(id, to, piece);
        piece.len()
    }

    /// Takes the next message of a lane in any phase, complete or not. Returns the number of bytes used;
    /// `None` if more are needed.
    fn message(&mut self, id: LaneId, rest: &[u8]) -> Option<usize> {
        let due = self.clients.share();
        let whole = self.largest_whole(self.servers.lanes.get(id)?.waits_for());
        let lane = self.servers.lanes.get_mut(id)?;
        if lane.download.is_some() {
            let used = self.download(id, rest);
            let goes_on = self
                .servers
                .lanes
                .get(id)
                .is_some_and(|lane| lane.download.is_some());
            return Some(used).filter(|&used| used > 0 || !goes_on);
        }
        if rest.is_empty() {
            return None;
        }
        if lane.part_left > 0 {
            return Some(self.pass_part_on(id, rest));
        }
        if !matches!(lane.phase, Phase::Ready) {
            return self.log_in(id, rest);
        }
        if lane.dedicated && !self.owner_takes(id) {
            return None;
        }
        let lane = self.servers.lanes.get_mut(id)?;
        let waiter = lane.waiters.first().copied();
        let command = waiter.map_or(UNASKED, |waiter| waiter.command);
        let protocol = lane.member.protocol;
        let parsed = protocol.reply(&lane.state, &mut lane.stream.parse, command, rest);
        match (parsed, waiter) {
            (Parsed::More, _) => None,
            (Parsed::Head(Message::PushPart(reply)), _) if reply.len() <= WHOLE => {
                let part = rest.get(..reply.len() as usize)?;
                self.push_part(id, part, false);
                Some(part.len())
            }
            (Parsed::Head(Message::Push(reply)), _) if reply.len() <= lane.largest_push(due) => {
                let push = rest.get(..reply.len() as usize)?;
                match lane.pushed {
                    0 => self.push(id, push),
                    _ => self.push_part(id, push, true),
                }
                Some(push.len())
            }
            (Parsed::Head(Message::Push(_)), _) if lane.owner.is_some() => {
                // The message is larger than what its client may have buffered: the server has done nothing
                // wrong.
                self.tell_owner(id, LaneEvent::Overwhelmed);
                Some(rest.len())
            }
            (Parsed::Head(Message::Part(reply)), Some(waiter))
                if reply.trailer > 0
                    && lane.fitted
                    && let Some(part) = rest.get(..reply.len() as usize) =>
            {
                self.note_reply(id, command, &reply, part);
                match self.finish_fitted(id, (waiter.to, command), &reply, part) {
                    Some((_, ending)) => {
                        self.part(id, waiter.to, &ending);
                        self.give_ending(ending);
                    }
                    None => self.part(id, waiter.to, part),
                }
                Some(part.len())
            }
            (Parsed::Head(Message::Part(reply)), Some(_)) => {
                lane.part_left = reply.len();
                if lane.fitted {
                    self.tell_owner(id, LaneEvent::Begun(command));
                }
                Some(self.pass_part_on(id, rest))
            }
            (Parsed::Head(Message::Last(_)), Some(waiter))
                if protocol.is_foreign(command, lane.asked(&waiter), rest) =>
            {
                self.fail_lane(id, Failure::Garbage, Outcome::ConnectError, FOREIGN);
                Some(rest.len())
            }
            (Parsed::Head(Message::Last(reply)), Some(_)) if reply.len() > whole => {
                Some(self.begin_download(id, &reply, rest))
            }
            (Parsed::Head(Message::Last(reply)), Some(waiter)) => {
                let whole = rest.get(..reply.len() as usize)?;
                if !protocol.is_whole(&reply, whole) {
                    let what = "reply without an end";
                    self.fail_lane(id, Failure::Garbage, Outcome::ConnectError, what);
                    return Some(rest.len());
                }
                let (pool, member) = (lane.member.pool.id, lane.member.id);
                let (in_parts, settles) = (lane.part_bytes > 0, lane.bulk || lane.dedicated);
                let is_own = lane.dedicated;
                lane.answered(&reply, self.now, &mut self.buffers);
                self.servers.in_flight -= 1;
                self.metrics
                    .served(pool, member, (self.now - waiter.sent).0, reply.outcome);
                let used = whole.len();
                self.note_reply(id, command, &reply, whole);
                let ending = self.finish_fitted(id, (waiter.to, command), &reply, whole);
                let (reply, whole) = match &ending {
                    Some((reply, ending)) => (*reply, &ending[..]),
                    None => (reply, whole),
                };
                if is_own {
                    self.end_queued_changes(id, &reply, whole);
                }
                if in_parts {
                    self.last_part(id, waiter.to, reply, whole);
                } else if is_own {
                    // The lane is given back first: what the reply says may lead the request to another one.
                    self.settle_lane(id);
                    self.deliver_from(member, waiter.to, &reply, whole);
                } else {
                    self.deliver_from(member, waiter.to, &reply, whole);
                }
                if settles && (in_parts || !is_own) {
                    self.settle_lane(id);
                }
                if let Some((_, ending)) = ending {
                    self.give_ending(ending);
                }
                self.release_answered(id);
                Some(used)
            }
            _ => {
                self.fail_lane(id, Failure::Garbage, Outcome::ConnectError, MALFORMED);
                Some(rest.len())
            }
        }
    }
}
