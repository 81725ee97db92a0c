//! The start of the process: everything that the first configuration needs, until the workers serve by it.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    net::IpAddr,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use tokio::{
    runtime::Runtime,
    sync::{
        Notify,
        mpsc::{self, UnboundedReceiver},
        watch,
    },
};

use crate::{
    admin::{Statistics, TokensError},
    client::{Question, Register},
    config::schema::{Config, Limits, Nodes},
    control::{
        Proxy, Rooms,
        configuration::{
            Configuration,
            follow::{REQUESTS, Request},
            own_copies::with_own_copies,
            reload::{Change, Preparer, ReloadError, Reloader, RunningState, Setup},
        },
        fleet::{Fleet, FleetError, Peering},
        listening::{Listening, drain::Drain},
        membership::{
            Membership,
            copies::{Copies, StateFileWrites},
            orders::Orders,
        },
        near::NearOrders,
        origin::Origins,
        surroundings::{
            Surroundings,
            dns::{Names, Questions},
            host,
        },
        workers::{MakeEngine, Workers},
    },
    copies::{Departed, KeyLocks},
    embedded::store::{self, Store},
    engine::{Engine, Facts, WorkerEvent},
    event_log::EventLog,
    frontdoor::{ConfigSource, mcrouter::Door},
    members::{OwnLocation, Registry, host_id},
    micros::Micros,
    peers,
    protocol::Protocols,
    random::Random,
    reactor::{Io, NoUring, reason},
    tls::TlsError,
    worker::{FleetOrder, Order},
};

/// Options of the command line that are not a part of the configuration.
#[derive(Clone)]
pub struct Options {
    /// The back end of the reactor.
    pub io: Io,
    /// This node's own addresses. Empty: those of the interfaces.
    pub node_addresses: Vec<IpAddr>,
    /// This node's name in Kubernetes; servers on it are on this host.
    pub node: Option<String>,
    /// This node's zone; servers of the same zone are nearer than others.
    pub zone: Option<String>,
    /// The protocols of clients and servers.
    pub protocols: Protocols,
    /// Whether to print what a newcomer may try.
    pub introduce: bool,
    /// The changes of state that the log has told.
    pub events: Arc<EventLog>,
    /// What signals do to the log. `None`: nothing.
    pub log: Option<Arc<dyn LogControl>>,
    /// twemproxy's statistics port. `None`: it is not opened.
    pub statistics: Option<Statistics>,
    /// What clients are told who ask mcrouter's door about itself. `None`: nobody asks.
    pub door: Option<Arc<Door>>,
    /// The file for the number of the process, which is written once all listeners are bound. `None`: there
    /// is none.
    pub pid_file: Option<PathBuf>,
}

/// A log that signals change while the process runs.
pub trait LogControl: Send + Sync {
    /// Opens the file anew, after SIGHUP.
    fn reopen(&self);
    /// Notes that this signal has come, whatever the level, and what is done. By default it does not.
    fn received(&self, _signal: &str, _action: &str) {}
    /// Changes the level by one step, after SIGTTIN (1) or SIGTTOU (-1).
    fn change_level(&self, by: i32);
    /// The level.
    fn verbosity(&self) -> i32;
    /// Changes the level.
    fn set_verbosity(&self, verbosity: i32);
}

impl Default for Options {
    fn default() -> Self {
        Self {
            io: Io::Auto,
            node_addresses: Vec::new(),
            node: None,
            zone: None,
            protocols: Protocols::PLAIN,
            introduce: false,
            events: Arc::default(),
            log: None,
            statistics: None,
            door: None,
            pid_file: None,
        }
    }
}

