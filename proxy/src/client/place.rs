//! Uploads that wait for a place among the large messages to a server.

use super::{Client, ClientId, Clients, Stage, Wanted};
use crate::{engine::Engine, micros::Micros, reactor::Conn};

impl Clients {
    /// Is this client there, and served as it sends?
    pub(crate) fn is_served(&self, id: ClientId) -> bool {
        self.table.get(id).is_some_and(|client| !client.stalled)
    }

    /// Is this slot of the client the next to leave?
    pub(crate) fn is_first(&self, id: ClientId, seq: u32) -> bool {
        let client = self.table.get(id);
        client.is_some_and(|client| client.slots.is_first(seq))
    }
}

impl Engine {
    /// Uploads that have waited too long for a place are served, to be refused.
    pub(crate) fn end_waits_for_places(&mut self) {
        if self.clients.waiting_uploads == 0 {
            return;
        }
        let is_late = |client: &Client| client.place().is_some_and(|place| place.due <= self.now);
        let late: Vec<ClientId> = self
            .clients
            .table
            .iter()
            .filter(|(_, client)| is_late(client))
            .map(|(id, _)| id)
            .collect();
        for client in late {
            self.requeue(client);
        }
    }

    /// Uploads whose rest will never come wait for no place. Nobody reads from those that wait, so that their ends have to be
    /// looked for. Called a few times a second; `left_to_read` tells how many bytes a client that sends no more has sent that
    /// were not received.
    pub fn check_uploads(&mut self, left_to_read: &dyn Fn(Conn) -> Option<u64>) {
        if self.clients.waiting_uploads == 0 {
            return;
        }
        let has_ended = |client: &Client| {
            let (Some(place), false) = (client.place(), client.eof) else {
                return false;
            };
            let conn = client.stream.conn.filter(|_| client.stream.paused);
            let Some(left) = conn.and_then(left_to_read) else {
                return false;
            };
            // What a transform has in hand nobody knows.
            let is_short =
                client.stream.transform.is_none() && client.stream.held() as u64 + left < place.bytes;
            left == 0 || is_short
        };
        let ended: Vec<ClientId> = self
            .clients
            .table
            .iter()
            .filter(|(_, client)| has_ended(client))
            .map(|(id, _)| id)
            .collect();
        for client in ended {
            self.client_eof(client);
        }
    }

    /// A place is free, or a server that was slow has gone: clients that wait for it go on, who waits longest first.
    pub(crate) fn wake_uploads(&mut self) {
        let mut stalled: Vec<(Micros, ClientId)> = self
            .clients
            .table
            .iter()
            .filter(|(_, client)| client.stalled)
            .map(|(id, client)| (client.place().map_or(Micros::ZERO, |place| place.due), id))
            .collect();
        stalled.sort_unstable();
        for (_, client) in stalled {
            self.requeue(client);
        }
    }

    /// This client's upload waits for a place, or does not wait any more.
    pub(super) fn wait_for_place(&mut self, id: ClientId, place: Option<Wanted>) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        let waited = client.place().is_some();
        if let Some(place) = place {
            client.stage = Stage::Place(place);
        } else if waited {
            client.stage = Stage::Requests;
        }
        self.clients.waiting_uploads =
            self.clients.waiting_uploads + usize::from(place.is_some()) - usize::from(waited);
    }
}
