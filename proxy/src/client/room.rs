//! Room for what clients are due and for what they have half sent: whom it is given, and who makes room for others.
//!
//! Invariant: what the buffers of this worker's clients take is known at the end of each turn, by what they have allocated,
//! and does not exceed the worker's part of `limits.total_bytes` for longer than that turn.
//!
//! A client that asks for large replies, or whose replies are not known yet, waits for room before the last of it is taken;
//! small replies have that. If somebody waits and no room comes, or if what clients send fills it, those who hold the most
//! are closed. A client that sends its requests and takes its replies holds nothing, and never is.

use super::{Client, ClientId, open::UNKNOWN_REPLY};
use crate::{engine::Engine, micros::Micros, route::ReplyTo};

/// Larger replies than this are looked at before a client gets them.
pub const LARGE: usize = 64 * 1024;
/// Replies up to this size may exceed the room, if their client holds hardly anything.
const MODEST: usize = 256 * 1024;
/// How long a client waits for room before others have to make some.
const WAIT: Micros = Micros::millis(100);

/// Memory of the buffers of this worker's clients.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// What they may take together.
    limit: usize,
    /// What requests to servers and half replies of servers take instead.
    lent: usize,
    /// What they take, as far as it is charged to one of them.
    used: usize,
    /// Bytes of replies made in this turn, charged when they are sent.
    fresh: usize,
    /// Clients that wait for room.
    waiting: Vec<ClientId>,
    /// Since when nobody of them was served.
    since: Micros,
}

impl Room {
    /// Of `all` bytes, clients may take what lanes do not, and not a quarter: what comes within a turn, buffers that move as
    /// they grow, and memory that the allocator has not given back yet take that.
    pub(crate) fn limit(&mut self, all: usize) {
        self.limit = all / 4 * 3 - self.lent.min(all / 2);
    }

    /// Lanes and flights take so many. True: more than a half of all, which nothing but fewer requests can mend.
    pub(crate) fn lend(&mut self, lent: usize, all: usize) -> bool {
        self.lent = lent;
        self.limit(all);
        lent > all / 2
    }

    /// Bytes that only small replies may take.
    fn reserve(&self) -> usize {
        self.limit / 8
    }

    /// Bytes that may be collected for one client while others wait behind its reply. As many may be on their way to it, and
    /// buffers may have grown to twice their bytes: together half of the room.
    pub(crate) fn collected(&self) -> usize {
        self.limit / 8
    }

    /// Is there room for so many bytes, but for a reserve?
    fn has(&self, bytes: usize, reserve: usize) -> bool {
        self.used + self.fresh + bytes <= self.limit - reserve
    }

    /// See [`Engine::charge`].
    #[inline]
    pub(crate) fn charge(&mut self, client: &mut Client, unsent: usize) {
        client.unsent = unsent;
        let holds = client.holds();
        self.used = self.used - client.charged + holds;
        client.charged = holds;
    }

    /// What is charged.
    pub(super) fn used(&self) -> usize {
        self.used
    }
}

impl Engine {
    /// May this client be served one request more? If not, it is to be stalled.
    #[inline]
    pub(super) fn admits(&mut self, id: ClientId) -> bool {
        let Some(client) = self.clients.table.get(id) else {
            return false;
        };
        let requests = client.slots.len();
        let due = client.stream.out.len() + client.unsent + client.slots.held();
        // Its requests wait in its own socket rather than at a server that is slow to take them.
        if requests >= self.limits.requests_in_flight
            || client.slots.asked() >= self.clients.share
            || due + requests * client.reply_size >= self.clients.share
        {
            return false;
        }
        self.clients.room.has(0, self.clients.room.reserve()) || self.waits_for_room(id)
    }

    /// There is only the reserve. True: this client may use it.
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

    /// Notes that a reply was made here; false: it is large, and there is no room for it.
    #[inline]
    pub(crate) fn takes_reply(&mut self, to: ReplyTo, bytes: usize) -> bool {
        if bytes > LARGE && !self.clients.room.has(bytes, 0) && !self.may_exceed(to, bytes) {
            return false;
        }
        self.clients.room.fresh += bytes;
        true
    }

    /// May a reply for which there is no room be made all the same? A client that holds hardly anything gets one that is not
    /// huge: those who hold the most make room at the end of the turn, not those who come while they do.
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

    /// A client's buffers have changed. `unsent` is what its socket was given and has not taken.
    #[inline]
    pub fn charge(&mut self, id: ClientId, unsent: usize) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        self.clients.room.charge(client, unsent);
    }

    /// What its socket was given and has not taken is at least so much.
    pub(crate) fn charge_at_least(&mut self, id: ClientId, unsent: usize) {
        if let Some(client) = self.clients.table.get_mut(id) {
            let unsent = unsent.max(client.unsent);
            self.clients.room.charge(client, unsent);
        }
    }

    /// It has gone.
    pub(super) fn discharge(&mut self, charged: usize) {
        self.clients.room.used -= charged;
    }

    /// All that could be sent in this turn was sent: clients that wait are served when there is room, and what exceeds the limit
    /// goes.
    pub fn settle_room(&mut self) {
        self.clients.room.fresh = 0;
        self.keep_within_room();
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

    /// What exceeds the limit goes: those who hold the most.
    #[inline]
    pub(crate) fn keep_within_room(&mut self) {
        if !self.clients.room.has(0, 0) {
            self.make_room(self.clients.room.reserve());
        }
    }

    /// Makes room if somebody has waited long enough for it. Called a few times a second.
    pub fn check_room(&mut self) {
        if !self.clients.room.waiting.is_empty() && (self.now - self.clients.room.since) >= WAIT {
            self.make_room(self.clients.room.limit / 4);
            self.settle_room();
        }
    }

    /// Closes the clients that hold the most until so much is free.
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
