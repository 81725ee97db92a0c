//! Requests that wait for a dedicated lane of their client, in turn.

use std::{fmt, mem::take, sync::Arc};

use proxima_wire::message::{Outcome, Request};

use super::close::CLOSED;
use crate::{
    engine::{ClientId, Engine, ReplyTo},
    members::Member,
    micros::Micros,
    protocol::Failed,
    route::WaitedFor,
    upstream::Closed,
};

/// A client that waits for a dedicated lane.
#[derive(Debug)]
pub(in crate::upstream) struct LaneWait {
    client: ClientId,
    pub(super) member: Arc<Member>,
    login: u16,
    wants: LanePurpose,
    /// The wait has begun at this time.
    since: Micros,
    /// The wait ends at this time.
    due: Micros,
}

/// The purpose for which a client waits for a lane.
pub(crate) enum LanePurpose {
    /// The answer to this request, on the client's own lane.
    Answer(ReplyTo, Request, Vec<u8>),
    /// Its subscriptions at the member.
    Subscriptions,
}

/// The request may hold a password.
impl fmt::Debug for LanePurpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answer(..) => "an answer",
            Self::Subscriptions => "its subscriptions",
        })
    }
}

impl LanePurpose {
    /// Is it the answer to a value that is passed on as it comes?
    pub(super) fn is_streamed(&self) -> bool {
        match self {
            Self::Answer(_, request, message) => (message.len() as u64) < request.len(),
            Self::Subscriptions => false,
        }
    }

    /// Bytes of memory that it takes besides its own.
    fn memory(&self) -> usize {
        match self {
            Self::Answer(_, _, message) => message.capacity(),
            Self::Subscriptions => 0,
        }
    }
}

impl Engine {
    /// Makes a client wait until `due` for a lane to this member.
    pub(crate) fn await_lane(
        &mut self,
        member: &Arc<Member>,
        login: u16,
        (client, wants): (ClientId, LanePurpose),
        due: Micros,
    ) {
        self.metrics.member(member.id).dedicated_waited += 1;
        self.servers.queued += 1;
        let since = self.now;
        self.clients.charge_for_lane(client, 0, wants.memory());
        self.dedicated_of(member).queue.push_back(LaneWait {
            client,
            member: Arc::clone(member),
            login,
            wants,
            since,
            due,
        });
        self.note_wish(member);
    }

    /// Answers a client that all lanes to this member are in use.
    pub(crate) fn reject_lane(&mut self, member: &Member, client: ClientId, wants: &LanePurpose) {
        self.metrics.member(member.id).dedicated_refused += 1;
        let max = member.dedicated.max;
        let is_full = self.dedicated_of(member).in_use() >= max as usize;
        let (most, limit) = match (is_full, member.dedicated.total) {
            (true, _) => (max, "dedicated.max"),
            (false, Some(total)) => (total, "dedicated.total"),
            (false, None) => (
                self.most_dedicated(member),
                "four fifths of what the server takes",
            ),
        };
        let what =
            format!("all {most} connections that clients may have for themselves ({limit}) are in use");
        self.fail_wants(
            client,
            wants,
            &Failed::at(&member.address, Outcome::Overloaded, &what),
        );
    }

    pub(super) fn fail_wants(&mut self, client: ClientId, wants: &LanePurpose, failed: &Failed<'_>) {
        match wants {
            LanePurpose::Answer(to, ..) => {
                self.fail(*to, failed);
                if wants.is_streamed() {
                    self.begin_queued_upload(client, Vec::new());
                }
            }
            LanePurpose::Subscriptions => self.end_subscribing(client, Err(failed)),
        }
    }

