//! Messages that a client gets on its own connections to servers without a request, and the moment at which
//! it takes more.

use super::{Client, Clients, HIGH_WATER};
use crate::{
    engine::{ClientId, Engine, LaneId, ReplyTo},
    members::MemberId,
    micros::Micros,
};

impl Client {
    /// Returns whether it gets messages without a request. One that is to be closed still gets the rest of a
    /// message that has begun.
    fn gets_more(&self) -> bool {
        !self.closing || self.pushing.is_some()
    }

    /// Bytes that wait until the client takes them.
    fn untaken(&self) -> usize {
        self.stream.out.len() + self.unsent
    }
}

impl Clients {
    /// Returns whether the client takes the next message of this lane, whose next reply is for `next`.
    pub(crate) fn takes_from(&self, id: ClientId, lane: LaneId, member: MemberId, next: ReplyTo) -> bool {
        let Some(client) = self.table.get(id).filter(|client| client.gets_more()) else {
            // Nothing of the lane is kept.
            return true;
        };
        // Others wait behind what this lane has to say: it is not to wait for them.
        let is_due = match next {
            ReplyTo::Client { client: to, seq } => to == id && client.slots.is_first(seq),
            _ => false,
        };
        let subscriptions = client.subscriptions.as_ref();
        let is_confirming = subscriptions.is_some_and(|all| all.is_confirming(member));
        let held = match is_due || is_confirming {
            true => 0,
            false => client.slots.buffered(),
        };
        let is_free = client.pushing.is_none_or(|(other, _)| other == lane);
        is_free && client.untaken() + held < HIGH_WATER.min(self.share)
    }

    /// Returns whether this is the beginning of a confirmation, and the lane has the client's subscriptions.
    pub(crate) fn confirms(&self, id: ClientId, lane: LaneId, member: MemberId, begin: &[u8]) -> bool {
        let channels = self.table.get(id).and_then(|client| client.protocol.channels());
        self.is_subscribed_on(id, member, lane) && channels.is_some_and(|channels| channels.confirms(begin))
    }

    /// Returns whether the client has got a part of a message of this lane, and not the rest.
    pub(crate) fn is_pushing(&self, id: ClientId, lane: LaneId) -> bool {
        let client = self.table.get(id);
        client.is_some_and(|client| client.pushing.is_some_and(|(other, _)| other == lane))
    }

    /// The client's own connections to servers; `None`: the client has gone.
    pub(crate) fn lanes_of(&self, id: ClientId) -> Option<Vec<LaneId>> {
        let client = self.table.get(id)?;
        let subscribed = client.subscriptions.iter().flat_map(|all| all.lanes());
        Some(client.own.into_iter().chain(subscribed).collect())
    }

    /// Charges the client for what one of its lanes holds now, instead of what it held before.
    pub(crate) fn charge_for_lane(&mut self, id: ClientId, before: usize, bytes: usize) {
        if let Some(client) = self.table.get_mut(id) {
            client.beside = client.beside + bytes - before;
            let unsent = client.unsent;
            self.room.charge(client, unsent);
        }
    }

    /// Returns whether the lanes of clients are not read, because memory is short.
    pub(crate) fn is_gate_closed(&self) -> bool {
        self.room.is_gate_closed()
    }

    /// Closes the gate if memory is short. Returns `true` the first time.
    pub(crate) fn closes_gate(&mut self, now: Micros) -> bool {
        self.room.closes_gate(now)
    }
}

impl Engine {
    /// Passes on a part of a message that the client has not asked for, in its turn. Returns `false` if more
    /// waits for the client than may be due to it.
    pub(crate) fn push_part_to_client(
        &mut self,
        id: ClientId,
        (lane, member): (LaneId, MemberId),
        part: &[u8],
        is_last: bool,
    ) -> bool {
        let (most, now) = (self.clients.share, self.now);
        let client = self.clients.table.get_mut(id);
        let Some(client) = client.filter(|client| client.gets_more()) else {
            return true;
        };
        client.active = now;
        let seq = match client.pushing {
            Some((other, seq)) if other == lane => seq,
            _ => {
                let subscriptions = client.subscriptions.as_ref();
                let is_behind = subscriptions.is_some_and(|all| all.is_change_begun(member));
                client.slots.push_message(is_behind)
            }
        };
        client.pushing = (!is_last).then_some((lane, seq));
        if client.untaken() + client.slots.buffered() > most.max(2 * HIGH_WATER) {
            return false;
        }
        self.metrics.pushes += u64::from(is_last);
        self.pass_piece((id, seq), part, is_last);
        true
    }
}
