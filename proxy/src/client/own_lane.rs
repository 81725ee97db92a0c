//! A client's own lane, as its session sees it.

use std::sync::Arc;

use proxima_wire::message::{Reply, Request, Span};

use super::{Clients, ReplyRole, input::Input};
use crate::{
    engine::{ClientId, Endpoint, Engine, LaneId, ReplyTo},
    members::Member,
    protocol::{Retention, Session, StateSlot},
    route::{Branches, NodeId, Walk},
};

impl Clients {
    /// The lane of this client's own, if it has one. `None`: the client has gone, or asks for nothing any
    /// more.
    pub(crate) fn own_lane(&self, id: ClientId) -> Option<Option<LaneId>> {
        let client = self.table.get(id)?;
        (!client.closing).then_some(client.own)
    }

    /// Returns whether this slot has a part of a reply that leaves only when all other parts have come: its
    /// lane must not wait for the client to take it.
    pub(crate) fn is_part(&self, id: ClientId, seq: u32) -> bool {
        let slot = self.table.get(id).and_then(|client| client.slots.get(seq));
        slot.is_some_and(|slot| slot.role == ReplyRole::Part)
    }

    /// Returns whether nothing of this client leaves before this part of a reply has come whole: a lane that
    /// waited for the client to take something would wait for ever.
    pub(crate) fn is_due_part(&self, id: ClientId, seq: u32) -> bool {
        let client = self.table.get(id);
        client.is_some_and(|client| client.slots.is_due_part(seq))
    }

    /// Sets the lane of the client's own; `None` takes it away.
    pub(crate) fn set_own_lane(&mut self, id: ClientId, lane: Option<LaneId>) {
        if let Some(client) = self.table.get_mut(id) {
            client.own = lane;
        }
    }

    /// The client whose session has this number.
    pub(crate) fn with_number(&self, number: u64) -> Option<ClientId> {
        let found = self.table.iter().find(|(_, client)| client.session.id == number);
        found.map(|(id, _)| id)
    }

    /// The listener of this client, by its number.
    pub(crate) fn listener(&self, id: ClientId) -> Option<u16> {
        self.table.get(id).map(|client| client.listener)
    }

    /// Is this client still here, and asks for more?
    pub(crate) fn is_open(&self, id: ClientId) -> bool {
        self.own_lane(id).is_some()
    }

    /// The session of this client; an empty one for a request that no client has made.
    pub(crate) fn session(&self, id: Option<ClientId>) -> &Session {
        let client = id.and_then(|id| self.table.get(id));
        client.map_or(Session::NOBODY, |client| &client.session)
    }

    /// The retention of this client's own lane; `None` if the client has gone.
    pub(crate) fn retention(&self, id: ClientId) -> Option<Retention> {
        self.table.get(id).map(|client| client.session.retention)
    }

    /// Notes that the lane on which the server kept something for this client is gone, and with it what was
    /// kept.
    pub(crate) fn end_retention(&mut self, id: ClientId) {
        if let Some(client) = self.table.get_mut(id) {
            if let Some(session) = client.session.get_mut() {
                session.retention = Retention::Clean;
            }
            client.own = None;
        }
    }

    /// Notes a reply that has come on the client's own lane.
    pub(super) fn note_reply(
        &mut self,
        id: ClientId,
        member: &Member,
        command: u16,
        (reply, bytes): (&Reply, &[u8]),
    ) {
        if let Some(client) = self.table.get_mut(id) {
            let (mut new, by) = (Session::default(), member.replier());
            let session = client.session.or(&mut new);
            client.protocol.answered(session, &by, command, reply, bytes);
        }
    }

    /// Notes the first bytes of a part of a reply.
    pub(super) fn note_begin(&mut self, id: ClientId, member: &Member, command: u16) {
        if let Some(client) = self.table.get_mut(id) {
            let (mut new, by) = (Session::default(), member.replier());
            client.protocol.begins(client.session.or(&mut new), &by, command);
        }
    }
}

