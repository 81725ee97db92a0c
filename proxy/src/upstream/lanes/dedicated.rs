//! A dedicated lane belongs to one client for as long as the server keeps state for that client: a
//! transaction, a subscription, or a command that blocks.
//!
//! Invariant: a client never gets a lane on which the server keeps state of another client. Only the codec
//! knows what the server keeps (`protocol::Retention`). A lane whose state is in doubt is closed.
//!
//! Invariant: a client is closed when its lane is lost together with the state that the server kept, unless
//! the codec can tell the next lane all of it. Without that state the client's next request would mean
//! something else.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use proxima_wire::message::{Outcome, Parsed, Reply, Request};

use super::{
    full::FullLogins,
    missed::Missed,
    queue::{LanePurpose, LaneWait},
};
use crate::{
    client::{LaneEvent, WHOLE},
    engine::{ClientId, Engine, LaneId, ReplyTo},
    members::{Member, QuotaWish},
    micros::Micros,
    protocol::{BEST, Failed, Retention},
    upstream::Lane,
};

/// The most idle lanes that are looked at for one that suits a client: their states lie in distant memory.
pub(super) const LOOK: usize = 8;

/// The error text for a request whose client has its lane elsewhere.
pub(crate) const ELSEWHERE: &str = "what belongs together is on several servers, or of several logins";

/// A lane that belongs to no client now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Idle {
    pub(super) lane: LaneId,
    /// The client whose own it was last.
    pub(super) former: Option<ClientId>,
}

/// A worker's dedicated lanes to one member.
#[derive(Debug, Default)]
pub(in crate::upstream) struct Dedicated {
    pub(super) count: usize,
    /// Lanes that belong to no client now; their servers keep no state.
    pub(super) idle: Vec<Idle>,
    /// Lanes on which the server may keep only what the last request has left, by their logins, those first
    /// that were left there first.
    pub(super) passing: BTreeMap<u16, VecDeque<LaneId>>,
    /// Logins for which the server has no room.
    pub(in crate::upstream) full: FullLogins,
    /// The clients for which none was idle.
    pub(super) missed: Missed,
    /// The worker's wish for more of them than it has.
    pub(super) wish: QuotaWish,
    /// Requests that wait for a lane, oldest first.
    pub(in crate::upstream) queue: VecDeque<LaneWait>,
}

impl Engine {
    /// Does this lane lead to that member, with this login?
    fn is_there(&self, id: LaneId, member: &Member, login: u16) -> bool {
        let lane = self.servers.lanes.get(id);
        lane.is_some_and(|lane| lane.member.id == member.id && lane.login == login)
    }

    /// Does the server keep nothing for this client but what its last request has left?
    fn can_do_without(&self, owner: ClientId) -> bool {
        let retention = self.clients.retention(owner);
        retention.is_some_and(Retention::is_passing)
    }

    /// Hands a request to its client's dedicated lane to this member; opens the lane, or queues the request,
    /// if needed.
    pub(in crate::upstream) fn send_dedicated(
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
        let own = match own {
            Some(id) if !self.is_there(id, member, login) && self.can_do_without(owner) => {
                self.leave_lane(owner);
                self.clients.end_retention(owner);
                None
            }
            own => own,
        };
        let lane = own.or_else(|| match self.must_queue(member) {
            true => None,
            false => self.check_out(member, login, owner),
        });
        if own.is_none() {
            self.clients.set_own_lane(owner, lane);
        }
        // A client that holds other connections waits for no connection that their owners may hold.
        let may_wait = self.clients.last_subscribed(owner) < Some(member.id);
        match lane {
            Some(id) => {
                if self.is_there(id, member, login) {
                    if request.extra_timeout > 0 && !member.protocol.fits_requests() {
                        self.keep_arrival_order(id);
                    }
                    self.give_dedicated(id, member, request, message, to);
                } else {
                    self.fail(to, &Failed::here(Outcome::LocalError, ELSEWHERE));
                }
            }
            None => {
                let wants = LanePurpose::Answer(to, *request, message.to_vec());
                if !may_wait {
                    return self.reject_lane(member, owner, &wants);
                }
                self.hold_requests_behind(to);
                self.servers.upload_waits |= wants.is_streamed();
                let due = self.now + Micros::from(member.dedicated.wait);
                self.await_lane(member, login, (owner, wants), due);
            }
        }
    }

    /// Appends a request to a dedicated lane, with those that come before it.
    fn give_dedicated(
        &mut self,
        id: LaneId,
        member: &Arc<Member>,
        request: &Request,
        message: &[u8],
        to: ReplyTo,
    ) {
        let Some((mut before, message)) = message.split_at_checked(request.before as usize) else {
            return;
        };
        let has_before = !before.is_empty();
        if has_before {
            self.get_more(id, true);
        }
        while let Parsed::Head(first) = member.protocol.head(before)
            && let Some((one, rest)) = before.split_at_checked(first.len() as usize)
        {
            self.give(id, member, &first, one, ReplyTo::Nobody);
            before = rest;
        }
        if has_before {
            self.get_more(id, false);
        }
        let request = &Request {
            head: request.head - request.before,
            before: 0,
            ..*request
        };
        self.give(id, member, request, message, to);
    }

