//! Cancellation of a server's work for a client: by an order, because it takes too long, or because no client
//! waits for it any more. A server does not stop when the connection is closed, so that it is asked on
//! another connection. No account may cancel another one's work: that connection has the client's login.
//!
//! Invariant: all workers together have one such connection to a server at a time. It is not counted with
//! those that clients may have, so that there is room for it when these are all in use.
//!
//! Invariant: a lane whose request is being ended is given to no other client before the server has answered:
//! what comes late ends nothing of another client.

use std::{
    mem,
    sync::{Arc, mpsc::Sender},
};

use proxima_wire::message::{Class, Outcome, Request};

use super::{Asker, Cancel, Close, Lane, Phase};
use crate::{
    engine::{Engine, LaneId, ReplyTo},
    members::{Member, MemberId},
    micros::Micros,
    protocol::Ending,
};

/// The most requests to one member that wait to be sent. What further ones would end goes on until it is
/// done.
const MOST: usize = 1024;
/// The longest time for which one of them waits. By then the server may call another connection by the same
/// number.
const LONGEST: Micros = Micros::secs(10);

impl Engine {
    /// Has the server end what it does for the client with this number, or ends the client, if a client of
    /// this listener with the login `by` may do that: at a server to which its listener does not lead, the
    /// same words are another login. `done` is told whether it may, and the server has agreed.
    pub fn cancel(
        &mut self,
        (session, ending): (u64, Ending),
        (by, listener): (&[u8], u16),
        done: Sender<bool>,
    ) {
        let Some(client) = self.clients.with_number(session) else {
            let _ = done.send(false);
            return;
        };
        let own = self.clients.own_lane(client).flatten();
        let lane = own.and_then(|own| self.servers.lanes.get(own));
        let mut reach = self.tree.reach(usize::from(listener)).iter();
        let is_allowed = match lane {
            Some(lane) => {
                let words = self.servers.logins.words(lane.login);
                reach.any(|member| member.id == lane.member.id) && lane.member.protocol.may_cancel(by, &words)
            }
            // The server keeps nothing for it: the servers that it may reach decide whose login it is.
            None => {
                let of = self.clients.session(Some(client));
                let theirs = self
                    .clients
                    .listener(client)
                    .map(|of| self.tree.reach(usize::from(of)));
                let theirs = theirs.unwrap_or_default();
                reach.any(|member| {
                    let is_shared = theirs.iter().any(|other| other.id == member.id);
                    is_shared && member.protocol.may_cancel(by, &of.login)
                })
            }
        };
        if !is_allowed {
            let _ = done.send(false);
            return;
        }
        if ending == Ending::Client {
            self.close_client(client, false);
            let _ = done.send(true);
            return;
        }
        let working = lane.filter(|lane| lane.is_working()).zip(own);
        match working.and_then(|(lane, own)| Some((own, lane.cancel(self.now)?))) {
            Some((own, cancel)) => self.ask_to_cancel(Cancel {
                of: Some(own),
                done: Some(done),
                ..cancel
            }),
            None => {
                // The client that asked may have left.
                let _ = done.send(true);
            }
        }
    }

    /// A lane ends, and no client waits any more for what its server does there.
    pub(super) fn cancel_abandoned(&mut self, lane: &Lane, outcome: Outcome) {
        // The server of a lost connection knows of the loss, or has ended.
        let is_abandoned =
            matches!(outcome, Outcome::ClientError | Outcome::Timeout) || lane.closes == Some(Close::Now);
        if lane.owner.is_some()
            && is_abandoned
            && lane.is_working()
            && let Some(cancel) = lane.cancel(self.now)
        {
            self.ask_to_cancel(cancel);
        }
    }

    /// Has servers end what they do for longer than the configuration allows, once for each request.
    pub(super) fn end_overdue(&mut self) {
        let (now, limit) = (self.now, Micros::from(self.limits.statement_timeout));
        if limit == Micros::ZERO {
            return;
        }
        let lanes = self.servers.lanes.iter_mut();
        let overdue: Vec<(LaneId, Cancel)> = lanes
            .filter_map(|(id, lane)| {
                let waiter = lane.waiters.first()?;
                let is_overdue = lane.owner.is_some()
                    && lane.is_working()
                    && now - waiter.sent > limit
                    && lane.overdue != Some(waiter.at);
                let at = is_overdue.then_some(waiter.at)?;
                lane.overdue = Some(at);
                let cancel = lane.cancel(now)?;
                let of_request = Some(at);
                Some((id, Cancel { of_request, ..cancel }))
            })
            .collect();
        for (of, cancel) in overdue {
            self.ask_to_cancel(Cancel {
                of: Some(of),
                ..cancel
            });
        }
    }

    /// Is this order for a request that its lane has had an answer to?
    fn is_past(&self, cancel: &Cancel) -> bool {
        let lane = cancel.of.and_then(|of| self.servers.lanes.get(of));
        let first = lane.and_then(|lane| lane.waiters.first());
        cancel.of_request.is_some() && first.map(|waiter| waiter.at) != cancel.of_request
    }

    fn ask_to_cancel(&mut self, cancel: Cancel) {
        let member = Arc::clone(&cancel.member);
        let cancels = self.lanes_of(&member).cancels.get_or_insert_default();
        if cancels.queue.len() >= MOST {
            return cancel.answer(false);
        }
        let (login, of) = (cancel.login, cancel.of);
        cancels.queue.push_back(cancel);
        self.servers.cancels += 1;
        // The login stays known until the server is asked.
        self.servers.logins.lane_opened(login);
        if let Some(lane) = of.and_then(|of| self.servers.lanes.get_mut(of)) {
            lane.cancels += 1;
        }
        self.send_cancels(member.id);
    }