/// The process cannot start.
#[allow(missing_docs, reason = "the messages name the fields")]
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Reload(#[from] ReloadError),
    /// The back end that the command line asks for does not work here. The operator has to ask for another
    /// one.
    #[error(transparent)]
    Io(#[from] NoUring),
    /// The proxy is at fault: a thread that must not end has ended.
    #[error("a worker has ended; the log says why")]
    Worker,
    /// The system gives no thread, socket or signal; it may later.
    #[error("cannot start: {0}")]
    System(#[from] std::io::Error),
    /// Another proxy uses the file, or its folder cannot be written to. The operator has to see to it.
    #[error("the state file cannot be used: {0}")]
    State(std::io::Error),
    /// The fleet cannot be joined; the message says what to do.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// The operator has to correct the certificate of the admin port.
    #[error("admin: {0}")]
    Tls(#[from] TlsError),
    /// The operator has to correct the file of tokens.
    #[error("admin: {0}")]
    Tokens(#[from] TokensError),
    /// The operator has to choose another address, or to stop the process that listens there.
    #[error("cannot listen on admin address {address}: {source}")]
    Admin { address: String, source: std::io::Error },
    /// The operator has to choose another address, or to stop the process that listens there.
    #[error("cannot listen on statistics address {address}: {source}")]
    Statistics {
        address: std::net::SocketAddr,
        source: std::io::Error,
    },
    /// The operator has to choose another address, or to stop the process that listens there.
    #[error("cannot listen on health address {address}: {source}")]
    Health { address: String, source: std::io::Error },
    /// The operator has to choose another path, or to make its folder writable.
    #[error("opening pid file '{}' failed: {}", path.display(), reason(source))]
    PidFile { path: PathBuf, source: std::io::Error },
}

/// The process as it serves by its first configuration, and what it has to follow from then on.
pub(in crate::control) struct Started {
    pub(in crate::control) proxy: Arc<Proxy>,
    pub(in crate::control) reloader: Reloader,
    pub(in crate::control) requests: mpsc::Receiver<Request>,
    /// Events from the workers.
    pub(in crate::control) events: UnboundedReceiver<WorkerEvent>,
    /// Results of writes to the state file.
    pub(in crate::control) writes: StateFileWrites,
    /// The node agent that the configuration names.
    pub(in crate::control) nodes: watch::Receiver<Option<Nodes>>,
    /// The workers' part in the fleet, and their events about it.
    pub(in crate::control) peering: Option<(Peering, UnboundedReceiver<peers::Event>)>,
    /// What clients ask about the process.
    pub(in crate::control) questions: UnboundedReceiver<Question>,
}

/// Starts the workers with the first configuration.
///
/// # Errors
/// See [`StartError`].
pub(in crate::control) fn start(
    source: Box<dyn ConfigSource>,
    options: &Options,
    io: Io,
    runtime: &Runtime,
) -> Result<Started, StartError> {
    let names = Arc::new(Names::new(runtime.handle().clone()));
    let (preparer, first) = prepare(&*source, options, &names, runtime)?;
    let config = &first.loaded().config;
    let mut shared = SharedState::new(preparer.workers, config.embedded.memory);
    let engines = shared.engines(&config.limits);
    let (tell, events) = mpsc::unbounded_channel();
    let (mut copies, writes) = Copies::new(preparer.workers, config).map_err(StartError::State)?;
    runtime.block_on(copies.look_for_orphans(first.members()));
    let fleet = match &config.fleet {
        None => None,
        Some(named) => {
            let random = Random(shared.random.bits());
            let about = (preparer.workers, options.zone.clone());
            let started = Fleet::start(
                named.clone(),
                random,
                about,
                (replicated(config), own_copies(config)),
                (preparer.registry.certificates(), &names),
            );
            let (fleet, peering) = runtime.block_on(started)?;
            if !fleet.began_clean() {
                runtime.block_on(copies.find_orphaned(first.members()));
            }
            Some((fleet, peering))
        }
    };
    let workers = Workers::start(engines, io, shared.started, &tell)?;
    workers.wake_by(preparer.registry.wakers());
    let pool_changed = Arc::new(Notify::new());
    let changed = Arc::clone(&pool_changed);
    preparer.registry.wakers().add(move || changed.notify_one());
    let (fleet, peering) = fleet
        .map(|(fleet, peering)| {
            let (tell, events) = mpsc::unbounded_channel();
            workers.order(|_| Order::Fleet(FleetOrder::Begin(peering.membership())));
            ((fleet, tell), (peering, events))
        })
        .unzip();
    let (ask, requests) = mpsc::channel(REQUESTS);
    let (name, nodes) = watch::channel(None);
    let (question, questions) = mpsc::unbounded_channel();
    let proxy = Arc::new(Proxy {
        source,
        workers,
        names,
        register: shared.register,
        event_log: Arc::clone(&options.events),
        samples: Arc::clone(&preparer.samples),
        slow_requests: Arc::clone(&preparer.slow_requests),
        store: shared.store,
        started: shared.started,
        since_epoch: shared.since_epoch,
        io,
        protocols: options.protocols,
        runtime: runtime.handle().clone(),
        nodes: name,
        requests: ask,
        drain: Drain::new(),
        orders: Orders::default(),
        pool_changed,
        near_orders: NearOrders::default(),
        origins: Origins::default(),
        shutdown: Notify::new(),
        questions: question,
        fleet,
        certificates: Arc::clone(preparer.registry.certificates()),
        rooms: Mutex::new(Rooms {
            configuration: Configuration::new(first.loaded().clone(), shared.random),
            listening: Listening::new(),
            membership: Membership::new(copies),
            surroundings: Surroundings::default(),
        }),
    });
    let mut reloader = Reloader::new(Arc::clone(&proxy), preparer);
    reloader.begin(first);
    if peering.is_some() {
        let _guard = runtime.enter();
        proxy.hold_own_copies("this proxy has not joined its fleet yet");
    }
    Ok(Started {
        proxy,
        reloader,
        requests,
        events,
        writes,
        nodes,
        peering,
        questions,
    })
}

/// The pools with copies.
fn replicated(config: &Config) -> Vec<String> {
    let pools = config.pools.iter().filter(|(_, pool)| pool.replicated.is_some());
    pools.map(|(name, _)| name.clone()).collect()
}

/// The own copies by pool, with the addresses of their servers.
fn own_copies(config: &Config) -> Vec<(String, String)> {
    let own = config.pools.iter().filter_map(|(name, pool)| {
        let server = pool.source.own()?.first()?;
        Some((name.clone(), server.address.clone()))
    });
    own.collect()
}

/// Numbers that nobody can know who knows this program.
fn seed() -> [u64; 4] {
    let hasher = RandomState::new();
    std::array::from_fn(|number| hasher.hash_one(number))
}

/// Reads the first configuration and prepares the change to it.
fn prepare(
    source: &dyn ConfigSource,
    options: &Options,
    names: &Arc<Names>,
    runtime: &Runtime,
) -> Result<(Preparer, Change), StartError> {
    let here = OwnLocation::new(&options.node_addresses, options.zone.clone()).on_node(options.node.clone());
    let loaded = source.load().and_then(|loaded| with_own_copies(loaded, &here));
    let loaded = loaded.map_err(ReloadError::from)?;
    // A name that does not resolve yet is no reason to fail: nodes start in any order.
    let servers = runtime
        .block_on(names.begin(&loaded.config))
        .map_err(ReloadError::from)?;
    let hosts = names.addresses(&Questions::of(&loaded.config, &servers));
    let mut preparer = Preparer {
        registry: Registry::new(here).sharing(names.certificates()),
        workers: loaded.config.workers.unwrap_or_else(host::processors).max(1),
        host_id: host_id(),
        protocols: options.protocols,
        spool: None,
        leases: Arc::default(),
        samples: Arc::default(),
        slow_requests: Arc::default(),
        near: None,
        seed: seed(),
    };
    let nothing = RunningState::nothing(loaded.config.clone());
    let setup = Setup {
        loaded,
        servers,
        departed: Departed::default(),
        hosts,
    };
    let first = preparer.prepare(&nothing, setup)?;
    Ok((preparer, first))
}

/// What all workers share, and what tells this process from others.
struct SharedState {
    workers: usize,
    started: Instant,
    /// The time since 1970 at the start.
    since_epoch: Micros,
    random: Random,
    store: Arc<Store>,
    register: Arc<Register>,
    locks: Arc<KeyLocks>,
}

impl SharedState {
    /// `memory` is the most that the embedded store may take, in bytes.
    fn new(workers: usize, memory: usize) -> Self {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut random = Random(epoch.as_nanos() as u64 ^ u64::from(std::process::id()) << 32);
        let seed = [random.bits(), random.bits(), random.bits(), random.bits()];
        let limits = store::Limits {
            memory,
            ..Default::default()
        };
        Self {
            workers,
            started: Instant::now(),
            since_epoch: epoch.into(),
            random,
            store: Arc::new(Store::new(limits, seed)),
            register: Arc::new(Register::new(workers)),
            locks: Arc::new(KeyLocks::new(workers, seed)),
        }
    }

    /// How each worker makes its engine.
    fn engines(&mut self, limits: &Limits) -> Vec<MakeEngine> {
        let make = |worker| {
            let facts = Facts {
                pid: std::process::id(),
                start: self.since_epoch,
                workers: self.workers,
                worker,
            };
            let (store, register) = (Arc::clone(&self.store), Arc::clone(&self.register));
            let (locks, limits, seed) = (Arc::clone(&self.locks), limits.clone(), self.random.bits());
            let make: MakeEngine = Box::new(move || Engine::new(limits, store, register, locks, facts, seed));
            make
        };
        (0..self.workers).map(make).collect()
    }
}
