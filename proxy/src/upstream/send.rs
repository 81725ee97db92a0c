//! Sending of requests to servers.

use std::sync::Arc;

use proxima_wire::message::{Class, Outcome, Reply, Request};

use super::{Effects, Pace, Trial, UNREPAIRED, Unfit, Waiter};
use crate::{
    engine::{Endpoint, Engine, LaneId, ReplyTo},
    members::Member,
    protocol::{Change, Effect, Failed},
};

/// The most bytes that may wait for a server that takes none, counting requests for which no client waits;
/// beyond this they are rejected. Requests for which a client waits are bounded by the clients' shares of
/// memory.
pub(super) const LANE_BYTES: usize = 16 << 20;

/// The most bytes of a request that is not called large. Servers that limit what they take from a client take
/// as much from everybody.
const LARGE: usize = 16 * 1024;

/// May this request change what a copy holds?
fn changes_copy(member: &Member, request: &Request, message: &[u8]) -> bool {
    member.copied.is_some_and(|copied| {
        request.class != Class::Read
            && !matches!(copied.effect(request, message), Effect::Look | Effect::LookAtHome)
    })
}

impl Engine {
    /// Hands a request to a lane of this member. `message` is the complete request, or the head of a streamed
    /// one.
    #[inline]
    pub(crate) fn send(
        &mut self,
        member: &Arc<Member>,
        login: u16,
        request: &Request,
        message: &[u8],
        to: ReplyTo,
    ) {
        if !(member.is_up() || request.is_dedicated && self.finishes_on(member, to)) {
            return self.not_sent(member, request, message, to, Outcome::Ejected, member.refusal());
        }
        if member.is_copy() && !self.may_ask(member, request) {
            return self.not_sent(member, request, message, to, Outcome::Ejected, UNREPAIRED);
        }
        if request.is_dedicated {
            return self.send_dedicated(member, login, request, message, to);
        }
        let streamed = (message.len() as u64) < request.len();
        let id = if streamed {
            self.bulk_lane(member, login)
        } else {
            self.shared_lane(member, login)
        };
        self.give(id, member, request, message, to);
    }

    /// Does this client have a connection of its own to a member that drains? It may end there what it has
    /// begun.
    #[cold]
    fn finishes_on(&self, member: &Member, to: ReplyTo) -> bool {
        let is_well = member.health.is_up() || member.fails_open();
        let client = self.slot_of(to).map(|(client, _)| client);
        let own = client.and_then(|client| self.clients.own_lane(client)?);
        let lane = own.and_then(|own| self.servers.lane(own));
        is_well && lane.is_some_and(|lane| lane.member.id == member.id)
    }

