//! One connection of one worker to one member.

mod arrival;
mod close;
mod pace;
mod pause_time;
mod proofs;
mod unanswered;
mod unwritten;
mod uptake;
mod waiter;

use std::{collections::VecDeque, net::SocketAddr, sync::Arc};

use proxima_wire::message::Reply;

pub use self::close::{Close, Closed};
pub(super) use self::{
    arrival::Arrival,
    pace::Pace,
    pause_time::PauseTime,
    proofs::{Proof, Proofs},
    unanswered::Unanswered,
    unwritten::Unwritten,
    uptake::Uptake,
    waiter::{Effects, Trial, Waiter},
};
use crate::{
    config::schema::EjectBy,
    engine::{ClientId, ReplyTo, ids},
    members::Member,
    micros::Micros,
    near::OpenChange,
    protocol::StateSlot,
    queue::Queue,
    reactor::Conn,
    stream::{BufferPool, Stream},
    table::Entry,
};

/// One connection of one worker to one member. The fields are laid out in the order written here. Those that
/// every request touches come first: with a thousand members, a request then fetches half a lane from distant
/// memory and not all of it.
#[repr(C)]
pub struct Lane {
    pub(super) generation: u32,
    /// The lane carries one message at a time.
    pub(super) bulk: bool,
    /// The number of the login with which the lane logs in.
    pub(super) login: u16,
    /// The lane belongs to one client, or is idle and will belong to one.
    pub(super) dedicated: bool,
    /// The server takes only some commands, for the reason in `limit`.
    pub(super) limited: bool,
    /// The proofs that its server has given.
    pub(super) proofs: Proofs,
    /// Requests are held: the login is under way; a proof, the answer to what goes before them, or their turn
    /// is awaited.
    pub(super) holding: bool,
    /// The event that the first blocking command itself waits for.
    pub(super) arrival: Arrival,
    /// The server has answered in the login.
    pub(super) greeted: bool,
    /// Connections in a row that were lost before this one, and on which the server had not answered.
    pub(super) lost: u8,
    /// The codec writes each request for this lane.
    pub(super) fitted: bool,
    /// Requests are held until what goes before the first of them is answered.
    pub(super) awaits_before: bool,
    /// The time until which its first request may wait for a lane; zero if the time is counted from when it
    /// begins to wait.
    pub(super) due: Micros,
    /// The position of the request that its server was asked to end because it takes too long; `None` if the
    /// server was not asked.
    pub(super) overdue: Option<u32>,
    /// The number of times in a row that it has waited for that.
    pub(super) waits: u8,
    /// More requests are about to be given to it.
    pub(super) gets_more: bool,
    pub(super) phase: Phase,
    /// The codec's state for the connection.
    pub(super) state: StateSlot,
    /// The server at the other end.
    pub member: Arc<Member>,
    /// Requests that wait for replies, in the order in which they were sent.
    pub(super) waiters: Queue<Waiter>,
    /// Bytes still to come of a part of the reply under way.
    pub(super) part_left: u64,
    /// Bytes of the reply under way that have come in parts.
    pub(super) part_bytes: u64,
    /// The time at which bytes last came, or at which the server last took bytes of a large message.
    pub(super) active: Micros,
    /// The time since which the server could work on the first request: the time when the lane was opened, or
    /// when the login, the previous reply or a large message ended.
    pub(super) free: Micros,
    /// Bytes of all requests that this lane was given.
    pub(super) given: u64,
    /// Bytes of all replies that came on this lane.
    pub(super) received: u64,
    pub(super) stream: Stream,
    /// The client that owns the lane, if it is dedicated.
    pub(super) owner: Option<ClientId>,
    /// The time since which it is this client's.
    pub(super) owned: Micros,
    /// The client whose value is being sent through this lane.
    pub(super) uploading: Option<ClientId>,
    /// A large reply that is being received on this lane.
    pub(super) download: Option<Download>,
    /// Buffered parts of an incomplete reply.
    pub(super) parts: Vec<u8>,
    /// Buffered parts of a long confirmation of subscriptions.
    pub(super) confirmation: Vec<u8>,
    /// Bytes of the message under way that no request has asked for and that comes in parts.
    pub(super) pushed: u64,
    /// Bytes of the lane's buffers that are charged to its owner.
    pub(super) charged: usize,
    /// The number of requests under way that ask the server to end what it does on the lane.
    pub(super) cancels: u32,
    /// The lane is on the list of those on which the server may keep only what the last request has left.
    pub(super) is_passing: bool,
    /// The server is asked to forget its last client.
    pub(super) resets: bool,
    /// The lane is closed by an order.
    pub(super) closes: Option<Close>,
    /// Received bytes wait until the owner takes more.
    pub(super) waits_for_owner: bool,
    /// The lane is on the list of lanes that are read on.
    pub(super) is_woken: bool,
    /// Requests that wait for the end of the login, with whose bytes they must not mix, or for the server's
    /// proof.
    pub(super) held: Vec<u8>,
    /// Requests that are written when the login has ended, or what goes before them is answered.
    pub(super) unwritten: Vec<Unwritten>,
    /// The reason why the server takes only some commands.
    pub(super) limit: String,
    /// The local address of the connection. It is known for copies, whose servers may have to prove that the
    /// connection is gone.
    pub(super) local: Option<SocketAddr>,
    /// The server's progress in taking the request whose reply is awaited; `None`: that request is young.
    pub(super) uptake: Option<Uptake>,
    /// The time for which the lane was paused for slow readers.
    pub(super) pause_time: PauseTime,
    /// The rate at which the lane's large message moves.
    pub(super) pace: Pace,
    /// The changes of requests that wait for replies, in their order.
    pub(super) changes: VecDeque<OpenChange>,
    /// Changes of requests without a reply, in their order.
    pub(super) unanswered: VecDeque<Unanswered>,
    /// Changes that are answered, and belong to what the server keeps for the lane's client.
    pub(super) queued_changes: Vec<OpenChange>,
    /// The server may have queued changes before this worker counted them. They are executed by a later
    /// request, which names no keys.
    pub(super) has_uncounted: bool,
}

