//! Requests that the codec writes for one lane, and replies whose end it judges.
//!
//! Invariant: a request is written when its lane has logged in, and not before: what its server knows, and
//! what the login has agreed on, decide its bytes.

use std::mem;

use proxima_wire::message::{Outcome, Reply, Request};

use super::{LANE_BYTES, Lane, Pace, Trial, Unwritten, Waiter};
use crate::{
    engine::{Endpoint, Engine, LaneId, ReplyTo},
    protocol::{Before, Failed, Fate, Outgoing},
};

impl Engine {
    /// Writes a request for this lane, or keeps it until the login has ended.
    #[cold]
    pub(super) fn give_fitted(&mut self, id: LaneId, request: &Request, message: &[u8], to: ReplyTo) {
        let now = self.now;
        let session = self.slot_of(to).map(|(client, _)| client);
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        let streamed = (message.len() as u64) < request.len();
        if streamed {
            lane.uploading = self.servers.uploader;
            lane.active = now;
            lane.pace = Pace::since(now);
            self.servers.uploads.push(id);
        }
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
            return lane.unwritten.push(Unwritten {
                to,
                request: *request,
                message: message.to_vec(),
                uploader: lane.uploading.filter(|_| streamed),
            });
        }
        let out = lane.stream.filling(&mut self.buffers);
        let begun = out.len();
        let mut before = mem::take(&mut self.servers.before);
        lane.member.protocol.write(
            &mut lane.state,
            self.clients.session(session),
            request,
            message,
            &mut Outgoing::new(out, &mut before),
        );
        let written = out.len() - begun;
        let first = lane.given;
        lane.given += written as u64;
        let mut at = first as u32;
        let waiter = Waiter {
            sent: now,
            trial: Trial::Large,
            ..Waiter::NOBODY
        };
        let asked = before.len() + usize::from(!request.is_unanswered);
        for &Before { command, len } in &before {
            lane.waiters.push(Waiter {
                at,
                command,
                ..waiter
            });
            self.metrics.sent(command);
            at = at.wrapping_add(len);
        }
        if !request.is_unanswered {
            lane.waiters.push(Waiter {
                to,
                at,
                command: request.command,
                extra_time: if lane.dedicated { request.extra_timeout } else { 0 },
                ..waiter
            });
        }
        before.clear();
        self.servers.before = before;
        self.servers.in_flight += asked;
        self.metrics.sent(request.command);
        self.flush_later(Endpoint::Lane(id));
        if self.near.counts() {
            self.count_change(id, request, message);
        }
        if request.is_unanswered {
            self.deliver(to, &Reply::new(Outcome::Ok, 0), b"");
            self.settle_lane(id);
        }
    }

    /// Sends the requests that were held, and holds no more.
    pub(super) fn release_held(&mut self, id: LaneId) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        lane.holding = false;
        // Where requests are written for their lane, this is what has come of a value meanwhile: it goes
        // behind its request.
        let held = mem::take(&mut lane.held);
        if lane.unwritten.is_empty() {
            return lane.stream.out.extend_from_slice(&held);
        }
        let (member, begun) = (lane.member.clone(), mem::take(&mut lane.unwritten));
        let uploader = self.servers.uploader;
        self.servers.in_flight -= begun.len();
        // Who is answered meanwhile sends nothing in the name of another's upload.
        self.descend(|engine| {
            for unwritten in begun {
                engine.servers.uploader = unwritten.uploader;
                engine.give(id, &member, &unwritten.request, &unwritten.message, unwritten.to);
            }
            engine.servers.uploader = uploader;
        });
        if let Some(lane) = self.servers.lanes.get_mut(id) {
            lane.stream.out.extend_from_slice(&held);
        }
    }

    /// Shows a reply, or its head or last part, to the codec. Returns the reply in its place, with its bytes,
    /// which are to be [given back](Self::give_ending); `None`: it stays as it is.
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
            self.fail(
                to,
                &Failed {
                    fate: Fate::Unsent,
                    ..*failed
                },
            );
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
