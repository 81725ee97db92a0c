//! The life of the process: start, follow changes, drain, end.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{mpsc, watch},
    time::{Instant as Deadline, MissedTickBehavior, interval, sleep},
};

use super::{
    Agent, Proxy, State,
    copies::Copies,
    descriptors::Descriptors,
    dns::{Names, Questions},
    follow::{REQUESTS, follow},
    health::Ejections,
    host,
    reload::{Preparer, ReloadError, Reloader, Running, Setup},
    workers::{Make, Workers},
};
use crate::{
    admin,
    client::Register,
    copies::{Departed, KeyLocks},
    dialect::Dialects,
    engine::{Engine, Facts},
    frontdoor::ConfigSource,
    members::{Here, Registry},
    near::store::{self, Store},
    reactor::{Io, NoUring},
    route::{Random, Tree},
    worker::Order,
};

/// It is looked this often whether a worker has ended.
const LOOK: Duration = Duration::from_millis(200);
/// Workers look at time-outs this often: what is late is noticed so much later at most.
const TICK: Duration = Duration::from_millis(50);
/// After SIGTERM, clients that are still connected are cut off after this long.
const DRAIN: Duration = Duration::from_secs(20);

/// What the command line adds to a configuration.
#[derive(Clone)]
pub struct Options {
    /// How to talk to the kernel.
    pub io: Io,
    /// This node's own addresses, where the interfaces do not tell.
    pub node_addresses: Vec<IpAddr>,
    /// This node's zone; servers of the same zone are nearer than others.
    pub zone: Option<String>,
    /// The protocols of clients and servers.
    pub dialects: Dialects,
    /// Tell a newcomer what to try.
    pub introduce: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            io: Io::Auto,
            node_addresses: Vec::new(),
            zone: None,
            dialects: Dialects::PLAIN,
            introduce: false,
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
    /// The back end that the command line asks for is not there: another one has to be asked for.
    #[error(transparent)]
    Io(#[from] NoUring),
    /// The proxy's fault: a thread that must not end has ended.
    #[error("a worker has ended; the log says why")]
    Worker,
    /// The system gives no thread, socket or signal; it may later.
    #[error("cannot start: {0}")]
    System(#[from] std::io::Error),
    /// Another proxy holds it, or its folder does not let us: the operator has to see to it.
    #[error("the state file cannot be used: {0}")]
    State(std::io::Error),
    /// The operator has to choose another address, or to end what listens there.
    #[error("cannot listen on admin address {address}: {source}")]
    Admin { address: String, source: std::io::Error },
}

/// Serves until told to stop.
///
/// # Errors
/// The start failed; later failures are logged.
pub fn run(source: Box<dyn ConfigSource>, options: &Options) -> Result<(), StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    // Before anything listens: who can connect can also send a signal.
    let signals = runtime.block_on(async { Signals::new() })?;
    let (io, why) = options.io.resolve()?;
    let loaded = source.load().map_err(ReloadError::from)?;
    let workers = loaded.config.workers.unwrap_or_else(host::processors).max(1);
    let admin = loaded.config.admin.clone();
    let dialects = options.dialects;
    let mut preparer = Preparer {
        registry: Registry::new(Here::new(&options.node_addresses, options.zone.clone())),
        workers,
        host_id: host::id(),
        dialects,
    };
    let limits = loaded.config.limits.clone();
    let memory = loaded.config.embedded.memory;
    // A name that does not resolve yet is no reason to stay away: nodes come up in any order.
    let names = Arc::new(Names::new(runtime.handle().clone()));
    let servers = runtime
        .block_on(names.begin(&loaded.config))
        .map_err(ReloadError::from)?;
    let hosts = names.addresses(&Questions::of(&loaded.config, &servers));
    let nothing = Running::nothing(loaded.config.clone());
    let setup = Setup {
        loaded,
        servers,
        departed: Departed::default(),
        hosts,
    };
    let first = preparer.prepare(&nothing, setup)?;

    let started = Instant::now();
    let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut random = Random(epoch.as_nanos() as u64 ^ u64::from(std::process::id()) << 32);
    let seed = [random.bits(), random.bits(), random.bits(), random.bits()];
    let store = Arc::new(Store::new(
        store::Limits {
            memory,
            ..Default::default()
        },
        seed,
    ));
    let register = Arc::new(Register::new(workers));
    let locks = Arc::new(KeyLocks::new(workers, seed));
    let engines = (0..workers)
        .map(|worker| {
            let facts = Facts {
                pid: std::process::id(),
                epoch: epoch.as_secs(),
                workers,
                worker,
            };
            let (store, register, locks) = (Arc::clone(&store), Arc::clone(&register), Arc::clone(&locks));
            let (limits, seed) = (limits.clone(), random.bits());
            let make: Make = Box::new(move || Engine::new(limits, store, register, locks, facts, seed));
            make
        })
        .collect();
    let (news, heard) = mpsc::unbounded_channel();
    let (nodes, wanted_nodes) = watch::channel(None);
    let (mut copies, writes) = Copies::new(workers, &first.loaded().config).map_err(StartError::State)?;
    runtime.block_on(copies.look_for_orphans(first.members()));
    let workers = Workers::start(engines, io, started, &news)?;
    let state = State {
        loaded: first.loaded().clone(),
        servers: BTreeMap::new(),
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
        changed: SystemTime::now(),
        reloads: 0,
        failures: 0,
        refused: None,
        draining: false,
        random,
    };
    let (ask, requests) = mpsc::channel(REQUESTS);
    let proxy = Arc::new(Proxy {
        source,
        workers,
        names,
        register,
        store,
        started,
        io,
        dialects,
        runtime: runtime.handle().clone(),
        nodes,
        requests: ask,
        state: Mutex::new(state),
    });
    let mut reloader = Reloader::new(Arc::clone(&proxy), preparer);
    reloader.begin(first);
    runtime.block_on(async {
        let admin = match admin {
            Some(address) => Some(
                admin::serve(&address, Arc::clone(&proxy))
                    .await
                    .map_err(|source| StartError::Admin { address, source })?,
            ),
            None => None,
        };
        say_hello(&proxy, admin.as_deref(), why);
        if options.introduce {
            introduce(&proxy, admin.as_deref());
        }
        tokio::spawn(Arc::clone(&proxy).look_after(heard));
        tokio::spawn(Arc::clone(&proxy).hear_of_state_file(writes));
        tokio::spawn(Arc::clone(&proxy).follow_agent(wanted_nodes));
        tokio::spawn(follow(reloader, Arc::clone(&proxy), requests));
        tokio::spawn(tick(Arc::clone(&proxy)));
        serve(&proxy, signals).await
    })
}

fn say_hello(proxy: &Proxy, admin: Option<&str>, why: &str) {
    let addresses: Vec<String> = proxy.listeners().into_iter().flatten().collect();
    let members = proxy.members().len();
    let connections = proxy.workers.len() * (1 + crate::upstream::BULK_LANES);
    tracing::info!(
        configuration = %proxy.source.name(),
        version = %proxy.version(),
        io = %proxy.io,
        why,
        workers = proxy.workers.len(),
        connections_to_each_server = (members > 0).then_some(connections),
        members,
        "proxima {} serves {}",
        env!("CARGO_PKG_VERSION"),
        addresses.join(", "),
    );
    if let Some(admin) = admin {
        tracing::info!("admin on http://{admin} (/live /ready /metrics /config /members /explain?key=K)");
    }
}

/// For someone who has just started it for the first time.
fn introduce(proxy: &Proxy, admin: Option<&str>) {
    let Some(address) = proxy.listeners().into_iter().flatten().next() else {
        return;
    };
    let (host, port) = address.rsplit_once(':').unwrap_or((&address, ""));
    println!(
        "Proxima listens on {address} and speaks memcached. Nothing is configured, so it serves a store of its own."
    );
    println!("Try it with any memcached client, or in plain bash:\n");
    println!("  exec 3<>/dev/tcp/{host}/{port}");
    println!("  printf 'set hello 0 60 5\\r\\nworld\\r\\nget hello\\r\\nquit\\r\\n' >&3; cat <&3\n");
    if let Some(admin) = admin {
        println!("Look inside: http://{admin}/metrics, http://{admin}/explain?key=hello");
    }
    println!("Next: `proxima --help`, examples/node-local-memcached, docs/. Stop with Ctrl-C.");
}

/// The signals that mean something.
struct Signals {
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
    /// Without a meaning here, and deadly unless they are taken: other programs reopen their logs with them.
    unused: [Signal; 2],
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            unused: [
                signal(SignalKind::user_defined1())?,
                signal(SignalKind::user_defined2())?,
            ],
        })
    }
}

