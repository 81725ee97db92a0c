//! One client connection.

use proxima_wire::message::{Class, Request};

use super::{
    Slots,
    kept_session::KeptSession,
    stage::{Stage, WantedSeat},
    subscriptions::Subscriptions,
};
use crate::{
    engine::{ClientId, LaneId, ids},
    members::{ClientSource, Locality},
    micros::Micros,
    protocol::Protocol,
    route::Origin,
    stream::Stream,
    table::Entry,
};

/// One client connection.
pub struct Client {
    pub(super) generation: u32,
    pub(super) stream: Stream,
    /// The number of its listener, which decides the route that its requests enter.
    pub(super) listener: u16,
    pub(super) protocol: &'static dyn Protocol,
    /// The number of its protocol's first command among the commands of all protocols.
    pub(super) first_command: u32,
    /// The number of its last one.
    pub(super) last_command: u32,
    pub(super) session: KeptSession,
    /// The number of the login that its requests need at servers.
    pub(super) login: u16,
    /// The client's location, by the newest report of the node agent.
    pub(super) locality: Locality,
    /// The key by which its location is looked up.
    pub(super) source: ClientSource,
    /// The port that it connected from; 0 for a Unix socket.
    pub(super) port: u16,
    /// The lane of the client's own; `None` if the client has no such lane.
    pub(super) own: Option<LaneId>,
    /// The lane whose message, which no request has asked for, is leaving in parts, and the slot of it.
    pub(super) pushing: Option<(LaneId, u32)>,
    /// Bytes that have come on its own lanes and were not passed on, and those of its transform.
    pub(super) beside: usize,
    /// Its subscriptions at several servers; `None` without any.
    pub(super) subscriptions: Option<Box<Subscriptions>>,
    pub(super) slots: Slots,
    /// The meaning of its next bytes.
    pub(super) stage: Stage,
    /// The size of a reply to this client in bytes, as far as is known. It rises at once and falls slowly.
    /// The number of requests in flight follows from it, so that replies that have not come yet cannot
    /// outgrow the client's share of memory.
    pub(super) reply_size: usize,
    /// The client asked to leave, or cannot be understood any more: it is closed after what is due.
    pub(super) closing: bool,
    /// The connection ends by an error: it broke, or the client sent what its listener does not take.
    pub(super) failed: bool,
    /// The client has closed its side: it is closed after what is due.
    pub(super) eof: bool,
    /// The request in this slot changes copies in several steps: the client is not served further before it
    /// is answered.
    pub(super) awaits: Option<u32>,
    /// The client is old: it is closed as soon as nothing is due to it.
    pub(super) retires: bool,
    /// The client is not served further until replies have made room.
    pub(super) stalled: bool,
    /// The client is on the list of clients to be served again.
    pub(super) queued: bool,
    /// The client is on the list of clients that wait for room.
    pub(super) waits: bool,
    /// Bytes that its socket was given and has not taken.
    pub(super) unsent: usize,
    /// Bytes of its buffers that are charged to it.
    pub(super) charged: usize,
    /// The time since which an incomplete request waits for its rest; [`Micros::NEVER`] if there is none.
    pub(super) half: Micros,
    /// The time at which it connected.
    pub(super) since: Micros,
    /// The last time it sent anything or was answered.
    pub(super) active: Micros,
    /// The time since which it takes none of the bytes that are due to it.
    pub(super) stuck: Micros,
    /// Bytes that were on their way to the client, here and in the kernel, when `stuck` was set.
    pub(super) stuck_backlog: usize,
    /// Since when its socket has not taken all bytes. `None`: it had when that was looked at last.
    pub(super) behind: Option<Micros>,
}

impl Entry for Client {
    type Kind = ids::ClientKind;

    fn generation(&self) -> u32 {
        self.generation
    }
}

impl Client {
    /// The seat that its upload waits for; `None` if no upload waits.
    pub(super) fn wanted_seat(&self) -> Option<WantedSeat> {
        match self.stage {
            Stage::Seat(seat) => Some(seat),
            _ => None,
        }
    }

    /// It is closed after what is due, for what it has sent.
    pub(super) fn close_as_failed(&mut self) {
        self.closing = true;
        self.failed = true;
    }

    /// The origin of its requests; `id` is its own handle.
    pub fn origin(&self, id: ClientId) -> Origin {
        Origin {
            client: Some(id),
            listener: self.listener,
            form: self.session.form,
            login: self.login,
            locality: self.locality,
            protocol: self.protocol,
            hides_prefix: false,
        }
    }

