//! Places for large messages, and who loses his.
//!
//! A worker gives a member's large messages so many lanes, whichever way they go. Who finds none waits (an upload), or has his
//! reply collected. Invariant: nobody keeps others from a place for longer than half a time-out by hardly moving: a client that is
//! waited for, and moves less than `limits.minimum_rate` while others want a place, is closed with a reset.

use super::Lane;
use crate::{
    client::{Client, ClientId, Stage, Wanted},
    engine::Engine,
    reactor::Conn,
    table::Table,
};

/// How fast a large message moves.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Microseconds: since when the bytes are counted.
    since: u64,
    bytes: u64,
    /// Did it hardly move, through its client, in the span before?
    dawdles: bool,
}

impl Pace {
    /// Of a message that begins.
    pub fn since(now: u64) -> Self {
        Self {
            since: now,
            bytes: 0,
            dawdles: false,
        }
    }

    #[inline]
    pub fn moved(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Ends a span of measuring after so many microseconds. `rate`: bytes a second.
    fn measure(&mut self, now: u64, span: u64, rate: u64, waits_for_client: bool) {
        let passed = now.saturating_sub(self.since);
        if passed >= span {
            let expected = u128::from(rate) * u128::from(passed) / 1_000_000;
            self.dawdles = waits_for_client && u128::from(self.bytes) < expected;
            (self.since, self.bytes) = (now, 0);
        }
    }
}

impl Engine {
    /// Ends large messages that hardly move where others want their place.
    pub(super) fn end_dawdling(&mut self) {
        let (now, rate) = (self.now, self.limits.minimum_rate as u64);
        let clients = &self.clients;
        let mut dawdling = Vec::new();
        for (_, lane) in self.lanes.iter_mut() {
            if !lane.bulk || !lane.is_streaming() && lane.uploading.is_none() {
                continue;
            }
            let timeout = lane.member.timeout.as_micros() as u64;
            let waits_for_client = lane.waits_for_client(clients);
            lane.pace.measure(now, timeout / 4, rate, waits_for_client);
            let wanted = self.by_member[lane.member.id.0 as usize].wanted;
            if lane.pace.dawdles && wanted.is_some_and(|wanted| now - wanted <= timeout) {
                dawdling.extend(lane.uploading.or_else(|| lane.reader()));
            }
        }
        for client in dawdling {
            if self.clients.get(client).is_some() {
                self.figures.clients.slow += 1;
                self.close_client(client, true);
            }
        }
        self.end_waits_for_places();
    }

    /// Uploads that have waited too long for a place are served, to be refused.
    fn end_waits_for_places(&mut self) {
        if self.waiting_uploads == 0 {
            return;
        }
        let is_late = |client: &Client| client.place().is_some_and(|place| place.due <= self.now);
        let late: Vec<ClientId> = self
            .clients
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
        if self.waiting_uploads == 0 {
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
        let mut stalled: Vec<(u64, ClientId)> = self
            .clients
            .iter()
            .filter(|(_, client)| client.stalled)
            .map(|(id, client)| (client.place().map_or(0, |place| place.due), id))
            .collect();
        stalled.sort_unstable();
        for (_, client) in stalled {
            self.requeue(client);
        }
    }

    /// This client's upload waits for a place, or does not wait any more.
    pub(crate) fn wait_for_place(&mut self, id: ClientId, place: Option<Wanted>) {
        let Some(client) = self.clients.get_mut(id) else {
            return;
        };
        let waited = client.place().is_some();
        if let Some(place) = place {
            client.stage = Stage::Place(place);
        } else if waited {
            client.stage = Stage::Requests;
        }
        self.waiting_uploads = self.waiting_uploads + usize::from(place.is_some()) - usize::from(waited);
    }
}

impl Lane {
    /// Is it the client who is awaited, to give or to take, and nothing else that he waits for himself?
    fn waits_for_client(&self, clients: &Table<Client>) -> bool {
        match (self.uploading, self.reading_slot()) {
            (Some(client), _) => {
                self.stream.out.is_empty() && clients.get(client).is_some_and(|client| !client.stalled)
            }
            (None, Some((client, seq))) => {
                self.stream.paused
                    && clients
                        .get(client)
                        .is_some_and(|client| client.slots.is_first(seq))
            }
            (None, None) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;

    #[test]
    fn only_who_is_waited_for_and_hardly_moves_dawdles() {
        for (bytes, waited_for, dawdles) in [(99, true, true), (100, true, false), (0, false, false)] {
            let mut pace = Pace::since(0);
            pace.moved(bytes);
            pace.measure(100_000, 100_000, 1000, waited_for);
            assert_eq!(pace.dawdles, dawdles, "{bytes} {waited_for}");
            pace.measure(100_001, 100_000, 1000, false);
            assert_eq!(pace.dawdles, dawdles, "the next span has only begun");
        }
    }
}
