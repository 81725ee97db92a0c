//! One connection of one worker to one member.

use std::{collections::VecDeque, net::SocketAddr, sync::Arc};

use proxima_wire::message::Reply;

use super::{Dedicated, Hold, Pace, Uptake};
use crate::{
    client::ClientId,
    dialect::Conversation,
    members::Member,
    micros::Micros,
    reactor::Conn,
    route::ReplyTo,
    stream::Stream,
    table::{Entry, Id},
};

/// Bulk lanes of one worker to one member.
pub const BULK_LANES: usize = 4;
/// As many of them take messages as they come. The last one is kept for requests that are here whole: however many clients
/// send or read slowly, such a request waits for servers alone.
pub const STREAMED: usize = BULK_LANES - 1;

/// A lane. Its fields stand in the order in which they are written here: first what every request touches, so that with a
/// thousand members a request fetches half of a lane from far memory and not all of it.
#[repr(C)]
pub struct Lane {
    pub(super) generation: u32,
    /// One message at a time.
    pub(super) bulk: bool,
    /// The number of the login that it has made, or will.
    pub(super) login: u16,
    /// One client's alone, or nobody's for now.
    pub(super) dedicated: bool,
    /// The server takes only some commands, for the reason in `limit`.
    pub(super) limited: bool,
    pub(super) phase: Phase,
    pub member: Arc<Member>,
    /// Requests in the order in which they were sent.
    pub(super) waiters: VecDeque<Waiter>,
    /// Of the reply under way: bytes that have come in parts.
    pub(super) part_bytes: u64,
    /// When bytes last came, or were taken of a large message.
    pub(super) active: Micros,
    /// Since when its server owes its reply (it was opened, the login, the reply before or a large message
    /// ended).
    pub(super) free: Micros,
    /// Bytes of all requests that it was given.
    pub(super) given: u64,
    pub(super) stream: Stream,
    /// The client whose lane it is, if it is dedicated.
    pub(super) owner: Option<ClientId>,
    /// The client whose value is on its way through this lane.
    pub(super) uploading: Option<ClientId>,
    /// A large reply on its way through this lane.
    pub(super) download: Option<Download>,
    /// Of a reply that comes in parts: what waits for the whole.
    pub(super) parts: Vec<u8>,
    /// Requests that wait for the end of the login: what is said until then must not mix with them.
    pub(super) held: Vec<u8>,
    /// Why its server takes only some commands.
    pub(super) limit: String,
    /// Our end, where the server of a copy may have to prove that it is gone.
    pub(super) local: Option<SocketAddr>,
    /// How far its server takes the request whose reply is awaited; `None`: that request is young.
    pub(super) uptake: Option<Uptake>,
    /// How long it was held back for slow readers.
    pub(super) hold: Hold,
    /// How fast its large message moves.
    pub(super) pace: Pace,
}

/// How far a lane is. Requests may be given to it in every phase; before `Ready` they are held.
#[derive(Debug)]
pub(super) enum Phase {
    Connecting,
    Login(Box<Conversation>),
    /// Before a copy is given a write, the server must have answered on this very connection: one that was made while the
    /// server was frozen waits unseen in its queue, and would bring the write long after it was given up.
    Greeting,
    Ready,
}

/// Who waits for a reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) to: ReplyTo,
    pub(super) command: u16,
    /// It may change what a copy holds.
    pub(super) changes: bool,
    /// Milliseconds that it may take longer than others; [`u32::MAX`]: for ever.
    pub(super) extra_time: u32,
    /// When it was sent.
    pub(super) sent: Micros,
}

impl Waiter {
    pub(super) const NOBODY: Self = Self {
        to: ReplyTo::Nobody,
        command: 0,
        changes: false,
        extra_time: 0,
        sent: Micros::ZERO,
    };
}

/// A large reply being passed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Download {
    /// Client id and slot; none: nobody wants it any more.
    pub(super) to: Option<(ClientId, u32)>,
    /// Bytes still to come, and of these the last ones that are not for the client.
    pub(super) remaining: u64,
    pub(super) trailer: u64,
    /// Others wait behind it: it is collected rather than held back at the server.
    pub(super) collect: bool,
}

/// A worker's lanes to one member.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// Where small requests go: of those who log in as the pool says.
    shared: Option<LaneId>,
    /// And of others, by their logins.
    others: Vec<(u16, LaneId)>,
    /// Bulk lanes, busy or idle.
    pub(super) bulk: u32,
    /// Bulk lanes that wait for work.
    pub(super) idle: Vec<LaneId>,
    /// When a large message last found no place.
    pub(super) wanted: Option<Micros>,
    /// Those that are clients' own.
    pub(super) dedicated: Option<Box<Dedicated>>,
}

