//! The control thread: configuration, membership, health and admin port. It never serves a request; it hands
//! snapshots to the workers.
//!
//! ```text
//!  files ─▶ file_watcher ─▶ follow ─▶ reload ─▶ trees ─▶ workers
//!  DNS, endpoints ─▶ dns ─────┘
//!  peers ◀─▶ fleet ─▶ views, channels, leases ─▶ workers
//!  list, file, DNS, peers ─▶ announce ─▶ what clients are told of the proxies
//!  certificates ─▶ what new connections show and trust
//!  workers ─▶ origin ◀─▶ HTTP origins, whose values go back to the workers
//!  node agent ─▶ nodes ─▶ orders of `nearest` ─▶ workers
//!  ejections ◀─ workers                 admin ─▶ metrics, explain, ready, health
//!      └─▶ probes ─▶ health               file, call, SIGTERM ─▶ drain ─▶ workers
//! ```
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
mod surroundings;
mod workers;

use std::{
    collections::BTreeMap,
    net::IpAddr,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tokio::sync::{Notify, mpsc};

use self::{
    configuration::follow,
    listening::{descriptors::Descriptors, drain::Drain},
    membership::{copies::Copies, ejections::Ejections, orders::Orders},
    near::NearOrders,
    origin::Origins,
    surroundings::{dns, dns::Names, host},
    workers::Workers,
};
pub use self::{
    configuration::{
        offline::{OfflineError, check, explain},
        reload::ReloadError,
    },
    fleet::{Fleet, FleetError, InitError, KeysError, Status as FleetStatus, init_directory, make_keys},
    listening::{
        announce::Told,
        readiness::{PoolState, Unready},
    },
    membership::{
        copies::CopyCounters,
        ejections::Ejection,
        monitor::monitor,
        orders::{OrderError, OrderKind, StandingOrder},
        probe::probe,
    },
    near::{Meant, NearError, NearStatus, NearTop, RuleStatus, passed, refused},
    process::{
        run::run,
        start::{LogControl, Options, StartError},
    },
    surroundings::{
        discovery::DiscoveryFailure,
        dns::{Asked, LookupFailure},
        nodes::{Agent, AgentError},
    },
};
use tokio::sync::watch::Sender;

use crate::{
    client::{self, Register},
    config::{
        ConfigError, Loaded,
        schema::{Config, HealthListener, Nodes, Question},
        source::Lists,
    },
    copies::{CopyState, CopyStatus, Departed},
    embedded::store::{Keyspace, Store, Totals},
    frontdoor::ConfigSource,
    members::{Address, Distance, DistanceSource, Localities, Member},
    metrics::Metrics,
    micros::Micros,
    peers,
    protocol::Protocols,
    random::Random,
    reactor::Io,
    route::{self, Asker, Example, ExplainError, Explained, Tree},
    spool::Spool,
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
    store: Arc<Store>,
    started: Instant,
    io: Io,
    protocols: Protocols,
    /// Runs the tasks of the control thread, repairs of copies among them.
    runtime: tokio::runtime::Handle,
    /// The node agent that the configuration names.
    nodes: Sender<Option<Nodes>>,
    /// Requests for a change of the configuration.
    requests: mpsc::Sender<follow::Request>,
    drain: Drain,
    /// What operators have ordered for pools.
    orders: Orders,
    /// The state of a pool has changed.
    pool_changed: Arc<Notify>,
    /// What they have ordered for the near cache.
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
    state: Mutex<State>,
}

/// State of the control thread, read by the admin port and replaced by reloads.
struct State {
    loaded: Loaded,
    /// The servers of each pool.
    servers: Lists,
    /// Copies that have left the lists of servers and may return.
    departed: Departed,
    /// The addresses of host names in server addresses.
    hosts: BTreeMap<String, IpAddr>,
    /// What the node agent tells; `None`: nothing, or there is none.
    localities: Option<Arc<Localities>>,
    agent: Agent,
    /// The control thread's own tree, for `explain`.
    tree: Tree,
    /// The version of the configuration by which every worker serves.
    version: Arc<str>,
    /// Listener addresses by number: as configured, and as bound. `None`: the listener is closed.
    listeners: Vec<String>,
    bound: Vec<Option<String>>,
    members: Vec<Arc<Member>>,
    copies: Copies,
    ejections: Ejections,
    descriptors: Descriptors,
    /// What clients are told of the proxies, as of the last round.
    told: Vec<Told>,
    changed: SystemTime,
    attempted: SystemTime,
    reloads: u64,
    failures: u64,
    /// Why the newest configuration was refused. `None`: it is in effect.
    refused: Option<String>,
    /// Clients are accepted: no drain has got so far that they are not.
    accepts: bool,
    random: Random,
}

impl State {
    /// The state before anything runs. `loaded` is the first configuration.
    fn new(loaded: Loaded, copies: Copies, random: Random) -> Self {
        Self {
            loaded,
            servers: Lists::new(),
            departed: Departed::default(),
            hosts: BTreeMap::new(),
            localities: None,
            agent: Agent::default(),
            tree: Tree::empty(),
            version: "".into(),
            listeners: Vec::new(),
            bound: Vec::new(),
            members: Vec::new(),
            copies,
            ejections: Ejections::default(),
            descriptors: Descriptors::default(),
            told: Vec::new(),
            changed: SystemTime::now(),
            attempted: SystemTime::now(),
            reloads: 0,
            failures: 0,
            refused: None,
            accepts: true,
            random,
        }
    }
}

impl Proxy {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves nothing half done in the state: every change is one assignment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fleet. `None`: this proxy is in none.
    pub fn fleet(&self) -> Option<&Arc<Fleet>> {
        Some(&self.fleet.as_ref()?.0)
    }

    /// Gives a client the answer to its question.
    pub fn answer(&self, question: &client::Question, answer: Arc<[u8]>) {
        let place = question.place;
        self.workers
            .order_one(question.worker, Order::Answer { place, answer });
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

    /// The back end that the workers use.
    pub fn io(&self) -> Io {
        self.io
    }

    /// The number of worker threads.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// All members of the running configuration, departed copies included.
    pub fn members(&self) -> Vec<Arc<Member>> {
        self.state().members.clone()
    }

    /// Where failed deletes are kept. `None`: nowhere.
    pub fn spool(&self) -> Option<Arc<Spool>> {
        self.state().tree.spool().cloned()
    }

    /// The limit of the embedded store in bytes, and its totals. `None`: no listener leads to the store.
    pub fn store(&self) -> Option<(usize, Totals)> {
        let now = self.started.elapsed().as_millis() as u64;
        let leads = self.state().tree.has_store();
        let [memcache, redis] = Keyspace::ALL.map(|keyspace| self.store.totals(keyspace, now));
        leads.then(|| (self.store.limits().memory, memcache.with(&redis)))
    }

    /// Every copy with its counters.
    pub fn copies(&self) -> Vec<(Arc<Member>, CopyCounters)> {
        let state = self.state();
        let copies = state.members.iter().filter(|member| member.is_copy());
        copies
            .map(|member| (Arc::clone(member), state.copies.counters(member)))
            .collect()
    }

    /// How often the state file could not be written.
    pub fn state_file_failures(&self) -> u64 {
        self.state().copies.state_file_failures()
    }

    /// The number of copies in each state, by pool. Copies that have left the lists of servers count as
    /// `departed`.
    pub fn copy_states(&self) -> Vec<(String, &'static str, usize)> {
        let state = self.state();
        let none = || {
            let names = CopyState::ALL.iter().map(|state| state.name());
            names.chain(["departed"]).map(|name| (name, 0)).collect()
        };
        let mut pools: BTreeMap<&str, BTreeMap<&'static str, usize>> = BTreeMap::new();
        for member in state.members.iter().filter(|member| member.is_copy()) {
            let name = match state.departed.holds(member) {
                true => "departed",
                false => state.copies.state(member).name(),
            };
            *pools
                .entry(&member.pool.name)
                .or_insert_with(none)
                .entry(name)
                .or_default() += 1;
        }
        let rows = pools.into_iter().flat_map(|(pool, counts)| {
            let row = move |(name, count)| (pool.to_owned(), name, count);
            counts.into_iter().map(row)
        });
        rows.collect()
    }

    /// The state of a copy. `None`: the copy is current.
    pub fn copy(&self, member: &Member) -> Option<CopyStatus> {
        self.state().copies.status(member)
    }

    /// The bound address of each listener, by number. `None`: the listener is closed.
    pub fn listeners(&self) -> Vec<Option<String>> {
        self.state().bound.clone()
    }

    /// The number of the listener whose route is this pool. `None`: there is none.
    pub fn listener_of(&self, pool: &str) -> Option<usize> {
        let state = self.state();
        let mut listeners = state.loaded.config.listeners.iter();
        let found = listeners.find(|listener| listener.route.pool() == Some(pool))?;
        state
            .listeners
            .iter()
            .position(|address| *address == found.address)
    }

    /// The name of this host.
    pub fn host_name(&self) -> String {
        host::name()
    }

    /// The version of the running configuration, the same on every proxy that has the same text.
    pub fn version(&self) -> String {
        self.state().version.to_string()
    }

    /// The text of the running configuration.
    pub fn config(&self) -> String {
        self.state().loaded.text.clone()
    }

    /// The number of successful and of refused reloads, and the reason of the last refusal.
    pub fn reloads(&self) -> (u64, u64, Option<String>) {
        let state = self.state();
        (state.reloads, state.failures, state.refused.clone())
    }

    /// When the running configuration took effect.
    pub fn changed(&self) -> SystemTime {
        self.state().changed
    }

    /// The health listeners of the running configuration.
    pub fn health_listeners(&self) -> Vec<HealthListener> {
        self.state().loaded.config.health.clone()
    }

    /// Whether `name` is a name of this machine, or one that the configuration gives to the admin port.
    pub fn is_called(&self, name: &str) -> bool {
        let name = name.strip_suffix('.').unwrap_or(name);
        let is = |other: &String| other.eq_ignore_ascii_case(name);
        self.state().loaded.config.admin_hosts.iter().any(is) || host::names().iter().any(is)
    }

    /// Explains the route of a request that enters by listener number `listener`, from a client at this
    /// address.
    ///
    /// # Errors
    /// The text is no request.
    pub fn explain(
        &self,
        listener: usize,
        example: Example<'_>,
        from: Option<IpAddr>,
    ) -> Result<String, ExplainError> {
        let mut text = self.explained(listener, example, from)?.to_string();
        let state = self.state();
        text.push_str(&self.names.explain(&state.loaded.config, &state.servers));
        Ok(text)
    }

    /// The same, step by step.
    ///
    /// # Errors
    /// The text is no request.
    pub fn explained(
        &self,
        listener: usize,
        example: Example<'_>,
        from: Option<IpAddr>,
    ) -> Result<Explained, ExplainError> {
        let state = &mut *self.state();
        let snapshot = state.copies.snapshot(&state.members);
        let asker = Asker {
            now: Some(self.started.elapsed().into()),
            ..Asker::at(state.localities.as_deref(), from, unix_now())
        };
        route::explain(
            &state.tree,
            &snapshot,
            asker,
            listener,
            example,
            &mut state.random,
        )
    }

    /// The configuration without macros, as JSON. `None`: its format has none.
    pub fn expanded(&self) -> Option<Result<String, ConfigError>> {
        self.source.expanded()
    }

    /// The MD5 digests of the texts of the files of the running configuration.
    pub fn digests(&self) -> Vec<(PathBuf, String)> {
        self.state().loaded.digests.clone()
    }

    /// When a configuration was last read, whatever became of it.
    pub fn attempted(&self) -> SystemTime {
        self.state().attempted
    }

    /// The state of the node agent. `None`: the configuration names none.
    pub fn agent(&self) -> Option<(Agent, Option<Arc<Localities>>)> {
        let state = self.state();
        let followed = state.loaded.config.nodes.is_some();
        followed.then(|| (state.agent.clone(), state.localities.clone()))
    }

    /// The distance of a member from a client at this address, and its source. `None`: a client of which
    /// nothing is known.
    pub fn distance(&self, member: &Member, from: Option<IpAddr>) -> (Distance, DistanceSource) {
        Asker::at(self.state().localities.as_deref(), from, unix_now()).distance(member)
    }

    /// The NUMA nodes of a member. `None`: the node agent does not know it.
    pub fn numa_nodes(&self, member: &Member) -> Option<Vec<u16>> {
        let state = self.state();
        let localities = state.localities.as_deref()?;
        Some(localities.nodes_of(localities.of_member(member)?))
    }

    /// The protocols that this process speaks.
    pub fn protocols(&self) -> Protocols {
        self.protocols
    }

    /// The DNS look-ups of each pool: pool, name, and counts.
    pub fn questions(&self) -> Vec<(String, String, Asked)> {
        let state = self.state();
        let config = &state.loaded.config;
        let lists = self.lists_asked_for(config, |question| matches!(question, Question::Dns(_)));
        let hosts = dns::hosts(config, &state.servers).into_iter();
        let hosts = hosts.flat_map(|(pool, names)| names.into_iter().map(move |name| (pool.clone(), name)));
        let hosts = hosts.filter_map(|(pool, name)| {
            let asked = self.names.host(&name)?;
            Some((pool, name, asked))
        });
        lists.chain(hosts).collect()
    }

    /// The questions to configuration endpoints of each pool: pool, endpoint, and counts.
    pub fn endpoints(&self) -> Vec<(String, String, Asked)> {
        let config = &self.state().loaded.config;
        self.lists_asked_for(config, |question| matches!(question, Question::Endpoint(_)))
            .collect()
    }

    fn lists_asked_for(
        &self,
        config: &Config,
        is_meant: fn(&Question) -> bool,
    ) -> impl Iterator<Item = (String, String, Asked)> {
        config.pools.iter().filter_map(move |(pool, spec)| {
            let question = spec.source.question().filter(is_meant)?;
            let asked = self.names.status(&question)?;
            Some((pool.clone(), question.name().to_owned(), asked))
        })
    }

    /// Why the address of this member is unknown. `None`: it is known.
    pub fn unresolved(&self, member: &Member) -> Option<String> {
        let host = match (&member.socket, Address::parse(&member.address)) {
            (None, Some(Address::Host(host, _))) => host,
            _ => return None,
        };
        Some(format!("its name does not resolve: {}", self.names.why_not(host)))
    }

    /// The files that make up the configuration.
    fn watched_files(&self) -> Vec<PathBuf> {
        self.state().loaded.files_watched.clone()
    }
}
