//! A dedicated lane belongs to one client for as long as the server keeps state for that client: a
//! transaction, a subscription, or a command that blocks.
//!
//! Invariant: a client never gets a lane on which the server keeps state of another client. Only the codec
//! knows what the server keeps ([`Lease`]). A lane whose state is in doubt is closed.
//!
//! Invariant: a client is closed when its lane is lost together with the state that the server kept. Without
//! that state the client's next request would mean something else.

use std::{collections::VecDeque, mem, sync::Arc};

use proxima_wire::message::{Outcome, Reply, Request};

use super::{Lane, LaneId};
use crate::{
    client::{ClientId, WHOLE},
    dialect::{Failed, Lease},
    engine::Engine,
    members::Member,
    micros::Micros,
    route::ReplyTo,
};

const ELSEWHERE: &str = "what belongs together is on several servers, or of several logins";

/// The error text for a request that gets no dedicated lane.
fn in_use(member: &Member) -> String {
    let most = member.dedicated.max;
    format!("all {most} connections that clients may have for themselves (dedicated.max) are in use")
}

/// A worker's dedicated lanes to one member.
#[derive(Debug, Default)]
pub(super) struct Dedicated {
    count: usize,
    /// Lanes that belong to no client now; their servers keep no state.
    idle: Vec<LaneId>,
    /// Requests that wait for a lane, oldest first.
    queue: VecDeque<Queued>,
    /// `serve_queue` is running.
    serving: bool,
}

/// A request that waits for a dedicated lane of its client.
#[derive(Debug)]
struct Queued {
    client: ClientId,
    member: Arc<Member>,
    login: u16,
    to: ReplyTo,
    request: Request,
    message: Vec<u8>,
    /// The request fails at this time.
    due: Micros,
}

impl Engine {
    /// Hands a request to its client's dedicated lane to this member; opens the lane, or queues the request,
    /// if needed.
    pub(super) fn send_dedicated(
        &mut self,
        member: &Arc<Member>,
        login: u16,
        request: &Request,
        message: &[u8],
        to: ReplyTo,
    ) {
        if member.is_copy() {
            let what = "a replicated pool keeps no state for a single client";
            return self.fail(to, &Failed::here(Outcome::LocalError, what));
        }
        let gone = Failed::here(Outcome::LocalError, "its client has left");
        let Some((owner, _)) = self.slot_of(to) else {
            return self.fail(to, &gone);
        };
        let Some(own) = self.clients.own_lane(owner) else {
            return self.fail(to, &gone);
        };
        let lane = own.or_else(|| self.check_out(member, login, owner));
        match lane {
            Some(id) => {
                let is_there = self
                    .servers
                    .lanes
                    .get(id)
                    .is_some_and(|lane| lane.member.id == member.id && lane.login == login);
                if is_there {
                    self.give_dedicated(id, member, request, message, to);
                } else {
                    self.fail(to, &Failed::here(Outcome::LocalError, ELSEWHERE));
                }
            }
            None if (message.len() as u64) < request.len() => {
                self.metrics.member(member.id).dedicated_refused += 1;
                let what = in_use(member);
                self.fail(to, &Failed::at(&member.address, Outcome::Overloaded, &what));
            }
            None => {
                self.metrics.member(member.id).dedicated_waited += 1;
                let due = self.now + Micros::from(member.dedicated.wait);
                self.hold_back_client(to);
                self.dedicated_of(member).queue.push_back(Queued {
                    client: owner,
                    member: Arc::clone(member),
                    login,
                    to,
                    request: *request,
                    message: message.to_vec(),
                    due,
                });
                self.servers.queued += 1;
            }
        }
    }

    /// Appends a request to a dedicated lane, with the one that comes before it.
    fn give_dedicated(
        &mut self,
        id: LaneId,
        member: &Arc<Member>,
        request: &Request,
        message: &[u8],
        to: ReplyTo,
    ) {
        let Some((before, message)) = message.split_at_checked(request.before as usize) else {
            return;
        };
        if !before.is_empty() {
            let first = Request::new(request.command, request.class, before.len());
            self.give(id, member, &first, before, ReplyTo::Nobody);
        }
        let request = &Request {
            head: request.head - request.before,
            before: 0,
            ..*request
        };
        self.give(id, member, request, message, to);
    }

