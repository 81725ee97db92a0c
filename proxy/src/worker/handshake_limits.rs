//! Limits of handshakes: the time of one, the part of a turn for all, and their number. A handshake costs as
//! much as a thousand requests, and any peer can begin one.

use std::{
    collections::{HashSet, VecDeque},
    time::{Duration, Instant},
};

use super::{Worker, tag};
use crate::{
    engine::Endpoint,
    micros::Micros,
    protocol::Handshake,
    reactor::{Conn, Reactor},
    tls::Failure,
};

/// Time for the handshake of a client.
const TIME: Micros = Micros::secs(5);
/// The part of a turn that is for handshakes; the step that exceeds it is the last of the turn.
const SHARE: Duration = Duration::from_millis(1);
/// Handshakes of clients under way at most. One more takes the place of the one that has waited the longest
/// for its client.
const MOST: usize = 1024;

/// The handshakes of one worker.
#[derive(Default)]
pub(super) struct Handshakes {
    /// Those of clients and when they began, the oldest first. Some may have ended.
    begun: VecDeque<(Endpoint, Micros)>,
    /// Bytes that wait for a share of a turn. Their connections do not receive meanwhile.
    waiting: VecDeque<(Endpoint, Vec<u8>)>,
    /// The tags of these connections.
    waits: HashSet<u64>,
    /// The turn in which handshakes were last gone on with, and what they have taken of it.
    turn: Micros,
    taken: Duration,
}

impl Handshakes {
    /// Does one of them wait for the next turn?
    pub(super) fn wait(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Have handshakes had their share of this turn?
    fn is_share_taken(&mut self, now: Micros) -> bool {
        if self.turn != now {
            (self.turn, self.taken) = (now, Duration::ZERO);
        }
        self.taken >= SHARE
    }
}

impl<R: Reactor> Worker<R> {
    pub(super) fn is_shaking_hands(&mut self, endpoint: Endpoint) -> bool {
        self.engine
            .stream(endpoint)
            .is_some_and(|stream| stream.is_shaking_hands())
    }

    /// Notes that the handshake of a client has begun.
    pub(super) fn handshake_begins(&mut self, endpoint: Endpoint) {
        self.handshakes.begun.push_back((endpoint, self.engine.now));
        if self.handshakes.begun.len() <= MOST {
            return;
        }
        let mut begun = std::mem::take(&mut self.handshakes.begun);
        begun.retain(|&(endpoint, _)| self.is_shaking_hands(endpoint));
        let waits = &self.handshakes.waits;
        let oldest = begun
            .iter()
            .position(|&(endpoint, _)| !waits.contains(&tag(endpoint)));
        let displaced = oldest
            .filter(|_| begun.len() > MOST)
            .and_then(|at| begun.remove(at));
        self.handshakes.begun = begun;
        if let Some((endpoint, _)) = displaced {
            self.end_handshake(endpoint, Failure::Displaced);
        }
    }

    /// Goes on with those that have waited for this turn.
    pub(super) fn go_on_with_handshakes(&mut self) {
        let now = self.engine.now;
        while !self.handshakes.is_share_taken(now)
            && let Some((endpoint, bytes)) = self.handshakes.waiting.pop_front()
        {
            self.take_up(endpoint, &bytes);
        }
    }

    fn take_up(&mut self, endpoint: Endpoint, bytes: &[u8]) {
        self.handshakes.waits.remove(&tag(endpoint));
        if let Some(conn) = self.conn(endpoint) {
            self.reactor.resume(conn);
        }
        self.open(endpoint, bytes);
    }

    /// Keeps bytes of a handshake for the next turn if handshakes have had their share of this one. Returns
    /// whether they are kept.
    pub(super) fn wait_for_share(&mut self, endpoint: Endpoint, bytes: &[u8]) -> bool {
        let now = self.engine.now;
        let is_next = !self.handshakes.is_share_taken(now) && !self.handshakes.waits.contains(&tag(endpoint));
        if is_next || !self.is_shaking_hands(endpoint) {
            return false;
        }
        if self.handshakes.waits.insert(tag(endpoint)) {
            self.handshakes.waiting.push_back((endpoint, bytes.to_vec()));
            if let Some(conn) = self.conn(endpoint) {
                self.reactor.pause(conn);
            }
        } else if let Some((_, kept)) = self
            .handshakes
            .waiting
            .iter_mut()
            .find(|(other, _)| *other == endpoint)
        {
            kept.extend_from_slice(bytes);
        }
        true
    }

    /// Opens what is kept of this connection: it ends, and nothing may overtake that.
    pub(super) fn open_kept(&mut self, endpoint: Endpoint) {
        if self.handshakes.waits.contains(&tag(endpoint))
            && let Some(at) = self
                .handshakes
                .waiting
                .iter()
                .position(|(other, _)| *other == endpoint)
            && let Some((endpoint, bytes)) = self.handshakes.waiting.remove(at)
        {
            self.take_up(endpoint, &bytes);
        }
    }

    fn conn(&mut self, endpoint: Endpoint) -> Option<Conn> {
        self.engine.stream(endpoint)?.conn
    }

    /// Notes how a step of a handshake, which began then, has ended.
    pub(super) fn note_handshake(
        &mut self,
        endpoint: Endpoint,
        began: Instant,
        now: Result<Handshake, Failure>,
    ) {
        self.handshakes.taken += began.elapsed();
        let counts = &mut self.engine.metrics.tls;
        let counts = match endpoint {
            Endpoint::Client(_) => &mut counts.clients,
            Endpoint::Lane(_) => &mut counts.servers,
            // The control thread has made the connection.
            Endpoint::Link(_) => return,
        };
        match now {
            Ok(Handshake::UnderWay | Handshake::None) => {}
            Ok(Handshake::Full) => counts.full += 1,
            Ok(Handshake::Resumed) => counts.resumed += 1,
            Err(failure) => counts.fail(failure),
        }
    }

    /// Ends the handshakes of clients that take too long. Called a few times a second.
    pub(super) fn end_late_handshakes(&mut self) {
        while let Some(&(endpoint, since)) = self.handshakes.begun.front()
            && self.engine.now - since > TIME
        {
            self.handshakes.begun.pop_front();
            if self.is_shaking_hands(endpoint) {
                self.end_handshake(endpoint, Failure::Late);
            }
        }
    }

    fn end_handshake(&mut self, endpoint: Endpoint, why: Failure) {
        if let Endpoint::Client(client) = endpoint {
            self.engine.metrics.tls.clients.fail(why);
            self.engine.client_failed(client);
        }
    }
}
