//! The control thread: configuration, membership, health and admin port. It never serves a request; it hands
//! snapshots to the workers.
//!
//! ```text
//!  surroundings: DNS, endpoints, node agent, certificates
//!        │
//!  files, calls ─▶ configuration: follow ─▶ reload ─▶ trees ─▶ workers
//!                                             ├─▶ membership: members, copies, ejections, roles, orders
//!                                             └─▶ listening: listeners, drain, what clients are told
//!
//!  workers ─▶ process/events ─▶ membership (copies, ejections), listening, origin, fleet
//!  fleet: peers ◀─▶ views, links, leases ─▶ workers        near: orders for kept replies, their settings
//!  all rooms ─▶ view ─▶ admin port
//! ```
//!
//! * `process`: start, signals, end
//! * `configuration`, `listening`, `membership`, `surroundings`: a room each, whose state is its own. What
//!   has its own lock or waits for an event (`names`, `certificates`, `drain`, orders) is a field of
//!   [`Proxy`]
//! * `fleet`, `near`, `origin`: parts that few configurations have
//! * `view`: what the admin port reads
//! * `sessions`: the list of clients' sessions
//! * `workers`: the threads, and how orders reach them
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the control thread: owns the clock, serves no request"
)]

mod configuration;
mod fleet;
mod listening;
mod membership;
mod near;
mod origin;
mod process;
mod sessions;
mod surroundings;
mod view;
mod workers;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tokio::sync::{Notify, mpsc, watch};

use self::{
    configuration::{Configuration, follow},
    listening::{Listening, drain::Drain},
    membership::{Membership, orders::Orders},
    near::NearOrders,
    origin::Origins,
    surroundings::{Surroundings, dns::Names, host},
    workers::Workers,
};
pub use self::{
    configuration::{
        NodeView, Reloads, Trace,
        offline::{OfflineError, check, explain},
        reload::ReloadError,
    },
    fleet::{
        BadKeys, Due, Fleet, FleetError, InitError, KeysError, SecretError, Status as FleetStatus,
        init_directory, keep_keys, keep_token, make_keys,
    },
    listening::{
        announce::AnnouncementStatus,
        readiness::{PoolState, Unready},
    },
    membership::{
        copies::CopyCounters,
        ejections::Ejection,
        monitor::monitor,
        orders::{ClientOrder, ClientWish, JointStatus, LONGEST_ORDER, OrderError, OrderKind, StandingOrder},
        probe::probe,
    },
    near::{DropScope, NearError, NearStatus, NearTop, RuleStatus, passed, refused},
    process::{
        run::run,
        start::{LogControl, Options, StartError},
    },
    sessions::SessionList,
    surroundings::{
        discovery::DiscoveryFailure,
        dns::{LookupCounts, LookupFailure},
        nodes::{Agent, AgentError},
    },
    view::{CopyView, MemberView, View},
};

use crate::{
    client::{self, Register},
    config::schema::{self, Nodes},
    embedded::store::{Keyspace, Store, Totals},
    event_log::EventLog,
    frontdoor::ConfigSource,
    metrics::Metrics,
    micros::Micros,
    peers,
    protocol::Protocols,
    reactor::Io,
    route::{Samples, SlowRequests},
    tls::Certificates,
    worker::Order,
};

/// The present time, since 1970. Workers know it by the time of their turn.
fn unix_now() -> Micros {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().into()
}

/// The running proxy, as its control thread and admin port see it.
pub struct Proxy {
    source: Box<dyn ConfigSource>,
    workers: Workers,
    names: Arc<Names>,
    register: Arc<Register>,
    /// The last changes of state.
    event_log: Arc<EventLog>,
    /// Samples of requests, while somebody watches.
    samples: Arc<Samples>,
    /// The last slow requests.
    slow_requests: Arc<SlowRequests>,
    store: Arc<Store>,
    started: Instant,
    /// The time since 1970 at which it started.
    since_epoch: Micros,
    io: Io,
    protocols: Protocols,
    /// Runs the tasks of the control thread, repairs of copies among them.
    runtime: tokio::runtime::Handle,
    /// The node agent that the configuration names.
    nodes: watch::Sender<Option<Nodes>>,
    /// Requests for a change of the configuration.
    requests: mpsc::Sender<follow::Request>,
    drain: Drain,
    /// What operators have ordered for pools.
    orders: Orders,
    /// The state of a pool has changed.
    pool_changed: Arc<Notify>,
    /// Operators' orders for the near cache.
    near_orders: NearOrders,
    /// The clients of HTTP origins.
    origins: Origins,
    /// A client has asked for the end of the process.
    shutdown: Notify,
    /// Questions of clients about the process.
    questions: mpsc::UnboundedSender<client::Question>,
    /// The fleet, and where the workers' events about it go. `None`: this proxy is in none.
    fleet: Option<(Arc<Fleet>, mpsc::UnboundedSender<peers::Event>)>,
    /// The certificates of listeners, servers and peers.
    certificates: Arc<Certificates>,
    rooms: Mutex<Rooms>,
}

