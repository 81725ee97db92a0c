//! Places for large messages, and the clients that lose them.
//!
//! A worker has a limited number of lanes for the large messages of one member, in both directions. An upload
//! that finds no place waits. A reply that finds no place is buffered.
//!
//! Invariant: a client that hardly moves its message keeps others from a place for at most half a time-out,
//! which is the pool's or `limits.write_timeout`, whichever is shorter. If the worker waits for that client,
//! the message moves less than `limits.minimum_rate`, and others want a place, the client is closed with a
//! reset.

use super::Lane;
use crate::{client::Clients, engine::Engine, micros::Micros};

/// The rate at which a large message moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// The start of the current span.
    since: Micros,
    /// Bytes that moved in the current span.
    bytes: u64,
    /// The message hardly moved in the previous span, because of its client.
    dawdles: bool,
}

impl Pace {
    /// The pace of a message that begins now.
    pub(super) fn since(now: Micros) -> Self {
        Self {
            since: now,
            bytes: 0,
            dawdles: false,
        }
    }

    #[inline]
    /// Counts bytes of the message that have moved.
    pub(super) fn moved(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Ends the current span if it has lasted `span`. Returns whether fewer than `least` bytes moved in it.
    pub(super) fn stalls(&mut self, now: Micros, span: Micros, least: u64) -> bool {
        if now - self.since <= span {
            return false;
        }
        let is_slow = self.bytes < least;
        (self.since, self.bytes) = (now, 0);
        is_slow
    }

    /// Ends the current span if it has lasted `span`. `rate`: the fewest bytes a second.
    fn measure(&mut self, now: Micros, span: Micros, rate: u64, waits_for_client: bool) {
        let passed = now - self.since;
        if passed >= span {
            let expected = u128::from(rate) * u128::from(passed.0) / 1_000_000;
            self.dawdles = waits_for_client && u128::from(self.bytes) < expected;
            (self.since, self.bytes) = (now, 0);
        }
    }
}

impl Engine {
    /// Closes the clients whose large messages hardly move while others want their place.
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

#[cfg(test)]
mod tests {
    use super::{Micros, Pace};

    #[test]
    fn only_who_is_waited_for_and_hardly_moves_dawdles() {
        for (bytes, waited_for, dawdles) in [(99, true, true), (100, true, false), (0, false, false)] {
            let mut pace = Pace::since(Micros::ZERO);
            pace.moved(bytes);
            pace.measure(Micros(100_000), Micros(100_000), 1000, waited_for);
            assert_eq!(pace.dawdles, dawdles, "{bytes} {waited_for}");
            pace.measure(Micros(100_001), Micros(100_000), 1000, false);
            assert_eq!(pace.dawdles, dawdles, "the next span has only begun");
        }
    }
}