    /// Notes whether more requests are about to be given to this lane: it is not free before.
    fn get_more(&mut self, id: LaneId, gets_more: bool) {
        if let Some(lane) = self.servers.lanes.get_mut(id) {
            lane.gets_more = gets_more;
        }
    }

    /// The dedicated lanes to this member; an empty set is made if there is none yet.
    pub(in crate::upstream) fn dedicated_of(&mut self, member: &Member) -> &mut Dedicated {
        self.lanes_of(member).dedicated.get_or_insert_default()
    }

    /// Assigns a dedicated lane to this client, which the caller notes; `None`: all are in use. It is an idle
    /// one, one that another client can do without, or a new one; at last, one that another client may miss.
    pub(crate) fn check_out(&mut self, member: &Arc<Member>, login: u16, owner: ClientId) -> Option<LaneId> {
        let idle = self.take_idle(member, login, owner);
        let idle = idle.or_else(|| self.take_passing(member, login, false));
        let opened = idle.or_else(|| {
            let opened = self.open_dedicated(member, login)?;
            self.dedicated_of(member).note_missed(member, login);
            Some(opened)
        });
        let id = opened.or_else(|| self.take_passing(member, login, true))?;
        if let Some(lane) = self.servers.lanes.get_mut(id) {
            (lane.dedicated, lane.owner, lane.owned) = (true, Some(owner), self.now);
        }
        Some(id)
    }

    /// Takes an idle lane with this login: of the client's former one and some that were used last the one
    /// that suits the client best. Of those that suit alike it is the one that was used last.
    fn take_idle(&mut self, member: &Arc<Member>, login: u16, owner: ClientId) -> Option<LaneId> {
        self.dedicated_of(member);
        let dedicated = self.servers.by_member[member.id.0 as usize].dedicated.as_mut()?;
        let session = self.clients.session(Some(owner));
        let lanes = &self.servers.lanes;
        let suits = |at: usize| {
            let lane = lanes
                .get(dedicated.idle[at].lane)
                .filter(|lane| lane.login == login)?;
            Some((member.protocol.suits(&lane.state, session), at))
        };
        let mut idle = dedicated.idle.iter();
        let former = idle.position(|idle| idle.former == Some(owner));
        let mut best = former.and_then(suits);
        if best.is_none_or(|(suits, _)| suits < BEST) {
            let newest = (0..dedicated.idle.len()).rev().filter_map(suits).take(LOOK);
            best = newest.chain(best).max();
        }
        best.map(|(_, at)| dedicated.idle.remove(at).lane)
    }

    /// A reply has come on a client's dedicated lane: the codec notes what the server keeps from now on.
    pub(in crate::upstream) fn note_reply(&mut self, id: LaneId, command: u16, reply: &Reply, bytes: &[u8]) {
        self.tell_owner(
            id,
            LaneEvent::Answered {
                command,
                reply,
                bytes,
            },
        );
    }

    /// Passes on a message that no request has asked for to the client that owns the lane. On a shared lane
    /// such a message is for no client and is dropped.
    pub(in crate::upstream) fn push(&mut self, id: LaneId, bytes: &[u8]) {
        if self.servers.lanes.get(id).is_some() {
            self.metrics.pushes += 1;
            self.tell_owner(id, LaneEvent::Pushed(bytes));
        }
    }

    /// Tells the client that owns this lane, if there is one, what has happened on it.
    pub(in crate::upstream) fn tell_owner(&mut self, id: LaneId, event: LaneEvent<'_>) {
        let lane = self.servers.lanes.get(id);
        if let Some((owner, member)) = lane.and_then(|lane| Some((lane.owner?, Arc::clone(&lane.member)))) {
            self.lane_has(owner, id, &member, event);
        }
    }
}

impl Lane {
    /// The largest unrequested message, in bytes, that is passed on. `client_bytes`: the most bytes that one
    /// client may have buffered.
    pub(in crate::upstream) fn largest_push(&self, client_bytes: usize) -> u64 {
        self.owner.map_or(WHOLE, |_| WHOLE.max(client_bytes as u64))
    }
}

impl Dedicated {
    /// The number of lanes that are not idle.
    pub(in crate::upstream) fn in_use(&self) -> usize {
        self.count - self.idle.len()
    }

    /// The number of lanes that are idle.
    pub(in crate::upstream) fn idle_count(&self) -> usize {
        self.idle.len()
    }

    /// Bytes of memory that the queues take. Clients are charged for their requests in it.
    pub(in crate::upstream) fn queue_memory(&self) -> usize {
        let passing = self.passing.values().map(VecDeque::capacity).sum::<usize>();
        self.queue.capacity() * size_of::<LaneWait>() + passing * size_of::<LaneId>()
    }
}
