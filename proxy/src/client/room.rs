//! Room is the memory for what is due to clients and for what they have half sent. This file says which
//! clients are given room, and which make room for others.
//!
//! Invariant: what the buffers of this worker's clients take is known at the end of each turn, by what they
//! have allocated, and does not exceed the worker's part of `limits.total_bytes` for longer than that turn.
//!
//! A client that asks for large replies, or whose replies are not known yet, waits for room before the last
//! of the room is taken; that last part is for small replies. If a client waits and no room comes, or if what
//! clients send fills the room, the clients that hold the most are closed. A client that sends its requests
//! and takes its replies holds nothing, and is never closed for that.

use super::{Client, open::UNKNOWN_REPLY};
use crate::{
    engine::{ClientId, Engine, ReplyTo},
    micros::Micros,
};

/// Replies larger than this are checked before a client gets them; in bytes.
pub const LARGE: usize = 64 * 1024;
/// Replies up to this size may exceed the room if their client holds hardly anything; in bytes.
const MODEST: usize = 256 * 1024;
/// A client waits this long for room before others have to make some.
const WAIT: Micros = Micros::millis(100);

/// Memory of the buffers of this worker's clients.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// Bytes that all of them may take.
    limit: usize,
    /// Bytes of the room that requests to servers and half replies of servers take instead.
    lent: usize,
    /// Bytes that the buffers take, as far as they are charged to a client.
    used: usize,
    /// Bytes of replies made in this turn, charged when they are sent.
    fresh: usize,
    /// Clients that wait for room.
    waiting: Vec<ClientId>,
    /// The time since which no waiting client was served, or since which the gate is closed.
    since: Micros,
    /// The lanes of clients are not read, because only the reserve is left.
    is_gate_closed: bool,
}

impl Room {
    /// Sets the limit from `all` bytes. Clients may take three quarters without what lanes take. The last
    /// quarter is for what comes within a turn, for buffers that move as they grow, and for memory that the
    /// allocator has not given back yet.
    pub(crate) fn limit(&mut self, all: usize) {
        self.limit = all / 4 * 3 - self.lent.min(all / 2);
    }

    /// Notes that lanes and flights take this many bytes. Returns `true` if that is more than half of all,
    /// which nothing but fewer requests can mend.
    pub(crate) fn lend(&mut self, lent: usize, all: usize) -> bool {
        self.lent = lent;
        self.limit(all);
        lent > all / 2
    }

    /// Bytes that only small replies may take.
    fn reserve(&self) -> usize {
        self.limit / 8
    }

    /// Bytes that may be collected for one client while others wait behind its reply. The same number may be
    /// on its way to the client, and buffers may have grown to twice their bytes: that is half of the room in
    /// all.
    pub(crate) fn collected(&self) -> usize {
        self.limit / 8
    }

    /// Returns whether there is room for this many bytes without a reserve.
    fn has(&self, bytes: usize, reserve: usize) -> bool {
        self.used + self.fresh + bytes <= self.limit - reserve
    }

    /// Charges a client for its buffers; see [`Engine::charge`].
    #[inline]
    pub(crate) fn charge(&mut self, client: &mut Client, unsent: usize) {
        client.unsent = unsent;
        let bytes = client.memory_bytes();
        self.used = self.used - client.charged + bytes;
        client.charged = bytes;
    }

    /// Returns whether the lanes of clients are not read.
    pub(super) fn is_gate_closed(&self) -> bool {
        self.is_gate_closed
    }

    /// Closes the gate if only the reserve is left. Returns `true` the first time.
    pub(super) fn closes_gate(&mut self, now: Micros) -> bool {
        if self.is_gate_closed || self.has(0, self.reserve()) {
            return false;
        }
        if self.waiting.is_empty() {
            self.since = now;
        }
        self.is_gate_closed = true;
        true
    }

    /// Opens the gate if there is twice the reserve. Returns `true` if it was closed.
    fn opens_gate(&mut self) -> bool {
        self.is_gate_closed && self.has(0, 2 * self.reserve()) && {
            self.is_gate_closed = false;
            true
        }
    }

    /// Bytes that are charged to clients.
    pub(super) fn used(&self) -> usize {
        self.used
    }
}

impl Engine {
    /// Returns whether this client may be served one more request. If not, it is to be stalled.
    #[inline]
    pub(super) fn admits(&mut self, id: ClientId) -> bool {
        let Some(client) = self.clients.table.get(id) else {
            return false;
        };
        let requests = client.slots.len();
        let due = client.stream.out.len() + client.unsent + client.slots.buffered();
        // The client's requests wait in its own socket rather than at a server that is slow to take them.
        if requests >= self.limits.requests_in_flight
            || client.slots.asked() >= self.clients.share
            || due + requests * client.reply_size >= self.clients.share
        {
            return false;
        }
        self.clients.room.has(0, self.clients.room.reserve()) || self.waits_for_room(id)
    }

