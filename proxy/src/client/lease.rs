//! The lane of a client's own, as its session sees it.

use proxima_wire::message::Reply;

use super::{ClientId, Clients};
use crate::{
    dialect::Lease,
    engine::{Engine, Peer},
    upstream::LaneId,
};

impl Clients {
    /// The lane of this client's own, if it has one. `None`: the client has gone, or asks for nothing any
    /// more.
    pub(crate) fn own_lane(&self, id: ClientId) -> Option<Option<LaneId>> {
        let client = self.table.get(id)?;
        (!client.closing).then_some(client.own)
    }

    /// Sets the lane of the client's own; `None`: it has none from now on.
    pub(crate) fn set_own_lane(&mut self, id: ClientId, lane: Option<LaneId>) {
        if let Some(client) = self.table.get_mut(id) {
            client.own = lane;
        }
    }

    /// What the server keeps for this client; `None`: the client has gone.
    pub(crate) fn lease(&self, id: ClientId) -> Option<Lease> {
        self.table.get(id).map(|client| client.session.lease)
    }

    /// Notes that the lane on which the server kept something for this client is gone, and with it what was
    /// kept.
    pub(crate) fn end_lease(&mut self, id: ClientId) {
        if let Some(client) = self.table.get_mut(id) {
            client.session.lease = Lease::Clean;
            client.own = None;
        }
    }

    /// Notes a reply that has come on the client's own lane.
    pub(crate) fn note_reply(&mut self, id: ClientId, command: u16, reply: &Reply, bytes: &[u8]) {
        if let Some(client) = self.table.get_mut(id) {
            client
                .dialect
                .answered(&mut client.session, command, reply, bytes);
        }
    }
}

impl Engine {
    /// Sends a message that the client has not asked for. Returns `false` if the client does not take what it
    /// is sent, and more waits for it than may be due to it.
    pub(crate) fn push_to_client(&mut self, id: ClientId, bytes: &[u8]) -> bool {
        let (most, now) = (self.clients.share, self.now);
        let Some(client) = self.clients.table.get_mut(id) else {
            return true;
        };
        if client.stream.out.len() + client.unsent + client.slots.held() > most {
            return false;
        }
        client.slots.push_between(bytes, &mut client.stream.out);
        client.active = now;
        self.flush_later(Peer::Client(id));
        true
    }

    /// Notes that the client's own lane has broken. A client whose server kept something there is closed
    /// after what is due.
    pub(crate) fn lose_own_lane(&mut self, id: ClientId) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        client.own = None;
        if client.session.lease != Lease::Clean {
            client.closing = true;
            self.flush_later(Peer::Client(id));
        }
    }
}