/// Obeys signals until the end.
async fn serve(proxy: &Arc<Proxy>, signals: Signals) -> Result<(), StartError> {
    let Signals {
        mut hangup,
        mut terminate,
        mut interrupt,
        unused: [mut first, mut second],
    } = signals;
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = look.tick() => {
                if proxy.workers.any_ended() {
                    // Its clients are gone and its listeners refuse: a fresh process serves them better.
                    return Err(StartError::Worker);
                }
            }
            _ = hangup.recv() => {
                tracing::info!("SIGHUP: reading the configuration again");
                proxy.request_reload();
            }
            _ = first.recv() => tracing::info!("SIGUSR1 has no meaning: nothing is done"),
            _ = second.recv() => tracing::info!("SIGUSR2 has no meaning: nothing is done"),
            _ = terminate.recv() => return drain(proxy, &mut interrupt).await,
            _ = interrupt.recv() => {
                tracing::info!("SIGINT: stopping");
                proxy.workers.order(|_| Order::Stop);
                proxy.workers.join();
                proxy.save_end().await;
                return Ok(());
            }
        }
    }
}

/// Wakes the workers that have time-outs to look at. Nothing that the control thread waits for delays this.
async fn tick(proxy: Arc<Proxy>) {
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        proxy.workers.tick();
    }
}

async fn drain(proxy: &Arc<Proxy>, interrupt: &mut Signal) -> Result<(), StartError> {
    tracing::info!("SIGTERM: no new clients; each is closed when nothing is due to it");
    {
        // A change under way opens no listener behind this.
        let mut state = proxy.state();
        state.draining = true;
        proxy.workers.order(|_| Order::Drain);
    }
    let end = Deadline::now() + DRAIN;
    while !proxy.workers.ended() {
        tokio::select! {
            () = sleep(Duration::from_millis(20)) => proxy.workers.tick(),
            _ = interrupt.recv() => break,
        }
        if Deadline::now() >= end {
            tracing::warn!("clients are still connected after {DRAIN:?}: cut off");
            break;
        }
    }
    proxy.workers.order(|_| Order::Stop);
    proxy.workers.join();
    proxy.save_end().await;
    Ok(())
}