impl Lanes {
    /// Where the small requests go that need this login.
    #[inline]
    pub(super) fn shared(&self, login: u16) -> Option<LaneId> {
        if login == 0 {
            return self.shared;
        }
        let found = self.others.iter().find(|other| other.0 == login);
        found.map(|other| other.1)
    }

    /// From now on they go here.
    pub(super) fn share(&mut self, login: u16, id: LaneId) {
        if login == 0 {
            self.shared = Some(id);
            return;
        }
        self.unshare(login);
        self.others.push((login, id));
    }

    /// Those that need this login go to a fresh lane.
    pub(super) fn unshare(&mut self, login: u16) {
        if login == 0 {
            self.shared = None;
        } else {
            self.others.retain(|other| other.0 != login);
        }
    }

    /// Is there no place for one more large message, which is a request that is here whole, or comes as it comes?
    pub(super) fn is_full(&self, is_whole: bool) -> bool {
        let places = if is_whole { BULK_LANES } else { STREAMED };
        self.bulk as usize - self.idle.len() >= places
    }
}

/// The handle of a lane.
pub type LaneId = Id<Lane>;

impl Entry for Lane {
    fn generation(&self) -> u32 {
        self.generation
    }
}

impl Lane {
    /// Its connection; `None`: it is not connected.
    pub fn conn(&self) -> Option<Conn> {
        self.stream.conn
    }

    /// Is its login under way?
    pub fn logs_in(&self) -> bool {
        matches!(self.phase, Phase::Login(_))
    }

    /// Bytes that wait for the end of the turn, or for its socket to take others.
    pub fn unsent(&self) -> usize {
        self.stream.out.len()
    }

    /// Is a client's value on its way through it?
    pub fn is_uploading(&self) -> bool {
        self.uploading.is_some()
    }

    /// Where the bytes of requests go.
    pub fn requests(&mut self) -> &mut Vec<u8> {
        match self.phase {
            Phase::Ready => &mut self.stream.out,
            _ => &mut self.held,
        }
    }

    /// What was held may leave.
    pub fn ready(&mut self, now: Micros) {
        self.phase = Phase::Ready;
        self.free = now;
        let held = std::mem::take(&mut self.held);
        self.stream.out.extend_from_slice(&held);
    }

    /// Bytes that its buffers take, used or not.
    pub fn holds(&self) -> usize {
        let Stream {
            read_buffer,
            out,
            wire,
            ..
        } = &self.stream;
        let waiters = self.waiters.capacity() * size_of::<Waiter>();
        let requests = out.capacity() + wire.capacity() + self.held.capacity();
        requests + waiters + read_buffer.capacity() + self.parts.capacity()
    }

    /// The client that takes the reply under way as it comes, and the slot that the reply is for.
    pub fn reading_slot(&self) -> Option<(ClientId, u32)> {
        match (self.download, self.waiters.front().map(|waiter| waiter.to)) {
            (Some(download), _) => download.to,
            (None, Some(ReplyTo::Client { client: id, seq })) => Some((id, seq)),
            _ => None,
        }
    }

    /// The client that takes the reply under way as it comes.
    pub fn reader(&self) -> Option<ClientId> {
        self.reading_slot().map(|(client, _)| client)
    }

    /// Is the next message a reply like nearly all: to a small request, and from its beginning?
    #[inline]
    pub fn is_plain(&self) -> bool {
        matches!(self.phase, Phase::Ready)
            && self.download.is_none()
            && self.part_bytes == 0
            && !self.bulk
            && !self.dedicated
            && self.stream.parse.is_new()
    }

    /// The first in the queue has its reply. True: the server failed with it.
    #[inline]
    pub fn answered(&mut self, reply: &Reply, now: Micros) -> bool {
        self.waiters.pop_front();
        self.free = now;
        if self.waiters.is_empty() {
            // The next one stands in the same place: with many members, a line of far memory less.
            self.waiters.clear();
        }
        let failed = reply.outcome.is_failover();
        if !failed {
            self.member.health.succeeded();
        }
        failed
    }

    /// Is a message on its way that may take as long as its bytes move?
    pub fn is_streaming(&self) -> bool {
        self.download.is_some() || self.part_bytes > 0
    }
}
