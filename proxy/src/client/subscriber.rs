//! A client with subscriptions, at one server or several: its connections, and the messages on them.
//!
//! Invariant: a client waits only for a connection to a server whose number is greater than those of all
//! servers to which it has one. Clients therefore never wait for each other in a circle.
//!
//! Invariant: a client that loses one of its connections is closed, and so are its other connections.

use std::rc::Rc;

use proxima_wire::message::{Class, Outcome, Reply, Request};

use super::{
    Client, Clients,
    subscriptions::{Change, Progress, Subscriptions},
};
use crate::{
    engine::{ClientId, Endpoint, Engine, LaneId, ReplyTo},
    members::{Failure, Member, MemberId},
    protocol::{Failed, MALFORMED, Session},
    upstream::LanePurpose,
};

const LOST: &str = "its connection is lost, and with it the client's subscriptions";
const OUTDATED: &str = "the servers of channels have changed: subscribe again";
const LEFT: &str = "its client left";

/// The result of a message for a subscriber.
enum PushResult {
    /// It was passed on, or waits until the confirmations before it have left.
    Passed,
    /// It was a confirmation.
    Confirmed(Progress),
    /// The server was not asked for what it confirms.
    Unasked,
    /// The client does not take what it is sent.
    Slow,
}

impl Clients {
    /// Is this lane one of those with the subscriptions of this client?
    pub(crate) fn is_subscribed_on(&self, id: ClientId, member: MemberId, lane: LaneId) -> bool {
        let subscriptions = self
            .table
            .get(id)
            .and_then(|client| client.subscriptions.as_ref());
        subscriptions.is_some_and(|subscriptions| subscriptions.lane_to(member) == Some(lane))
    }

    /// Gives the client a lane for its subscriptions at this member.
    pub(crate) fn add_subscription_lane(&mut self, id: ClientId, member: MemberId, lane: LaneId) {
        let client = self.table.get_mut(id);
        if let Some(subscriptions) = client.and_then(|client| client.subscriptions.as_mut()) {
            subscriptions.add_lane(member, lane);
        }
    }

    /// The member with the greatest number at which the client has subscriptions.
    pub(crate) fn last_subscribed(&self, id: ClientId) -> Option<MemberId> {
        self.table.get(id)?.subscriptions.as_ref()?.last_server()
    }

    /// Does the client wait for lanes for its subscriptions?
    pub(crate) fn is_subscribing(&self, id: ClientId) -> bool {
        self.table.get(id).is_some_and(Client::is_subscribing)
    }
}

impl Client {
    /// Is a change of its subscriptions under way?
    pub(super) fn is_subscribing(&self) -> bool {
        let subscriptions = self.subscriptions.as_ref();
        subscriptions.is_some_and(|subscriptions| subscriptions.change.is_some())
    }
}

impl Engine {
    /// Connects the client to the next servers of the change under way. If there is a connection to each, the
    /// change is sent.
    pub(crate) fn go_on_subscribing(&mut self, id: ClientId) {
        while let Some(client) = self.clients.table.get_mut(id)
            && let Some(subscriptions) = &mut client.subscriptions
            && let Some(member) = subscriptions.lacking()
        {
            let due = subscriptions
                .change
                .as_ref()
                .map_or(self.now, |change| change.due);
            let login = client.login;
            let own = client.own.and_then(|own| Some(self.servers.lane(own)?.member.id));
            let may_wait = own.max(subscriptions.last_server()) < Some(member.id);
            match self.check_out(&member, login, id) {
                Some(lane) => self.clients.add_subscription_lane(id, member.id, lane),
                None if may_wait && due > self.now => {
                    let wants = (id, LanePurpose::Subscriptions);
                    return self.await_lane(&member, login, wants, due);
                }
                None => return self.reject_lane(&member, id, &LanePurpose::Subscriptions),
            }
        }
        self.send_subscribing(id);
    }

    /// Sends the change under way to all servers concerned.
    fn send_subscribing(&mut self, id: ClientId) {
        let client = self.clients.table.get_mut(id);
        let Some(held) = client.and_then(|client| client.subscriptions.take()) else {
            return;
        };
        if let Some(change) = &held.change {
            let to = ReplyTo::Client {
                client: id,
                seq: change.seq,
            };
            for part in change.parts() {
                let Some(lane) = held.lane_to(part.member.id) else {
                    continue;
                };
                let message = part.message.as_ref().unwrap_or(&change.message);
                let request = Request {
                    is_dedicated: true,
                    ..Request::new(change.command, Class::Session, message.len())
                };
                self.give(lane, &part.member, &request, message, to);
            }
        }
        if let Some(client) = self.clients.table.get_mut(id) {
            client.subscriptions = Some(held);
        }
    }

    /// Takes a message that has come on a lane with the client's subscriptions.
    pub(super) fn push_to_subscriber(&mut self, id: ClientId, lane: LaneId, bytes: &[u8]) {
        let Some(member) = self.servers.lane(lane).map(|lane| lane.member.id) else {
            return;
        };
        match self.take_pushed(id, member, bytes) {
            PushResult::Passed | PushResult::Confirmed(Progress::More) => {}
            PushResult::Slow => self.close_slow(id),
            PushResult::Unasked => self.fail_lane(lane, Failure::Garbage, Outcome::ConnectError, MALFORMED),
            PushResult::Confirmed(progress) => {
                self.end_wait(lane);
                if progress == Progress::Made {
                    self.end_subscribing(id, Ok(()));
                }
            }
        }
    }

