//! Worker state without sockets: bytes in, bytes and actions out. The engine makes no system call and reads
//! no clock: each turn brings the time, and a seed gives the random numbers. A simulator can therefore own
//! both.

use std::{ops::Range, rc::Rc, sync::Arc};

use crate::{
    client::{ClientId, Clients, Question, Register},
    config::schema::Limits,
    copies::{self, KeyLocks, WorkerCopies},
    embedded::store::{Prefetch, Store},
    members::{Localities, Member},
    metrics::Metrics,
    micros::Micros,
    peers::{self, ChannelId},
    reactor::Conn,
    route::{Random, Router, Tree},
    stream::{BufferPool, Stream},
    upstream::{LaneId, Servers},
};

/// The state of one worker.
pub struct Engine {
    /// The time of this turn, on the clock of the process.
    pub now: Micros,
    /// The source of all random choices of this worker.
    pub random: Random,
    /// The limits of the configuration in force.
    pub limits: Limits,
    /// The tree that new requests enter.
    pub tree: Rc<Tree>,
    /// The clients of this worker.
    pub clients: Clients,
    /// The servers that this worker has lanes to.
    pub servers: Servers,
    /// The requests that take several steps in the tree.
    pub router: Router,
    /// What this worker knows of the copies of replicated pools.
    pub copies: WorkerCopies,
    /// The places of processes by the node agent's report; `None`: no agent is followed.
    pub localities: Option<Arc<Localities>>,
    /// The embedded store, which all workers share.
    pub store: Arc<Store>,
    pub(crate) prefetch: Prefetch,
    /// The counts of this worker.
    pub metrics: Metrics,
    /// What the worker has to do after the events of this turn.
    pub actions: Actions,
    /// The send-buffer pool.
    pub buffers: BufferPool,
    /// When the control thread was last told that descriptors ran out; `None`: never.
    short_told: Option<Micros>,
    /// Scratch space for requests and replies that are made here.
    pub(crate) scratch: Vec<u8>,
    /// Addresses of the borrowed receive buffer of the event under way. A reply that lies there may leave
    /// from there, without a copy.
    pub borrowed: Range<usize>,
    /// Process-wide facts that `stats` reports.
    pub facts: Facts,
}

/// What the worker does with its reactor after the events of a turn.
#[derive(Default)]
pub struct Actions {
    /// Connections with bytes to send.
    pub flush: Vec<Peer>,
    /// Pieces of the borrowed receive buffer that leave as they are.
    pub pass: Vec<Passed>,
    /// Lanes to connect.
    pub connect: Vec<LaneId>,
    /// Connections to close; `true`: with a reset.
    pub close: Vec<(Conn, bool)>,
    /// Connections whose receiving stops (`true`) or starts again (`false`).
    pub pause: Vec<(Conn, bool)>,
    /// Clients to serve again from the bytes that they have already sent.
    pub again: Vec<ClientId>,
    /// Events for the control thread.
    pub events: Vec<WorkerEvent>,
}

/// A reply that goes to a client straight from the buffer in which it came.
#[derive(Clone, Debug)]
pub struct Passed {
    /// The client that the reply is for.
    pub client: ClientId,
    /// The position of the reply in the borrowed receive buffer, in bytes.
    pub range: Range<usize>,
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A client.
    Client(ClientId),
    /// A lane to a server.
    Lane(LaneId),
    /// A channel to a peer of the fleet.
    Channel(ChannelId),
}

/// An event that a worker reports to the control thread.
#[derive(Clone, Debug)]
pub enum WorkerEvent {
    /// This member was ejected just now, for this reason.
    Ejected(Arc<Member>, String),
    /// An event about a copy.
    Copy(copies::Event),
    /// An event about a peer of the fleet.
    Peer(peers::Event),
    /// A client was closed at once because it speaks another protocol; the text gives the reason.
    Stranger(&'static str),
    /// Descriptors ran out, for this reason.
    Short(String),
    /// A client ends the process, as mcrouter's may.
    Shutdown,
    /// A client asks what the control thread answers.
    Question(Question),
    /// A worker has ended.
    Ended {
        /// The worker has left copies with changes that they have not answered.
        unanswered: bool,
    },
}

/// What a missing descriptor was needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// A client, which waits in the kernel's queue.
    Accept,
    /// A connection to a server.
    Connect,
}

/// Facts about the process and this worker.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The process id.
    pub pid: u32,
    /// The time since 1970 at which `now` was 0.
    pub start: Micros,
    /// The number of workers.
    pub workers: usize,
    /// The number of this worker, from 0 on.
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

    /// The Unix time of this turn.
    #[inline]
    pub(crate) fn unix(&self) -> Micros {
        self.facts.start + self.now
    }

    /// The Unix time of this turn, in microseconds.
    pub(crate) fn unix_micros(&self) -> u64 {
        let suspended = self.copies.fleet.as_ref().map_or(0, |part| part.suspended());
        self.unix().0 + suspended
    }

    /// Counts that there is no descriptor for `what`. The control thread is told at most once a second.
    #[cold]
    pub(crate) fn fall_short(&mut self, what: Shortage, why: &str) {
        const ONCE: Micros = Micros::secs(1);
        self.metrics.shortages[what as usize] += 1;
        if self.short_told.is_none_or(|told| (self.now - told) >= ONCE) {
            self.short_told = Some(self.now);
            self.actions.events.push(WorkerEvent::Short(why.to_owned()));
        }
    }

    /// Returns whether anything waits for servers, for requests under way or for changes of copies.
    #[inline]
    pub fn waits(&self) -> bool {
        self.servers.is_awaited()
            || self.router.holds_requests()
            || self.copies.is_unsettled()
            || self.copies.waits_for_peers()
    }

    /// Returns whether this is a lane whose connection is still being made.
    pub fn is_connecting(&self, peer: Peer) -> bool {
        match peer {
            Peer::Lane(id) => self.servers.is_connecting(id),
            Peer::Client(_) | Peer::Channel(_) => false,
        }
    }

    /// The bytes of this connection; `None`: it is gone.
    pub fn stream(&mut self, peer: Peer) -> Option<&mut Stream> {
        match peer {
            Peer::Client(id) => self.clients.stream(id),
            Peer::Lane(id) => self.servers.stream(id),
            Peer::Channel(id) => {
                let channel = self.channels()?.get_mut(id)?;
                Some(&mut channel.stream)
            }
        }
    }
}
