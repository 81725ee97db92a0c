//! Requests that the codec writes for one lane, and replies whose end it judges.
//!
//! Invariant: a request is written when its lane has logged in, and not before: what its server knows, and
//! what the login has agreed on, decide its bytes.
//!
//! Invariant: while a request waits for the answers to what goes before it, nothing behind it leaves on its
//! lane. The codec writes it when it has seen all of these answers.

use std::mem;

use proxima_wire::message::{Outcome, Reply, Request};

use super::{LANE_BYTES, Lane, Pace, Trial, Unwritten, Waiter};
use crate::{
    engine::{Endpoint, Engine, LaneId, ReplyTo},
    protocol::{Failed, Fate, Outgoing, PrecedingRequest, WriteResult},
};

/// The most times in a row that a request waits for what goes before it: each answer brings it nearer, or the
/// codec is wrong, and would have the server work for ever.
const MOST_WAITS: u8 = 16;

impl Engine {
    /// Writes a request for this lane, or keeps it until the login has ended or what goes before it is
    /// answered.
    #[inline(never)]
    pub(super) fn give_fitted(&mut self, id: LaneId, request: &Request, message: &[u8], to: ReplyTo) {
        let now = self.now;
        let session = self.slot_of(to).map(|(client, _)| client);
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        let streamed = (message.len() as u64) < request.len();
        if streamed {
            // A value whose last byte has come while the request was not written yet is no upload of the
            // lane.
            lane.uploading = self.servers.uploader;
            lane.active = now;
            lane.pace = Pace::since(now);
            self.servers.uploads.push(id);
        }
        // What is about to be ended is the request before: this one leaves when the server has done that.
        lane.holding |= lane.cancels > 0;
        let uploader = lane.uploading.filter(|_| streamed);
        let unwritten = || Unwritten {
            to,
            request: *request,
            message: message.to_vec(),
            uploader,
        };
        if lane.holding {
            // Requests for which a client waits are bounded by the client's limit of requests in flight.
            if session.is_none() && lane.unwritten_memory() > LANE_BYTES {
                let member = lane.member.clone();
                let failed = Failed::at(
                    &member.address,
                    Outcome::Overloaded,
                    "too many requests wait for it",
                );
                return self.fail(to, &failed);
            }
            self.servers.in_flight += 1;
            return lane.unwritten.push(unwritten());
        }
        if lane.waits == MOST_WAITS {
            lane.waits = 0;
            if streamed {
                self.leave_upload(id);
            }
            let text = "what goes before it has no end";
            self.fail(to, &Failed::here(Outcome::LocalError, text));
            return self.settle_lane(id);
        }
        let out = lane.stream.filling(&mut self.buffers);
        let begun = out.len();
        let (mut before, mut answer) = (
            mem::take(&mut self.servers.before),
            mem::take(&mut self.servers.ending),
        );
        let written = lane.member.protocol.write(
            &mut lane.state,
            self.clients.session(session),
            request,
            message,
            &mut Outgoing::new(out, &mut before, &mut answer),
        );
        let size = (out.len() - begun) as u64;
        let mut at = lane.given as u32;
        lane.given += size;
        let waiter = Waiter {
            sent: now,
            trial: Trial::Large,
            ..Waiter::NOBODY
        };
        for &PrecedingRequest { command, len } in &before {
            lane.waiters.push(Waiter {
                at,
                command,
                ..waiter
            });
            self.metrics.sent_own(lane.member.pool.id, command);
            at = at.wrapping_add(len);
        }
        self.servers.in_flight += before.len();
        before.clear();
        self.servers.before = before;
        if written != WriteResult::Waits {
            lane.waits = 0;
        }
        if size > 0 {
            self.flush_later(Endpoint::Lane(id));
        }
        match written {
            WriteResult::Whole => self.give_ending(answer),
            WriteResult::Waits => {
                self.give_ending(answer);
                return self.wait_for_before(id, unwritten());
            }
            WriteResult::Answered(reply) | WriteResult::Known(reply) => {
                if matches!(written, WriteResult::Known(_)) {
                    self.note_reply(id, request.command, &reply, &answer);
                }
                if streamed {
                    self.leave_upload(id);
                }
                // The lane is given back first: what the answer says may lead the request to another one.
                self.settle_lane(id);
                self.deliver(to, &reply, &answer);
                return self.give_ending(answer);
            }
        }
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        if !request.is_unanswered {
            self.servers.in_flight += 1;
            lane.waiters.push(Waiter {
                to,
                at,
                command: request.command,
                extra_time: match lane.dedicated || matches!(to, ReplyTo::Pool { .. }) {
                    true => request.extra_timeout,
                    false => 0,
                },
                ..waiter
            });
        }
        self.metrics.sent(request.command);
        if self.near.counts() {
            self.count_change(id, request, message);
        }
        if request.is_unanswered {
            self.deliver(to, &Reply::new(Outcome::Ok, 0), b"");
            self.settle_lane(id);
        }
    }