    /// Appends a request to this lane.
    #[inline(always)] // Inlining saves a hundredth of a pipelined request.
    pub(crate) fn give(
        &mut self,
        id: LaneId,
        member: &Arc<Member>,
        request: &Request,
        message: &[u8],
        to: ReplyTo,
    ) {
        let streamed = (message.len() as u64) < request.len();
        let now = self.now;
        if request.needs_proof
            && let Err(what) = self.ask_proof(id, request.command)
        {
            self.settle_lane(id);
            return self.not_sent(member, request, message, to, Outcome::LocalError, &what);
        }
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        if lane.limited
            && let Some(unfit) = Unfit::of(member.protocol, request, message)
        {
            let what = lane.limit.clone();
            self.settle_lane(id);
            return match unfit {
                Unfit::Unknown => {
                    self.not_sent(member, request, message, to, Outcome::LocalError, &what);
                }
                Unfit::Closes(_) => self.reject_unfit(to, unfit, (&member.address, &what)),
            };
        }
        if request.is_unanswered && member.is_copy() {
            let what = "a copy must answer every request";
            return self.not_sent(member, request, message, to, Outcome::LocalError, what);
        }
        // Requests for which a client waits are bounded by the client's limit of requests in flight. A copy
        // misses each write that is rejected for it, and the proxy's own overload is not the copy's failure.
        let is_bounded = matches!(to, ReplyTo::Client { .. }) && !request.is_unanswered;
        if lane.requests().len() > LANE_BYTES && !is_bounded && !member.is_copy() {
            let what = "too many requests wait for it";
            self.settle_lane(id);
            return self.not_sent(member, request, message, to, Outcome::Overloaded, what);
        }
        if lane.fitted {
            return self.give_fitted(id, request, message, to);
        }
        let requests = match lane.holds_requests() {
            false => lane.stream.filling(&mut self.buffers),
            true => &mut lane.held,
        };
        let begun = requests.len();
        if request.quiet.is_empty() {
            requests.extend_from_slice(message);
        } else {
            if !member
                .protocol
                .rewrite(request, message, &Change::default(), requests)
            {
                let text = "this request cannot be sent without its quiet flag";
                self.settle_lane(id);
                return self.fail(to, &Failed::here(Outcome::LocalError, text));
            }
            let body = message.get(request.head as usize..).unwrap_or_default();
            requests.extend_from_slice(body);
        }
        let size = requests.len() - begun;
        let at = lane.given as u32;
        lane.given += size as u64;
        if !request.is_unanswered {
            let (key_start, key_len) = match request.names_key {
                true => request.key.compact().unwrap_or_default(),
                false => (0, 0),
            };
            lane.waiters.push(Waiter {
                to,
                at,
                command: request.command,
                key_start,
                key_len,
                trial: if size > LARGE {
                    Trial::Large
                } else {
                    Trial::Innocent
                },
                effects: Effects::new(
                    request.class == Class::Read,
                    changes_copy(member, request, message),
                ),
                extra_time: if lane.dedicated { request.extra_timeout } else { 0 },
                sent: now,
            });
            self.servers.in_flight += 1;
        }
        self.metrics.sent(request.command);
        if lane.stream.mark() {
            self.actions.flush.push(Endpoint::Lane(id));
        }
        if streamed {
            lane.uploading = self.servers.uploader;
            lane.active = now;
            lane.pace = Pace::since(now);
            self.servers.uploads.push(id);
        }
        if self.near.counts() {
            self.count_change(id, request, message);
        } else if request.key.is_empty() && self.tree.near().is_some() {
            self.note_flush(id, request, message);
        }
        if request.is_unanswered {
            // There is no reply: the sender learns only that the request is on its way.
            self.deliver(to, &Reply::new(Outcome::Ok, 0), b"");
            self.settle_lane(id);
        }
    }

    /// Sends a piece of the value that is being sent through this lane.
    pub(crate) fn send_piece(&mut self, id: LaneId, piece: &[u8], is_last: bool) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        if lane.requests().is_empty() {
            // The server has taken all bytes so far: only from now on can it be late.
            lane.active = self.now;
        }
        lane.requests().extend_from_slice(piece);
        lane.given += piece.len() as u64;
        lane.pace.moved(piece.len() as u64);
        if is_last {
            lane.uploading = None;
            lane.unwritten
                .iter_mut()
                .for_each(|unwritten| unwritten.uploader = None);
            // Time spent receiving the value does not count against the server.
            lane.free = self.now;
        }
        self.flush_later(Endpoint::Lane(id));
        if is_last {
            self.settle_lane(id);
        }
    }

    /// Fails a request that is not sent. If the member is a copy and the request may change it, the copy
    /// misses a write.
    #[cold]
    fn not_sent(
        &mut self,
        member: &Arc<Member>,
        request: &Request,
        message: &[u8],
        to: ReplyTo,
        outcome: Outcome,
        what: &str,
    ) {
        self.metrics.member(member.id).outcomes.count(outcome, 1);
        if changes_copy(member, request, message) && !self.tracks_misses(to) {
            let mut scratch = [0; 250];
            let key = member.protocol.key(request, message, &mut scratch);
            self.miss_bypass_write(member, key, what);
        }
        self.fail(to, &Failed::at(&member.address, outcome, what));
    }
}
