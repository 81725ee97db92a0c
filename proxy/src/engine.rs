//! Everything of a worker but its sockets: bytes in, bytes and actions out. No system call, no clock: time comes with each
//! turn, chance from a seed, so that a simulator can own both.

use std::{ops::Range, rc::Rc, sync::Arc};

use crate::{
    client::{ClientId, Clients, Register},
    config::schema::Limits,
    copies::{self, KeyLocks, WorkerCopies},
    members::{Localities, Member},
    metrics::Metrics,
    micros::Micros,
    near::store::{Prefetch, Store},
    reactor::Conn,
    route::{Random, Router, Tree},
    stream::{BufferPool, Stream},
    upstream::{LaneId, Servers},
};

/// A worker's state.
pub struct Engine {
    /// The time of this turn.
    pub now: Micros,
    pub random: Random,
    pub limits: Limits,
    /// The tree that new requests enter.
    pub tree: Rc<Tree>,
    pub clients: Clients,
    pub servers: Servers,
    pub router: Router,
    pub copies: WorkerCopies,
    /// What the node agent tells; `None`: none is followed.
    pub localities: Option<Arc<Localities>>,
    pub store: Arc<Store>,
    pub(crate) prefetch: Prefetch,
    pub metrics: Metrics,
    pub actions: Actions,
    /// Buffers for what is to be sent.
    pub buffers: BufferPool,
    /// When the control thread was last told that descriptors ran out.
    short_told: Option<Micros>,
    /// Scratch for requests and replies made here.
    pub(crate) scratch: Vec<u8>,
    /// Addresses of the bytes that the worker has lent for the event under way: what lies there may leave from there,
    /// without a copy.
    pub borrowed: Range<usize>,
    /// Process-wide facts that `stats` reports.
    pub facts: Facts,
}

/// What the worker must do to its reactor after the events of a turn.
#[derive(Default)]
pub struct Actions {
    /// Connections with bytes to send.
    pub flush: Vec<Peer>,
    /// Pieces of the lent bytes that leave as they are.
    pub pass: Vec<Passed>,
    /// Lanes to connect.
    pub connect: Vec<LaneId>,
    /// Connections to close; true = with a reset.
    pub close: Vec<(Conn, bool)>,
    /// Connections to stop (true) or start (false) receiving from.
    pub pause: Vec<(Conn, bool)>,
    /// Clients to be served again from what they have already sent.
    pub again: Vec<ClientId>,
    /// What the control thread should hear of.
    pub events: Vec<WorkerEvent>,
}

/// A reply that a client is sent straight from the buffer in which it came.
#[derive(Clone, Debug)]
pub struct Passed {
    pub client: ClientId,
    /// Where it lies in the lent bytes.
    pub range: Range<usize>,
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Client(ClientId),
    Lane(LaneId),
}

/// What the control thread should hear of.
#[derive(Clone, Debug)]
pub enum WorkerEvent {
    /// This member was ejected just now, for this reason.
    Ejected(Arc<Member>, String),
    /// Something about a copy.
    Copy(copies::Event),
    /// A client was closed at once, for this reason: it speaks another protocol.
    Stranger(&'static str),
    /// Descriptors ran out, for this reason.
    Short(String),
    /// A worker has ended. `unanswered`: it has left copies with changes that they have not answered.
    Ended { unanswered: bool },
}

/// What there were no descriptors for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// A client, who waits.
    Accept,
    /// A connection to a server.
    Connect,
}

/// Facts about the process.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    pub pid: u32,
    /// Unix seconds at which `now` was 0.
    pub epoch: u64,
    pub workers: usize,
    pub worker: usize,
}

impl Engine {
    /// A worker without clients and without listeners.
    pub fn new(
        limits: Limits,
        store: Arc<Store>,
        register: Arc<Register>,
        locks: Arc<KeyLocks>,
        facts: Facts,
        seed: u64,
    ) -> Self {
        Self {
            now: Micros::ZERO,
            random: Random(seed),
            limits,
            tree: Rc::new(Tree::empty()),
            clients: Clients::new(register),
            servers: Servers::default(),
            router: Router::default(),
            copies: WorkerCopies::new(locks, facts.worker),
            localities: None,
            store,
            prefetch: Prefetch::default(),
            metrics: Metrics::default(),
            actions: Actions::default(),
            buffers: BufferPool::default(),
            short_told: None,
            scratch: Vec::new(),
            borrowed: 0..0,
            facts,
        }
    }

    /// Seconds since 1970.
    pub(crate) fn unix(&self) -> u64 {
        self.facts.epoch + self.now.as_secs()
    }

    /// There is no descriptor for something: counted, and told once a second at most.
    #[cold]
    pub(crate) fn fall_short(&mut self, what: Shortage, why: &str) {
        const ONCE: Micros = Micros::secs(1);
        self.metrics.shortages[what as usize] += 1;
        if self.short_told.is_none_or(|told| (self.now - told) >= ONCE) {
            self.short_told = Some(self.now);
            self.actions.events.push(WorkerEvent::Short(why.to_owned()));
        }
    }

    /// Does anything wait for servers, or for others?
    #[inline]
    pub fn waits(&self) -> bool {
        self.servers.is_awaited() || self.router.holds_requests() || self.copies.is_unsettled()
    }

    /// Is this a lane whose connection is still being made?
    pub fn is_connecting(&self, peer: Peer) -> bool {
        match peer {
            Peer::Lane(id) => self.servers.is_connecting(id),
            Peer::Client(_) => false,
        }
    }

    /// The bytes of a connection.
    pub fn stream(&mut self, peer: Peer) -> Option<&mut Stream> {
        match peer {
            Peer::Client(id) => self.clients.stream(id),
            Peer::Lane(id) => self.servers.stream(id),
        }
    }
}