    /// Sends what waits to be sent to this member, as far as it can be on one connection.
    fn send_cancels(&mut self, member: MemberId) {
        let mut has_closed = false;
        loop {
            let lanes = self.servers.by_member.get_mut(member.0 as usize);
            let Some(cancels) = lanes.and_then(|lanes| lanes.cancels.as_mut()) else {
                return;
            };
            let next = cancels.queue.front();
            let next = next.map(|cancel| (Arc::clone(&cancel.member), cancel.login));
            let own = cancels.lane;
            let lane = own.and_then(|own| self.servers.lanes.get(own));
            match (own, next) {
                (None, None) => return,
                (None, Some((member, login))) => {
                    let turn = member.health.cancels();
                    // Another worker has it, or has waited for it meanwhile.
                    if has_closed && turn.take_wanted() || !turn.take() {
                        return;
                    }
                    let id = self.open_lane(&member, login, false);
                    if let Some(cancels) = &mut self.lanes_of(&member).cancels {
                        cancels.lane = Some(id);
                    }
                }
                (Some(own), Some((member, login))) if lane.is_some_and(|lane| lane.login == login) => {
                    self.send_cancel(own, &member);
                }
                (Some(_), _) if lane.is_some_and(|lane| !lane.is_unused()) => return,
                (Some(own), _) => {
                    has_closed = true;
                    self.drop_lane(own, "");
                    if let Some(cancels) = &mut self.servers.by_member[member.0 as usize].cancels {
                        cancels.lane = None;
                    }
                }
            }
        }
    }

    fn send_cancel(&mut self, id: LaneId, member: &Arc<Member>) {
        let cancels = self.lanes_of(member).cancels.as_mut();
        let Some(mut cancel) = cancels.and_then(|cancels| cancels.queue.pop_front()) else {
            return;
        };
        self.servers.cancels -= 1;
        self.servers.logins.lane_closed(cancel.login);
        if self.is_past(&cancel) {
            return self.canceled(&cancel, false);
        }
        if cancel.of_request.is_some() {
            self.metrics.member(member.id).overdue += 1;
        }
        let message = mem::take(&mut cancel.message);
        let request = Request::new(cancel.command, Class::Session, message.len());
        let question = self.servers.askers.insert(Asker::Cancel(cancel));
        self.give(id, member, &request, &message, ReplyTo::Pool { question });
    }

    /// The server has ended something, or has not.
    pub(super) fn canceled(&mut self, cancel: &Cancel, agreed: bool) {
        cancel.answer(agreed);
        if let Some(of) = cancel.of
            && let Some(lane) = self.servers.lanes.get_mut(of)
        {
            lane.cancels -= 1;
            if !agreed && lane.overdue == cancel.of_request {
                // It is asked again.
                lane.overdue = None;
            }
            let releases = lane.cancels == 0 && lane.holding && !lane.awaits_before;
            if releases && matches!(lane.phase, Phase::Ready) {
                self.release_held(of);
            }
            let Some(lane) = self.servers.lanes.get_mut(of) else {
                return self.send_cancels(cancel.member.id);
            };
            if lane.dedicated && lane.cancels == 0 && lane.owner.is_none() && lane.is_unused() {
                self.free_lane(of);
            }
        }
        self.send_cancels(cancel.member.id);
    }

    /// Sends what has waited for another worker's connection, and gives up what has waited too long.
    pub(super) fn retry_cancels(&mut self) {
        if self.servers.cancels == 0 {
            return;
        }
        let (now, mut late) = (self.now, Vec::new());
        for cancels in self
            .servers
            .by_member
            .iter_mut()
            .filter_map(|lanes| lanes.cancels.as_mut())
        {
            while let Some(cancel) = cancels.queue.pop_front_if(|cancel| now - cancel.since > LONGEST) {
                late.push(cancel);
            }
        }
        self.servers.cancels -= late.len();
        for cancel in late {
            self.servers.logins.lane_closed(cancel.login);
            self.canceled(&cancel, false);
        }
        for number in 0..self.servers.by_member.len() {
            self.send_cancels(MemberId(number as u32));
        }
    }

    /// Notes that a lane has ended.
    pub(super) fn forget_cancels(&mut self, id: LaneId, member: &Member) {
        let cancels = self.lanes_of(member).cancels.as_mut();
        if let Some(cancels) = cancels.filter(|cancels| cancels.lane == Some(id)) {
            cancels.lane = None;
            member.health.cancels().give_back();
        }
    }
}

impl Lane {
    /// Does its server do something for its client?
    pub(super) fn is_working(&self) -> bool {
        matches!(self.phase, Phase::Ready) && (!self.waiters.is_empty() || self.is_streaming())
    }

    /// The request that ends what its server does; `None` if the protocol has none.
    fn cancel(&self, now: Micros) -> Option<Cancel> {
        let mut message = Vec::new();
        let command = self.member.protocol.cancel(&self.state, &mut message)?;
        Some(Cancel {
            member: Arc::clone(&self.member),
            login: self.login,
            command,
            message,
            since: now,
            of: None,
            of_request: None,
            done: None,
        })
    }
}