/// The state of the control thread, by subject. Each room keeps its fields to itself. One lock holds all of
/// them, as a change of the configuration is one step in each.
struct Rooms {
    configuration: Configuration,
    listening: Listening,
    membership: Membership,
    surroundings: Surroundings,
}

impl Proxy {
    fn rooms(&self) -> MutexGuard<'_, Rooms> {
        // A panic under the lock may leave a change half made: it is logged, the proxy serves on by what its
        // workers have, and the next change of the configuration starts from what is noted here.
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fleet. `None`: this proxy is in none.
    pub fn fleet(&self) -> Option<&Arc<Fleet>> {
        Some(&self.fleet.as_ref()?.0)
    }

    /// Gives a client the answer to its question.
    pub fn answer(&self, question: &client::Question, answer: Arc<[u8]>) {
        let slot = question.slot;
        self.workers
            .order_one(question.worker, Order::Answer { slot, answer });
    }

    /// The certificates of listeners, servers and peers.
    pub fn certificates(&self) -> &Certificates {
        &self.certificates
    }

    /// The sum over all workers.
    pub fn metrics(&self) -> Metrics {
        self.workers.metrics()
    }

    /// The metrics of each worker, by its number.
    pub fn metrics_of_each(&self) -> Vec<Metrics> {
        self.workers.metrics_of_each()
    }

    /// Time since the start.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// The start on both clocks: the monotonic one, and time since 1970.
    pub fn start(&self) -> (Instant, Duration) {
        (self.started, Duration::from_micros(self.since_epoch.0))
    }

    /// A word for this process, which no other start has.
    pub fn process(&self) -> String {
        format!("{:x}-{}", self.since_epoch.0, std::process::id())
    }

    /// The last changes of state.
    pub fn events(&self) -> &EventLog {
        &self.event_log
    }

    /// Has the workers put samples of requests, or put none.
    pub fn tap(&self, on: bool) {
        self.workers.order(|_| Order::Tap(on));
    }

    /// The samples of requests that they have put.
    pub fn samples(&self) -> &Samples {
        &self.samples
    }

    /// The last slow requests.
    pub fn slow_requests(&self) -> &SlowRequests {
        &self.slow_requests
    }

    /// How keys in samples of requests are told.
    pub fn sampled_keys(&self) -> schema::ShownKeys {
        self.rooms().configuration.config().sampled_keys
    }

    /// Are hot keys counted although nobody watches?
    pub fn counts_hot_keys(&self) -> bool {
        self.rooms().configuration.config().hot_keys == schema::HotKeys::On
    }

    /// Which requests are kept as slow. `None`: none are.
    pub fn slow_terms(&self) -> Option<schema::SlowRequests> {
        self.rooms().configuration.config().slow_requests
    }

    /// The present time, since 1970, on the clock of the workers' turns, which never goes back.
    pub(in crate::control) fn now(&self) -> Micros {
        self.since_epoch + self.started.elapsed().into()
    }

    /// The back end that the workers use.
    pub fn io(&self) -> Io {
        self.io
    }

    /// The number of worker threads.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// The clients that the configuration allows at a time.
    pub fn most_clients(&self) -> usize {
        self.rooms().configuration.config().limits.clients
    }

    /// The limit of the embedded store in bytes, and its totals. `None`: no listener leads to the store.
    pub fn store(&self) -> Option<(usize, Totals)> {
        let now = self.started.elapsed().as_millis() as u64;
        let leads = self.rooms().configuration.tree().has_store();
        let [memcache, redis] = Keyspace::ALL.map(|keyspace| self.store.totals(keyspace, now));
        leads.then(|| (self.store.limits().memory, memcache.with(&redis)))
    }

    /// The protocols that this process speaks.
    pub fn protocols(&self) -> Protocols {
        self.protocols
    }

    /// The name of this host.
    pub fn host_name(&self) -> String {
        host::name()
    }
}