    /// Handles a client for which there is only the reserve. Returns `true` if the client may use it;
    /// otherwise it waits for room.
    #[cold]
    fn waits_for_room(&mut self, id: ClientId) -> bool {
        let Some(client) = self.clients.table.get_mut(id) else {
            return false;
        };
        let modest = client.reply_size < UNKNOWN_REPLY && client.charged < LARGE;
        if modest && self.clients.room.has(0, 0) {
            return true;
        }
        if !std::mem::replace(&mut client.waits, true) {
            if self.clients.room.waiting.is_empty() {
                self.clients.room.since = self.now;
            }
            self.clients.room.waiting.push(id);
        }
        false
    }

    /// Notes that a reply was made here. Returns `false` if it is large and there is no room for it.
    #[inline]
    pub(crate) fn takes_reply(&mut self, to: ReplyTo, bytes: usize) -> bool {
        if bytes > LARGE && !self.clients.room.has(bytes, 0) && !self.may_exceed(to, bytes) {
            return false;
        }
        self.clients.room.fresh += bytes;
        true
    }

    /// Bytes that requests which are served in steps may hold together.
    pub(crate) fn room_in_steps(&self) -> usize {
        self.clients.room.limit / 4
    }

    /// Returns whether a reply may be made although there is no room for it. A client that holds hardly
    /// anything gets a reply that is not huge: at the end of the turn the clients that hold the most make
    /// room, and not those that come meanwhile.
    #[cold]
    fn may_exceed(&self, to: ReplyTo, bytes: usize) -> bool {
        let ReplyTo::Client { client: id, .. } = to else {
            return false;
        };
        let room = &self.clients.room;
        let modest = |client: &Client| client.charged < LARGE;
        bytes <= MODEST
            && room.used + room.fresh + bytes <= room.limit + room.reserve()
            && self.clients.table.get(id).is_some_and(modest)
    }

    /// Charges a client whose buffers have changed. `unsent` is the number of bytes that its socket was given
    /// and has not taken.
    #[inline]
    pub fn charge(&mut self, id: ClientId, unsent: usize) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        self.clients.room.charge(client, unsent);
    }

    /// Charges a client for at least this many bytes that its socket was given and has not taken.
    pub(crate) fn charge_at_least(&mut self, id: ClientId, unsent: usize) {
        if let Some(client) = self.clients.table.get_mut(id) {
            let unsent = unsent.max(client.unsent);
            self.clients.room.charge(client, unsent);
        }
    }

    /// Gives back what was charged to a client that has gone.
    pub(super) fn discharge(&mut self, charged: usize) {
        self.clients.room.used -= charged;
    }

    /// Ends the room's turn after all that could be sent was sent: clients that wait are served when there is
    /// room, and clients are closed while the limit is exceeded.
    pub fn settle_room(&mut self) {
        self.clients.room.fresh = 0;
        self.keep_within_room();
        if self.clients.room.opens_gate() {
            self.wake_all_own_lanes();
        }
        if self.clients.room.waiting.is_empty() || !self.clients.room.has(0, self.clients.room.reserve()) {
            return;
        }
        for id in std::mem::take(&mut self.clients.room.waiting) {
            if let Some(client) = self.clients.table.get_mut(id) {
                client.waits = false;
                self.requeue(id);
            }
        }
    }

    /// Closes the clients that hold the most if the limit is exceeded.
    #[inline]
    pub(crate) fn keep_within_room(&mut self) {
        if !self.clients.room.has(0, 0) {
            self.make_room(self.clients.room.reserve());
        }
    }

    /// Makes room if a client has waited long enough for it. It is called a few times a second.
    pub fn check_room(&mut self) {
        let room = &self.clients.room;
        let is_awaited = room.is_gate_closed || !room.waiting.is_empty();
        if is_awaited && (self.now - room.since) >= WAIT {
            self.make_room(self.clients.room.limit / 4);
            self.settle_room();
        }
    }

    /// Closes the clients that hold the most until this many bytes are free.
    #[cold]
    fn make_room(&mut self, free: usize) {
        let mut holders: Vec<(usize, ClientId)> = self
            .clients
            .table
            .iter()
            .map(|(id, client)| (client.charged, id))
            .collect();
        holders.sort_unstable();
        while self.clients.room.used + free > self.clients.room.limit
            && let Some((charged, id)) = holders.pop()
            && charged > 0
        {
            self.metrics.clients.greedy += 1;
            self.close_client(id, true);
        }
    }
}
