//! Worker state without sockets: bytes in, bytes and actions out. The engine makes no system call and reads
//! no clock: each turn brings the time, and a seed gives the random numbers. A simulator can therefore own
//! both.
//!
//! Here are the hubs that every request passes:
//! * `ids`: the handles by which parts name each other's entries, and the destinations of replies
//! * `deliver`: hands each answer to its receiver; `waiting` has those that are made within a walk
//! * `timers`: the sleepers and their times; `flush`: the connections with bytes to send
//! * `actions`: the worker's actions after the events of a turn

mod actions;
mod deliver;
mod flush;
pub mod ids;
mod timers;
mod waiting;

use std::{ops::Range, rc::Rc, sync::Arc};

use self::deliver::Delivery;
pub(crate) use self::ids::Sleeper;
pub use self::{
    actions::{Actions, PassedReply, Shortage, WorkerEvent},
    ids::{ClientId, Endpoint, FlightId, LaneId, LinkId, OperationId, ReplyTo, TaskId},
    timers::Timers,
};
use crate::{
    client::{Clients, Register},
    config::schema::Limits,
    copies::{KeyLocks, WorkerCopies},
    embedded::store::{Prefetch, Store},
    members::Localities,
    metrics::Metrics,
    micros::Micros,
    near::{Preload, WorkerNear},
    random::Random,
    route::{Router, Tree},
    stream::BufferPool,
    upstream::Servers,
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
    /// Requests come by taps, as somebody watches.
    pub is_tapped: bool,
    /// The clients of this worker.
    pub clients: Clients,
    /// The servers that this worker has lanes to.
    pub servers: Servers,
    /// The requests that take several steps in the tree.
    pub router: Router,
    /// Everything that waits for a time.
    pub timers: Timers,
    /// Answers that wait until a walk is over.
    delivery: Delivery,
    /// This worker's knowledge of the copies of replicated pools.
    pub copies: WorkerCopies,
    /// The locations of processes by the node agent's report; `None` if no agent is followed.
    pub localities: Option<Arc<Localities>>,
    /// The embedded store, which all workers share.
    pub store: Arc<Store>,
    pub(crate) prefetch: Prefetch,
    /// This worker's counter of changes for the near cache.
    pub near: WorkerNear,
    /// The keys that the near cache will be asked for next.
    pub(crate) preload: Preload,
    /// The counts of this worker.
    pub metrics: Metrics,
    /// The worker's actions after the events of this turn.
    pub actions: Actions,
    /// The send-buffer pool.
    pub buffers: BufferPool,
    /// The time at which the control thread was last told that descriptors ran out; `None` if it never was.
    short_told: Option<Micros>,
    /// The time at which it was last told of a state that cannot be; `None` if it never was.
    broken_told: Option<Micros>,
    /// Scratch space for requests and replies that are made here.
    pub(crate) scratch: Vec<u8>,
    /// Addresses of the borrowed receive buffer of the event under way. A reply that lies there may leave
    /// from there, without a copy.
    pub borrowed: Range<usize>,
    /// Process-wide facts that `stats` reports.
    pub facts: Facts,
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
            is_tapped: false,
            clients: Clients::new(register),
            servers: Servers::default(),
            router: Router::default(),
            timers: Timers::default(),
            delivery: Delivery::default(),
            copies: WorkerCopies::new(locks, facts.worker),
            localities: None,
            store,
            prefetch: Prefetch::default(),
            near: WorkerNear::default(),
            preload: Preload::default(),
            metrics: Metrics::default(),
            actions: Actions::default(),
            buffers: BufferPool::default(),
            short_told: None,
            broken_told: None,
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

    /// Reports a state that cannot be, in which a request would otherwise be dropped in silence. A test fails
    /// on it. The control thread is told at most once a second, and logs it.
    #[cold]
    pub(crate) fn broken(&mut self, what: &'static str) {
        debug_assert!(false, "{what}");
        if self
            .broken_told
            .is_none_or(|told| (self.now - told) >= Micros::secs(1))
        {
            self.broken_told = Some(self.now);
            self.actions.events.push(WorkerEvent::Broken(what));
        }
    }

    /// Returns whether anything waits for servers, for requests under way or for changes of copies, or
    /// connections have to end in time.
    #[inline]
    pub fn waits(&self) -> bool {
        self.servers.is_awaited()
            || self.servers.has_dedicated()
            || self.router.holds_requests()
            || self.copies.is_unsettled()
            || self.copies.waits_for_peers()
            || self.near.waits()
    }
}