    /// The dedicated lanes to this member; an empty set is made if there is none yet.
    fn dedicated_of(&mut self, member: &Member) -> &mut Dedicated {
        self.lanes_of(member).dedicated.get_or_insert_default()
    }

    /// Assigns a dedicated lane to this client; `None`: all are in use.
    fn check_out(&mut self, member: &Arc<Member>, login: u16, owner: ClientId) -> Option<LaneId> {
        self.dedicated_of(member);
        let dedicated = self.servers.by_member[member.id.0 as usize].dedicated.as_mut()?;
        let is_its = |&idle: &LaneId| {
            self.servers
                .lanes
                .get(idle)
                .is_some_and(|lane| lane.login == login)
        };
        let (id, other) = match dedicated.idle.iter().rposition(is_its) {
            Some(at) => (dedicated.idle.remove(at), None),
            None => {
                // An idle lane with another login is closed to make room.
                let other = match dedicated.count < member.dedicated.max as usize {
                    true => None,
                    false => Some(dedicated.idle.pop()?),
                };
                dedicated.count += 1;
                (self.open_lane(member, login, false), other)
            }
        };
        if let Some(lane) = self.servers.lanes.get_mut(id) {
            (lane.dedicated, lane.owner) = (true, Some(owner));
        }
        self.clients.set_own_lane(owner, Some(id));
        if let Some(other) = other {
            self.drop_lane(other, "");
        }
        Some(id)
    }

    /// A reply has come on a client's dedicated lane: the codec notes what the server keeps from now on.
    pub(super) fn note_reply(&mut self, id: LaneId, command: u16, reply: &Reply, bytes: &[u8]) {
        let lane = self.servers.lanes.get(id);
        if let Some(owner) = lane.and_then(|lane| lane.owner) {
            self.clients.note_reply(owner, command, reply, bytes);
        }
    }

    /// Passes on a message that no request has asked for to the client that owns the lane. A client that does
    /// not read fast enough is closed, as its server would do. On a shared lane such a message is for no
    /// client and is dropped.
    pub(super) fn push(&mut self, id: LaneId, bytes: &[u8]) {
        let lane = self.servers.lanes.get(id);
        let Some(owner) = lane.and_then(|lane| lane.owner) else {
            return;
        };
        if self.push_to_client(owner, bytes) {
            // The message may say that the server keeps nothing any more.
            self.give_back(id);
        } else {
            self.close_slow(owner);
        }
    }

    /// Closes the client that owns this lane, because the server sends it more than it may have buffered.
    pub(super) fn overwhelm(&mut self, id: LaneId) {
        let lane = self.servers.lanes.get(id);
        if let Some(owner) = lane.and_then(|lane| lane.owner) {
            self.close_slow(owner);
        }
    }