/// The phase of a lane. Requests may be given to it in every phase; before `Ready` they are held.
#[derive(Debug)]
pub(super) enum Phase {
    Connecting,
    Login,
    /// Before a copy gets a write, the server must have answered on this very connection. A connection that
    /// was made while the server was frozen waits unaccepted in the listen queue, and would deliver the write
    /// long after it was given up.
    Greeting,
    Ready,
}

/// A large reply that is being passed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Download {
    /// The client and its slot; `None` once the client no longer wants the reply.
    pub(super) to: Option<(ClientId, u32)>,
    /// Bytes still to come.
    pub(super) remaining: u64,
    /// The last of the remaining bytes, which are not for the client.
    pub(super) trailer: u64,
    /// Other requests wait behind the reply: it is buffered instead of being held back at the server.
    pub(super) collect: bool,
}

impl Entry for Lane {
    type Kind = ids::LaneKind;

    fn generation(&self) -> u32 {
        self.generation
    }
}

impl Lane {
    /// The lane's connection; `None`: the lane is not connected.
    pub fn conn(&self) -> Option<Conn> {
        self.stream.conn
    }

    /// Is the connection being made before anything is asked of its server?
    pub(super) fn is_in_advance(&self) -> bool {
        matches!(self.phase, Phase::Connecting) && self.waiters.is_empty()
    }