    /// Returns whether the session has to plan this request. Most requests are about one key and walk the
    /// tree.
    #[inline]
    pub(super) fn plans(&self, request: &Request) -> bool {
        let walks = matches!(request.class, Class::Read | Class::Write | Class::Delete);
        !walks || !request.more_keys.is_empty() || self.session.plans_all
    }

    /// The number of a command among the commands of all protocols.
    #[inline]
    pub fn number(&self, command: u16) -> usize {
        // Numbers beyond the last one are of requests like it.
        (self.first_command as usize + usize::from(command)).min(self.last_command as usize)
    }

    /// Returns whether the client is in the middle of a value that is being passed on.
    pub fn is_uploading(&self) -> bool {
        matches!(&self.stage, Stage::Upload(upload) if upload.goes_on())
    }

    /// Returns whether the rest of its value will never come. What has come may still wait here, even all of
    /// it.
    pub(super) fn left_midway(&self) -> bool {
        self.eof && self.is_uploading() && !self.stalled
    }

    /// Bytes that its buffers take, used or not.
    #[inline]
    pub(super) fn memory_bytes(&self) -> usize {
        let Stream {
            read_buffer,
            out,
            wire,
            ..
        } = &self.stream;
        let buffers = read_buffer.capacity() + out.capacity() + wire.capacity();
        let elsewhere = self.beside + self.session.memory();
        let has_more = self.subscriptions.is_some() || matches!(self.stage, Stage::Spread(_));
        let more = if has_more { self.optional_bytes() } else { 0 };
        self.unsent + buffers + self.slots.memory() + elsewhere + more
    }

    /// Bytes that only clients with many channels or keys hold.
    #[cold]
    fn optional_bytes(&self) -> usize {
        let subscriptions = self.subscriptions.as_ref().map_or(0, |all| all.memory_bytes());
        match &self.stage {
            Stage::Spread(spread) => subscriptions + spread.memory(),
            _ => subscriptions,
        }
    }

    /// Returns whether it has not logged in yet, or has sent the beginning of a request and not the rest. A
    /// value that is passed on as it comes does not count, since nothing of it is kept.
    pub(super) fn is_midway(&self) -> bool {
        let begun = match self.stage {
            Stage::Upload(_) => false,
            Stage::Login | Stage::Asking => return true,
            Stage::Keys(_) => true,
            _ => !self.stream.read_buffer.is_empty(),
        };
        begun && !self.stalled
    }

    /// Returns whether it is older than a client with this number may be.
    pub(super) fn is_old(&self, number: u32, limit: Micros, now: Micros) -> bool {
        limit > Micros::ZERO && now - self.since > age_of(number, limit)
    }

    /// Returns whether a reply may leave without waiting for the end of the turn: nothing is before it, and
    /// nothing is to be done after it.
    pub(super) fn takes_at_once(&self) -> bool {
        let free = self.stream.out.is_empty() && self.stream.transform.is_none() && !self.stream.dirty;
        free && !(self.stalled || self.closing || self.eof || self.retires)
    }
}

/// The greatest age of a client with this number, which no other client has now: from four fifths of `limit`
/// to all of it. Those that have come together leave apart.
fn age_of(number: u32, limit: Micros) -> Micros {
    /// Different ages: more than anybody can tell apart.
    const AGES: u64 = 1024;
    // Neighbours in the table are far apart in age, by the golden ratio.
    let share = u64::from(number.wrapping_mul(0x9e37_79b9) >> 22);
    limit - Micros(limit.0 / (5 * AGES) * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_that_came_together_leave_apart_in_the_last_fifth_of_their_age() {
        let limit = Micros::secs(3_600);
        let mut ages: Vec<Micros> = (0..1_000).map(|number| age_of(number, limit)).collect();
        ages.sort();
        assert!(ages[0] >= limit / 5 + limit / 5 + limit / 5 + limit / 5 && ages[999] <= limit);
        // In each second of the last fifth few of a thousand leave.
        let gaps = ages.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.max().unwrap() <= Micros::secs(4));
        let seconds = ages.iter().map(|age| age.as_secs());
        let mut counts = std::collections::HashMap::new();
        seconds.for_each(|second| *counts.entry(second).or_insert(0) += 1);
        assert!(counts.values().all(|&count| count <= 5));
    }
}