    /// Has a request of this lane, and all that are given to it from now on, wait for the answers to what has
    /// gone before it.
    fn wait_for_before(&mut self, id: LaneId, unwritten: Unwritten) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        if lane.waiters.is_empty() {
            let text = "it waits for nothing";
            self.leave_upload(id);
            self.fail(unwritten.to, &Failed::here(Outcome::LocalError, text));
            return self.settle_lane(id);
        }
        (lane.holding, lane.awaits_before) = (true, true);
        lane.waits += 1;
        self.servers.in_flight += 1;
        lane.unwritten.push(unwritten);
    }

    /// This lane has a reply: a request that has waited for what goes before it is written, if that is
    /// answered.
    pub(super) fn release_answered(&mut self, id: LaneId) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        if lane.awaits_before && lane.waiters.is_empty() && lane.download.is_none() {
            lane.awaits_before = false;
            self.release_held(id);
            self.settle_lane(id);
        }
    }

    /// Has a lane take no more of the value that comes for it: its request is not sent.
    fn leave_upload(&mut self, id: LaneId) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        lane.held.clear();
        self.servers.uploads.retain(|&other| other != id);
        if let Some(client) = lane.uploading.take() {
            self.leave_lane_of_upload(client, id);
        }
    }

    /// Sends the requests that were held, and holds no more.
    pub(super) fn release_held(&mut self, id: LaneId) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        if lane.awaits_before {
            return;
        }
        lane.holding = false;
        let releases = !lane.unwritten.is_empty();
        // A command that has waited for its turn was written: it goes before what has come behind it.
        if !lane.unwritten.iter().any(Unwritten::is_streamed) {
            let held = mem::take(&mut lane.held);
            lane.stream.out.extend_from_slice(&held);
        }
        if releases {
            // One that is answered here ends nothing: those behind it are for the same client.
            lane.gets_more = true;
            let (member, begun) = (lane.member.clone(), mem::take(&mut lane.unwritten));
            let uploader = self.servers.uploader;
            self.servers.in_flight -= begun.len();
            // A client that is answered meanwhile sends nothing in the name of another's upload.
            self.descend(|engine| {
                for unwritten in begun {
                    if engine.servers.lanes.get(id).is_none() {
                        let failed = Failed::at(&member.address, Outcome::ConnectError, Failed::CLOSED);
                        let fate = Fate::Unsent;
                        engine.fail(unwritten.to, &Failed { fate, ..failed });
                        continue;
                    }
                    engine.servers.uploader = unwritten.uploader;
                    engine.give(id, &member, &unwritten.request, &unwritten.message, unwritten.to);
                }
                engine.servers.uploader = uploader;
                if let Some(lane) = engine.servers.lanes.get_mut(id) {
                    lane.gets_more = false;
                }
                // What was answered here may lead to another lane: its client has this one no longer.
                engine.settle_lane(id);
            });
        }
        // If requests are written for their lane, these are the bytes of a value that have come meanwhile: it
        // goes behind its request, which may be waiting again.
        if let Some(lane) = self.servers.lanes.get_mut(id)
            && !lane.holding
        {
            let held = mem::take(&mut lane.held);
            lane.stream.out.extend_from_slice(&held);
        }
        if releases {
            self.settle_lane(id);
        }
    }

    /// Shows a reply, or its head or last part, to the codec. Returns the reply in its place, with its bytes,
    /// which are to be [given back](Self::give_ending); `None` if the reply stays as it is.
    pub(super) fn finish_fitted(
        &mut self,
        id: LaneId,
        (to, command): (ReplyTo, u16),
        reply: &Reply,
        bytes: &[u8],
    ) -> Option<(Reply, Vec<u8>)> {
        let session = self.slot_of(to).map(|(client, _)| client);
        let lane = self.servers.lanes.get_mut(id).filter(|lane| lane.fitted)?;
        let mut ending = mem::take(&mut self.servers.ending);
        let session = self.clients.session(session.or(lane.owner));
        let protocol = lane.member.protocol;
        match protocol.finish(&mut lane.state, session, command, reply, bytes, &mut ending) {
            Some(reply) => Some((reply, ending)),
            None => {
                self.give_ending(ending);
                None
            }
        }
    }

    /// Takes back the buffer of an ending.
    pub(super) fn give_ending(&mut self, mut ending: Vec<u8>) {
        ending.clear();
        self.servers.ending = ending;
    }

    /// Answers requests that were never written.
    pub(super) fn fail_unwritten(&mut self, unwritten: Vec<Unwritten>, failed: &Failed<'_>) {
        self.servers.in_flight -= unwritten.len();
        for Unwritten { to, .. } in unwritten {
            self.fail(to, failed);
        }
    }
}

impl Lane {
    /// Bytes of memory that the requests which are not written yet take.
    pub(super) fn unwritten_memory(&self) -> usize {
        let messages = self.unwritten.iter().map(|one| one.message.capacity());
        messages.sum::<usize>() + self.unwritten.capacity() * size_of::<Unwritten>()
    }
}