    /// A dedicated lane has no request in flight: it is returned to the idle lanes, if the server keeps no
    /// state.
    pub(crate) fn give_back(&mut self, id: LaneId) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        let Some(owner) = lane.owner else {
            return;
        };
        if !lane.waiters.is_empty() || lane.is_streaming() || lane.uploading.is_some() {
            return;
        }
        let member = Arc::clone(&lane.member);
        match self.clients.lease(owner) {
            None => return self.drop_lane(id, ""),
            Some(Lease::Kept) => return,
            Some(Lease::Spoilt) => {
                // The client's next dedicated request gets another lane.
                self.clients.end_lease(owner);
                return self.drop_lane(id, "");
            }
            Some(Lease::Clean) => self.clients.set_own_lane(owner, None),
        }
        if !self.tree.names(member.id) {
            return self.drop_lane(id, "");
        }
        if let Some(lane) = self.servers.lanes.get_mut(id) {
            lane.owner = None;
        }
        let idle = &mut self.dedicated_of(&member).idle;
        idle.push(id);
        let is_spare = idle.len() > member.dedicated.idle as usize;
        self.serve_queue(&member);
        if is_spare && self.dedicated_of(&member).idle.contains(&id) {
            self.drop_lane(id, "");
        }
    }

    /// Gives free lanes to the queued requests, oldest first.
    fn serve_queue(&mut self, member: &Arc<Member>) {
        if mem::replace(&mut self.dedicated_of(member).serving, true) {
            // A request that is served here may return its lane at once; the call that is already running
            // serves the next one.
            return;
        }
        while let Some(queued) = self.dedicated_of(member).queue.pop_front() {
            let owner = queued.client;
            let found = self.clients.own_lane(owner);
            let is_up = member.is_up();
            if is_up && found == Some(None) && self.check_out(member, queued.login, owner).is_none() {
                self.dedicated_of(member).queue.push_front(queued);
                break;
            }
            self.servers.queued -= 1;
            if is_up {
                self.send_dedicated(member, queued.login, &queued.request, &queued.message, queued.to);
            } else {
                let failed = Failed::at(&member.address, Outcome::Ejected, member.refusal());
                self.fail(queued.to, &failed);
            }
        }
        self.dedicated_of(member).serving = false;
    }

    /// A dedicated lane has ended: the state that the server kept for its client is lost.
    pub(super) fn lost(&mut self, id: LaneId, lane: &Lane) {
        let dedicated = self.dedicated_of(&lane.member);
        dedicated.count -= 1;
        dedicated.idle.retain(|&idle| idle != id);
        if let Some(owner) = lane.owner {
            self.lose_own_lane(owner);
        }
        if self.servers.queued > 0 {
            self.serve_queue(&lane.member);
        }
    }

    /// A client has left. Its dedicated lane is closed at once, which ends what the server kept for it.
    /// `waits`: the client may have requests in a queue.
    pub(crate) fn end_lease(&mut self, own: Option<LaneId>, client: ClientId, waits: bool) {
        if let Some(lane) = own {
            self.drop_lane(lane, "its client left");
        }
        if !waits || self.servers.queued == 0 {
            return;
        }
        let mut left = Vec::new();
        for dedicated in self
            .servers
            .by_member
            .iter_mut()
            .filter_map(|lanes| lanes.dedicated.as_mut())
        {
            while let Some(at) = dedicated.queue.iter().position(|queued| queued.client == client) {
                left.extend(dedicated.queue.remove(at));
            }
        }
        self.servers.queued -= left.len();
        for queued in left {
            // A step of the tree may wait for this request.
            self.fail(queued.to, &Failed::here(Outcome::ClientError, "its client left"));
        }
    }

    /// Fails the queued requests that have waited for a dedicated lane for longer than their pool allows.
    pub(super) fn end_queues(&mut self) {
        if self.servers.queued == 0 {
            return;
        }
        let (now, mut late) = (self.now, Vec::new());
        for dedicated in self
            .servers
            .by_member
            .iter_mut()
            .filter_map(|lanes| lanes.dedicated.as_mut())
        {
            while dedicated.queue.front().is_some_and(|queued| queued.due <= now) {
                late.extend(dedicated.queue.pop_front());
            }
        }
        self.servers.queued -= late.len();
        for queued in late {
            self.metrics.member(queued.member.id).dedicated_refused += 1;
            let what = in_use(&queued.member);
            self.fail(
                queued.to,
                &Failed::at(&queued.member.address, Outcome::Overloaded, &what),
            );
        }
    }
}

impl Lane {
    /// The largest unrequested message, in bytes, that is passed on. `client_bytes`: the most bytes that one
    /// client may have buffered.
    pub(super) fn largest_push(&self, client_bytes: usize) -> u64 {
        self.owner.map_or(WHOLE, |_| WHOLE.max(client_bytes as u64))
    }
}

impl Dedicated {
    /// The number of lanes that a client has.
    pub(super) fn in_use(&self) -> usize {
        self.count - self.idle.len()
    }

    /// Bytes of memory that the queued requests take.
    pub(super) fn holds(&self) -> usize {
        let messages = self.queue.iter().map(|queued| queued.message.capacity());
        self.queue.capacity() * size_of::<Queued>() + messages.sum::<usize>()
    }
}