impl Engine {
    /// Serves a request on a lane of the client's own. `before`: requests to be sent first, whose replies no
    /// client gets. `follows`: the tree decides, whatever lane the client has.
    pub(super) fn dedicate(
        &mut self,
        id: ClientId,
        request: &Request,
        (before, message): (&[u8], &[u8]),
        follows: bool,
        input: &Input<'_>,
    ) {
        let Some(client) = self.clients.table.get(id) else {
            return;
        };
        let (origin, own, tree) = (client.origin(id), client.own, input.tree);
        let own = own.and_then(|lane| Some(Arc::clone(&self.servers.lane(lane)?.member)));
        let mut has_key = false;
        if let Some(root) = tree.root(usize::from(origin.listener)) {
            let walk = Walk {
                tree,
                origin,
                request,
                message,
                to: ReplyTo::Client { client: id, seq: 0 },
            };
            let mut keys = std::mem::take(&mut self.clients.keys);
            origin.protocol.keys(request, message, &mut |key| keys.push(key));
            has_key = !keys.is_empty();
            let apart = self.find_apart(root, &walk, &keys, own.as_deref());
            keys.clear();
            self.clients.keys = keys;
            if let Some(apart) = apart {
                let own = own.as_ref().filter(|_| apart[0] == apart[1]);
                return self.reject_apart(id, &walk, root, apart, own.map(|member| &*member.address));
            }
        }
        let joined;
        let whole = match before.is_empty() {
            true => message,
            false => {
                joined = [before, message].concat();
                &joined
            }
        };
        let request = &Request {
            is_dedicated: true,
            ..request.behind(before.len())
        };
        match own {
            Some(member) if !has_key && !follows => {
                let Some(client) = self.clients.table.get_mut(id) else {
                    return;
                };
                let quiet = request.is_quiet;
                let seq = client
                    .slots
                    .push(request.command, quiet, ReplyRole::Whole, 0, self.now);
                let to = ReplyTo::Client { client: id, seq };
                self.send(&member, origin.login, request, whole, to);
            }
            _ => self.route(id, request, whole, input),
        }
    }

    /// The client's next request needs nothing that the server keeps on the client's lane: any lane will do
    /// for it.
    pub(crate) fn leave_lane(&mut self, id: ClientId) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        let (Some(own), Some(session)) = (client.own, client.session.get_mut()) else {
            return;
        };
        let retention = std::mem::replace(&mut session.retention, Retention::Clean);
        self.give_back(own);
        if let Some(client) = self.clients.table.get_mut(id)
            && let Some(session) = client.session.get_mut()
        {
            session.retention = retention;
        }
    }

    /// Two of these keys that do not go the same way; or twice one that does not go to the client's own
    /// member. `None`: the request can be served.
    fn find_apart<'a>(
        &mut self,
        root: NodeId,
        walk: &Walk<'a>,
        keys: &[Span],
        own: Option<&Member>,
    ) -> Option<[&'a [u8]; 2]> {
        let first = keys.first()?.of(walk.message);
        if let Some(own) = own
            && !self.leads_to(root, walk, first, own.id)
        {
            return Some([first, first]);
        }
        let mark = self.way_mark(root, walk, first, Branches::Now);
        let mut others = keys[1..].iter().map(|key| key.of(walk.message));
        let apart = others.find(|key| self.way_mark(root, walk, key, Branches::Now) != mark)?;
        Some([first, apart])
    }

    /// Sends a message that the client has not asked for. Returns `false` if the client does not take what it
    /// is sent, and more waits for it than may be due to it.
    pub(super) fn push_to_client(&mut self, id: ClientId, bytes: &[u8]) -> bool {
        let (most, now) = (self.clients.share, self.now);
        let Some(client) = self.clients.table.get_mut(id) else {
            return true;
        };
        if client.stream.out.len() + client.unsent + client.slots.buffered() > most {
            return false;
        }
        client.slots.push_between(bytes, &mut client.stream.out);
        client.active = now;
        self.flush_later(Endpoint::Client(id));
        true
    }

    /// Notes that the client's own lane has ended. A client that has lost more there than its session has is
    /// closed after what is due.
    pub(super) fn lose_own_lane(&mut self, id: ClientId, lane: LaneId, state: &StateSlot) {
        let client = self.clients.table.get_mut(id);
        let Some(client) = client.filter(|client| client.own == Some(lane)) else {
            return;
        };
        client.own = None;
        let protocol = client.protocol;
        if client.session.retention == Retention::Clean {
            return;
        }
        let session = client.session.get_mut();
        let outlives = session.is_some_and(|session| {
            let outlives = protocol.outlives(session, state);
            // No server keeps anything for the client from now on.
            session.retention = Retention::Clean;
            outlives
        });
        if !outlives {
            client.closing = true;
            self.flush_later(Endpoint::Client(id));
        }
    }
}