    /// Is the login over?
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready)
    }

    /// Is the login under way?
    pub fn logs_in(&self) -> bool {
        matches!(self.phase, Phase::Login)
    }

    /// Bytes that wait for the end of the event-loop iteration, or for room in the socket.
    pub fn unsent(&self) -> usize {
        self.stream.unsent().len()
    }

    /// Is a client's value being sent through this lane?
    pub fn is_uploading(&self) -> bool {
        self.uploading.is_some()
    }

    /// The buffer to which the bytes of requests are appended.
    pub fn requests(&mut self) -> &mut Vec<u8> {
        match self.holds_requests() {
            false => &mut self.stream.out,
            true => &mut self.held,
        }
    }

    /// Must the requests that the lane is given wait before they are sent?
    #[inline]
    pub(super) fn holds_requests(&self) -> bool {
        self.holding
    }

    /// Must TLS still begin on it?
    pub(super) fn lacks_tls(&self) -> bool {
        self.member.tls.is_some() && self.stream.transform.is_none()
    }

    /// Bytes of memory that the lane's buffers take, used or not.
    pub fn memory_bytes(&self) -> usize {
        let Stream {
            read_buffer,
            out,
            wire,
            ..
        } = &self.stream;
        let waiters = self.waiters.capacity() * size_of::<Waiter>();
        let requests = out.capacity() + wire.capacity() + self.held.capacity();
        let requests = requests + self.stream.transform_memory();
        // The owner is charged for the rest of a dedicated lane.
        let received = read_buffer.capacity() + self.parts.capacity() + self.confirmation.capacity();
        requests
            + waiters
            + self.unwritten_memory()
            + self.state.memory()
            + self.changes_memory()
            + received.saturating_sub(self.charged)
    }

    /// The client that takes the reply under way as it comes, and the slot of the reply.
    pub fn reading_slot(&self) -> Option<(ClientId, u32)> {
        match (self.download, self.waiters.first().map(|waiter| waiter.to)) {
            (Some(download), _) => download.to,
            (None, Some(ReplyTo::Client { client: id, seq })) => Some((id, seq)),
            _ => None,
        }
    }

    /// The destination of the next reply.
    pub(super) fn waits_for(&self) -> ReplyTo {
        self.waiters.first().map_or(ReplyTo::Nobody, |waiter| waiter.to)
    }

    /// The client that takes the reply under way as it comes.
    pub fn reader(&self) -> Option<ClientId> {
        self.reading_slot().map(|(client, _)| client)
    }

    /// Is the next message an ordinary reply: to a small request, and from its first byte?
    #[inline]
    pub fn is_plain(&self) -> bool {
        matches!(self.phase, Phase::Ready)
            && self.download.is_none()
            && self.part_bytes == 0
            && !self.bulk
            && !self.dedicated
            && !self.fitted
            && self.stream.parse.is_new()
    }

    /// The first waiting request has its reply.
    #[inline]
    pub fn answered(&mut self, reply: &Reply, now: Micros, buffers: &mut BufferPool) {
        self.end_change();
        self.waiters.drop_first();
        self.free = now;
        if self.waiters.is_empty() {
            self.stream.drop_kept(buffers);
        }
        if !reply.outcome.is_failover() || self.member.health.eject().by == EjectBy::LostConnections {
            self.member.health.succeeded();
        }
    }

    /// Does nothing wait for it, and is nothing under way on it?
    pub(super) fn is_unused(&self) -> bool {
        self.waiters.is_empty()
            && self.unwritten.is_empty()
            && !self.gets_more
            && self.download.is_none()
            && self.uploading.is_none()
    }

    /// Has a server answered on this connection? Then it was there, and what ends the connection may be what
    /// one client has sent, or the server's wish to have one connection less.
    pub(super) fn is_proven(&self) -> bool {
        matches!(self.phase, Phase::Ready) && (self.greeted || self.received > 0)
    }

    /// Does the server let the lane's client wait (`BLPOP`), since `before` or earlier?
    pub(super) fn is_blocked(&self, before: Micros) -> bool {
        let first = self
            .waiters
            .first()
            .filter(|_| matches!(self.phase, Phase::Ready));
        first.is_some_and(|waiter| waiter.extra_time > 0 && waiter.sent.max(self.free) <= before)
    }

    /// Is a message under way that may take as long as its bytes move?
    pub fn is_streaming(&self) -> bool {
        self.download.is_some() || self.part_bytes > 0 || self.pushed > 0
    }
}
