//! The end of what a server does for a client: by an order, or because nobody waits for it any more. A server goes
//! on with what it was asked when the connection is closed, and lets nobody end what is another account's. It is
//! therefore asked on another connection, with the login of the client.
//!
//! Invariant: all workers together have one such connection to a member at a time. It is not counted with those that
//! clients may have, so that there is room for it when these are all in use.
//!
//! Invariant: a lane whose request is being ended is given to no other client before the server has answered: what
//! comes late ends nothing of another client.

use std::{
    mem,
    sync::{Arc, mpsc::Sender},
};

use proxima_wire::message::{Class, Outcome, Request};

use super::{Asker, Cancel, Lane, Phase};
use crate::{
    engine::{ClientId, Engine, LaneId, ReplyTo},
    members::{Member, MemberId},
};

/// The most requests to one member that wait to be sent. What further ones would end goes on until it is done.
const MOST: usize = 1024;

impl Engine {
    /// Has the server end what it does for the client with this number, if a client with the login `by` may end
    /// that. `done` is told whether it has agreed; at once, if nothing is to be ended.
    pub fn cancel(&mut self, session: u64, by: &[u8], done: Sender<bool>) {
        let own = self.clients.with_number(session).and_then(|client: ClientId| {
            let own = self.clients.own_lane(client)??;
            let lane = self.servers.lanes.get(own)?;
            let words = self.servers.logins.words(lane.login);
            let is_allowed = lane.member.protocol.may_cancel(by, &words);
            (is_allowed && lane.is_working()).then_some((own, lane))
        });
        match own.and_then(|(own, lane)| Some((own, lane.cancel()?))) {
            Some((own, cancel)) => self.ask_to_cancel(Cancel {
                of: Some(own),
                done: Some(done),
                ..cancel
            }),
            None => drop(done.send(false)),
        }
    }

    /// A lane ends, and nobody waits any more for what its server does there.
    pub(super) fn cancel_abandoned(&mut self, lane: &Lane, outcome: Outcome) {
        // Where the connection was lost, its server knows that, or does nothing any more.
        let is_abandoned = matches!(outcome, Outcome::ClientError | Outcome::Timeout);
        if lane.owner.is_some()
            && is_abandoned
            && lane.is_working()
            && let Some(cancel) = lane.cancel()
        {
            self.ask_to_cancel(cancel);
        }
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
        while let Some(Some(cancels)) = self
            .servers
            .by_member
            .get_mut(member.0 as usize)
            .map(|lanes| &mut lanes.cancels)
        {
            let next = cancels
                .queue
                .front()
                .map(|cancel| (Arc::clone(&cancel.member), cancel.login));
            let own = cancels.lane;
            let lane = own.and_then(|own| self.servers.lanes.get(own));
            match (own, next) {
                (None, None) => return,
                (None, Some((member, login))) => {
                    if !member.health.cancels().take(1) {
                        // Another worker has it, for a moment.
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
                (Some(own), _) => {
                    if lane.is_some_and(|lane| !lane.is_unused()) {
                        return;
                    }
                    self.drop_lane(own, "");
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
            if lane.dedicated {
                self.give_back(of);
            }
        }
        self.send_cancels(cancel.member.id);
    }

    /// Sends what has waited for another worker's connection.
    pub(super) fn retry_cancels(&mut self) {
        if self.servers.cancels == 0 {
            return;
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
    fn is_working(&self) -> bool {
        matches!(self.phase, Phase::Ready) && (!self.waiters.is_empty() || self.is_streaming())
    }

    /// The request that ends what its server does. `None`: there is no such request.
    fn cancel(&self) -> Option<Cancel> {
        let mut message = Vec::new();
        let command = self.member.protocol.cancel(&self.state, &mut message)?;
        Some(Cancel {
            member: Arc::clone(&self.member),
            login: self.login,
            command,
            message,
            of: None,
            done: None,
        })
    }
}
