//! Seats for large messages, and the clients that lose them.
//!
//! A worker has a limited number of lanes for the large messages of one member, in both directions. An upload
//! that finds no seat waits. A reply that finds no seat is buffered.
//!
//! Invariant: a client that hardly moves its message keeps others from a seat for at most half a time-out,
//! which is the pool's or `limits.write_timeout`, whichever is shorter. If the worker waits for that client,
//! the message moves less than `limits.minimum_rate`, and others want a seat, the client is closed with a
//! reset.

use super::Lane;
use crate::{client::Clients, engine::Engine};

impl Engine {
    /// Closes the clients whose large messages hardly move while others want their seat.
    pub(super) fn end_dawdling(&mut self) {
        let (now, rate) = (self.now, self.limits.minimum_rate as u64);
        let clients = &self.clients;
        let mut dawdling = Vec::new();
        for (_, lane) in self.servers.lanes.iter_mut() {
            if !lane.bulk || !lane.is_streaming() && lane.uploading.is_none() {
                continue;
            }
            let timeout = lane.wait_for_clients(&self.limits);
            let waits_for_client = lane.waits_for_client(clients);
            lane.pace.measure(now, timeout / 4, rate, waits_for_client);
            let wanted = self.servers.by_member[lane.member.id.0 as usize].bulk.wanted;
            if lane.pace.dawdles && wanted.is_some_and(|wanted| now - wanted <= timeout) {
                dawdling.extend(lane.uploading.or_else(|| lane.reader()));
            }
        }
        for client in dawdling {
            self.close_slow(client);
        }
    }
}

impl Lane {
    /// Does the lane wait for its client only, to send or to read, and does the client itself wait for
    /// nothing else?
    fn waits_for_client(&self, clients: &Clients) -> bool {
        match (self.uploading, self.reading_slot()) {
            (Some(client), _) => self.unsent() == 0 && clients.is_served(client),
            (None, Some((client, seq))) => self.stream.paused && clients.is_first(client, seq),
            (None, None) => false,
        }
    }
}