    /// Gives free lanes to the queued requests, oldest first, and closes those that are too many to be kept.
    /// It is called by [`give_lanes`](Self::give_lanes), so that a lane that a request returns at once comes
    /// behind.
    pub(crate) fn serve_queue(&mut self, member: &Arc<Member>) {
        while let Some(queued) = self.next_queued(member) {
            let (owner, is_up) = (queued.client, member.is_up());
            let lacks_one = match queued.wants {
                LanePurpose::Answer(..) => self.clients.own_lane(owner) == Some(None),
                LanePurpose::Subscriptions => self.clients.is_subscribing(owner),
            };
            if is_up && lacks_one {
                let Some(lane) = self.check_out(member, queued.login, owner) else {
                    self.dedicated_of(member).queue.push_front(queued);
                    break;
                };
                if let Some(lane) = self.servers.lanes.get_mut(lane) {
                    lane.due = queued.due;
                }
                match queued.wants {
                    LanePurpose::Answer(..) => self.clients.set_own_lane(owner, Some(lane)),
                    LanePurpose::Subscriptions => self.clients.add_subscription_lane(owner, member.id, lane),
                }
            }
            self.servers.queued -= 1;
            self.end_queued(&queued);
            self.clients.charge_for_lane(owner, queued.wants.memory(), 0);
            match &queued.wants {
                _ if !is_up => {
                    let failed = Failed::at(&member.address, Outcome::Ejected, member.refusal());
                    self.fail_wants(owner, &queued.wants, &failed);
                }
                LanePurpose::Answer(to, request, message) if queued.wants.is_streamed() => {
                    self.servers.begin_upload(owner);
                    self.send_dedicated(member, queued.login, request, message, *to);
                    let lanes = self.servers.upload_lanes();
                    self.begin_queued_upload(owner, lanes);
                }
                LanePurpose::Answer(to, request, message) => {
                    self.send_dedicated(member, queued.login, request, message, *to);
                }
                LanePurpose::Subscriptions => self.go_on_subscribing(owner),
            }
        }
        self.note_wish(member);
        let most = member.dedicated.idle as usize;
        while self.dedicated_of(member).idle.len() > most
            && let Some(idle) = self.dedicated_of(member).idle.pop()
        {
            self.drop_lane(idle.lane, "");
        }
    }

    /// Must a client that comes now wait behind others? Those whose login has no room at the server delay
    /// nobody.
    pub(super) fn must_queue(&mut self, member: &Arc<Member>) -> bool {
        let now = self.now;
        let dedicated = self.dedicated_of(member);
        let mut queue = dedicated.queue.iter();
        queue.any(|queued| !dedicated.full.has_only(queued.login, now))
    }

    /// Takes the first of the queue that may be served. Those whose login has no room at the server stay
    /// where they are.
    fn next_queued(&mut self, member: &Arc<Member>) -> Option<LaneWait> {
        let now = self.now;
        let dedicated = self.dedicated_of(member);
        let mut queue = dedicated.queue.iter();
        let at = queue.position(|queued| !dedicated.full.has_only(queued.login, now))?;
        dedicated.queue.remove(at)
    }

    /// A wait is over, as this request has left the queue: its time is counted, and the worker may want no more
    /// lanes.
    fn end_queued(&mut self, queued: &LaneWait) {
        let waited = self.now - queued.since;
        self.metrics.queued(queued.member.pool.id, waited.0);
        self.note_wish(&queued.member);
        if let LanePurpose::Answer(to, ..) = queued.wants {
            self.note_wait(to, WaitedFor::Connection, queued.since);
        }
    }

    /// Fails the requests that wait for one of these connections, none of which was sent.
    pub(super) fn fail_queue(&mut self, closed: &Closed) {
        let all = self.servers.by_member.iter_mut();
        let all = all.filter_map(|lanes| lanes.dedicated.as_mut());
        let is_its = |queued: &LaneWait| closed.is_to(&queued.member);
        let its = all.filter(|dedicated| dedicated.queue.front().is_some_and(is_its));
        let failed: Vec<LaneWait> = its.flat_map(|dedicated| take(&mut dedicated.queue)).collect();
        for queued in failed {
            self.servers.queued -= 1;
            self.end_queued(&queued);
            self.clients
                .charge_for_lane(queued.client, queued.wants.memory(), 0);
            let failed = Failed::at(&queued.member.address, Outcome::Ejected, CLOSED);
            self.fail_wants(queued.client, &queued.wants, &failed);
        }
    }

    /// Takes a client that has left out of all queues.
    pub(crate) fn leave_queues(&mut self, client: ClientId) {
        if self.servers.queued == 0 {
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
            self.end_queued(&queued);
            // A step of the tree may wait for this request.
            let failed = Failed::here(Outcome::ClientError, "its client left");
            self.fail_wants(client, &queued.wants, &failed);
        }
    }

    /// Fails the queued requests that have waited for a dedicated lane for longer than their pool allows.
    pub(in crate::upstream) fn end_queues(&mut self) {
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
            // One that had a lane for which there was no room is due before others that came earlier.
            while let Some(at) = dedicated.queue.iter().position(|queued| queued.due <= now) {
                let queued = dedicated.queue.remove(at);
                late.extend(queued.map(|queued| (dedicated.full.words(queued.login), queued)));
            }
        }
        self.servers.queued -= late.len();
        for (words, queued) in late {
            self.end_queued(&queued);
            self.clients
                .charge_for_lane(queued.client, queued.wants.memory(), 0);
            if !self.answer_full(words, &queued.wants) {
                self.reject_lane(&queued.member, queued.client, &queued.wants);
            }
        }
    }
}