    /// Gives the client a message, in its turn, or counts a confirmation.
    fn take_pushed(&mut self, id: ClientId, member: MemberId, bytes: &[u8]) -> PushResult {
        let (most, now) = (self.clients.share, self.now);
        let Some(client) = self.clients.table.get_mut(id) else {
            return PushResult::Passed;
        };
        let (Some(subscriptions), Some(channels)) = (&mut client.subscriptions, client.protocol.channels())
        else {
            return PushResult::Passed;
        };
        if client.closing {
            return PushResult::Passed;
        }
        let collected = subscriptions.change.as_ref().map_or(0, Change::collected);
        if client.stream.out.len() + client.unsent + client.slots.buffered() + collected > most {
            return PushResult::Slow;
        }
        client.active = now;
        self.actions
            .flush
            .extend(client.stream.mark().then_some(Endpoint::Client(id)));
        let Some(confirmation) = channels.confirmation(bytes) else {
            match subscriptions.is_change_begun(member) {
                true => client.slots.push_answer(bytes, &mut client.stream.out),
                false => client.slots.push_between(bytes, &mut client.stream.out),
            }
            return PushResult::Passed;
        };
        let (form, slots, out) = (client.session.form, &mut client.slots, &mut client.stream.out);
        let mut told = Vec::new();
        let progress = subscriptions.confirmed(member, &confirmation, bytes, &mut |name, count| {
            channels.confirm(form, confirmation.made, name, count, &mut told);
        });
        slots.push_between(&told, out);
        progress.map_or(PushResult::Unasked, PushResult::Confirmed)
    }

    /// Ends the change under way: it is made, or it was not sent.
    pub(crate) fn end_subscribing(&mut self, id: ClientId, result: Result<(), &Failed<'_>>) {
        let Some(seq) = self.take_subscribing(id) else {
            return;
        };
        let to = ReplyTo::Client { client: id, seq };
        match result {
            Ok(()) => self.deliver(to, &Reply::new(Outcome::Ok, 0), b""),
            Err(failed) => self.fail(to, failed),
        }
    }

    /// Forgets the change under way and gives back the lanes without subscriptions. Returns the slot of the
    /// client's request.
    fn take_subscribing(&mut self, id: ClientId) -> Option<u32> {
        let client = self.clients.table.get_mut(id)?;
        let subscriptions = client.subscriptions.as_mut()?;
        let change = subscriptions.change.take()?;
        let free = subscriptions.release();
        let has_any = subscriptions.is_any();
        if subscriptions.is_bare() {
            client.subscriptions = None;
        }
        if let Some(channels) = client.protocol.channels() {
            channels.subscribed(client.session.or(&mut Session::default()), has_any);
        }
        for lane in free {
            self.free_lane(lane);
        }
        Some(change.seq)
    }

    /// A server has answered an error to its part of the change under way. Where other servers have a part,
    /// it is not known what they have made of it: the client is closed behind the error.
    pub(super) fn reject_subscription(&mut self, id: ClientId) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        let change = client
            .subscriptions
            .as_ref()
            .and_then(|subscriptions| subscriptions.change.as_ref());
        match change {
            Some(change) if change.parts().len() > 1 => client.closing = true,
            _ => {
                self.take_subscribing(id);
            }
        }
    }

    /// One of the client's lanes has ended.
    pub(super) fn lose_subscriptions(&mut self, id: ClientId, member: &Member, lane: LaneId) {
        if self.clients.is_subscribed_on(id, member.id, lane) {
            self.end_subscriptions(id, &Failed::at(&member.address, Outcome::ConnectError, LOST));
        }
    }

    /// Closes a client, behind what is due, because it would miss messages. `failed` answers the request that
    /// is under way.
    fn end_subscriptions(&mut self, id: ClientId, failed: &Failed<'_>) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        client.closing = true;
        let change = client
            .subscriptions
            .as_ref()
            .and_then(|subscriptions| subscriptions.change.as_ref());
        if let Some(seq) = change.map(|change| change.seq) {
            self.fail(ReplyTo::Client { client: id, seq }, failed);
        }
        self.drop_subscriptions(id);
        self.flush_later(Endpoint::Client(id));
    }

    /// Closes all lanes with the client's subscriptions, which ends them.
    pub(super) fn drop_subscriptions(&mut self, id: ClientId) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        let Some(subscriptions) = client.subscriptions.take() else {
            return;
        };
        if let Some(channels) = client.protocol.channels() {
            channels.subscribed(client.session.or(&mut Session::default()), false);
        }
        self.drop_subscribed(&subscriptions);
    }

    /// Closes the lanes of these subscriptions.
    pub(super) fn drop_subscribed(&mut self, subscriptions: &Subscriptions) {
        for lane in subscriptions.lanes() {
            self.drop_lane(lane, LEFT);
        }
    }

    /// Closes the client if messages for it may be sent to a server where it has not subscribed. Returns
    /// whether that is so.
    pub(super) fn end_outdated(&mut self, id: ClientId) -> bool {
        let (tree, servers) = (Rc::clone(&self.tree), &self.servers);
        let is_up = |lane| servers.lane(lane).is_some_and(|lane| lane.member.is_up());
        let is_outdated = self.clients.table.get_mut(id).is_some_and(|client| {
            let listener = usize::from(client.listener);
            let subscriptions = client.subscriptions.as_mut();
            subscriptions.is_some_and(|subscriptions| subscriptions.is_outdated(&tree, listener, is_up))
        });
        if is_outdated {
            self.end_subscriptions(id, &Failed::here(Outcome::Ejected, OUTDATED));
        }
        is_outdated
    }
}
