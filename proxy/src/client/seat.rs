//! Uploads that wait for a seat among the large messages to a server.

use super::{
    Client, Clients,
    stage::{Stage, WantedSeat},
};
use crate::{
    engine::{ClientId, Engine},
    micros::Micros,
    reactor::Conn,
};

impl Clients {
    /// Returns whether this client is connected and is served as it sends.
    pub(crate) fn is_served(&self, id: ClientId) -> bool {
        self.table.get(id).is_some_and(|client| !client.stalled)
    }

    /// The clients that wait for a seat and for which `is` holds, in the order in which they came. `is` is
    /// also given the time until which the client waits.
    fn waiting(&mut self, is: impl Fn(&Client, Micros) -> bool) -> Vec<ClientId> {
        if self.waiting_uploads == 0 {
            self.seat_queue.clear();
        }
        let table = &self.table;
        let waits = |due: Micros, id| {
            let client = table.get(id)?;
            client.wanted_seat().filter(|seat| seat.due == due)?;
            Some(client)
        };
        self.seat_queue.retain(|&(due, id)| waits(due, id).is_some());
        let queue = self.seat_queue.iter();
        let found = queue.filter(|&&(due, id)| waits(due, id).is_some_and(|client| is(client, due)));
        found.map(|&(_, id)| id).collect()
    }

    /// Returns whether this slot of the client is the next to leave.
    pub(crate) fn is_first(&self, id: ClientId, seq: u32) -> bool {
        let client = self.table.get(id);
        client.is_some_and(|client| client.slots.is_first(seq))
    }
}

impl Engine {
    /// Serves uploads that have waited too long for a seat: they are rejected then.
    pub(crate) fn end_waits_for_seats(&mut self) {
        let now = self.now;
        for id in self.clients.waiting(|_, due| due <= now) {
            self.requeue(id);
        }
    }

    /// Ends the wait of uploads whose rest will never come. Clients that wait are not read, so that their
    /// ends have to be looked for. It is called a few times a second. `left_to_read` gives the bytes that a
    /// client that sends no more has sent and that were not received.
    pub fn check_uploads(&mut self, left_to_read: &dyn Fn(Conn) -> Option<u64>) {
        if self.clients.waiting_uploads == 0 {
            return;
        }
        let has_ended = |client: &Client| {
            let (Some(seat), false) = (client.wanted_seat(), client.eof) else {
                return false;
            };
            let conn = client.stream.conn.filter(|_| client.stream.paused);
            let Some(left) = conn.and_then(left_to_read) else {
                return false;
            };
            // The bytes that a transform still has are not known.
            let is_short =
                client.stream.transform.is_none() && client.stream.held() as u64 + left < seat.bytes;
            left == 0 || is_short
        };
        for client in self.clients.waiting(|client, _| has_ended(client)) {
            self.client_eof(client);
        }
    }

    /// Lets clients that wait for a seat go on, in the order in which they came: a seat is free.
    pub(crate) fn wake_uploads(&mut self) {
        for id in self.clients.waiting(|_, _| true) {
            self.requeue(id);
        }
    }

    /// Throws away the next bytes of this client, which waits for no seat any more.
    pub(super) fn discard(&mut self, id: ClientId, bytes: u64) {
        self.wait_for_seat(id, None);
        if let Some(client) = self.clients.table.get_mut(id) {
            client.stage = Stage::Discard(bytes);
        }
    }

    /// Notes that this client's upload waits for a seat; `None` if it no longer waits.
    pub(super) fn wait_for_seat(&mut self, id: ClientId, seat: Option<WantedSeat>) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        let waited = client.wanted_seat().is_some();
        if let Some(seat) = seat {
            client.stage = Stage::Seat(seat);
            if !waited {
                self.clients.seat_queue.push((seat.due, id));
            }
        } else if waited {
            client.stage = Stage::Requests;
        }
        self.clients.waiting_uploads =
            self.clients.waiting_uploads + usize::from(seat.is_some()) - usize::from(waited);
    }
}
