//! From a changed file to trees in every worker: whole or not at all.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, MutexGuard, PoisonError, mpsc},
    time::{Instant, SystemTime},
};

use socket2::Socket;

use super::{
    Proxy, State,
    descriptors::Need,
    dns::{Failure, Questions},
};
use crate::{
    client::{bind, permit},
    config::{
        ConfigError, Loaded,
        schema::Config,
        source::{self, Lists},
    },
    copies::Departed,
    dialect::Dialects,
    members::Registry,
    route::{CompileError, Compiler, Orders, Tree},
    worker::Order,
};

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// It, or a file that it names, has mistakes: the operator has to mend them.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// It has no mistake in itself, but what it describes cannot be served: the operator has to mend it.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The network's fault, or the operator's if there never is such a name.
    #[error("pool {pool}: no answer for {name} ({failure}); the change takes effect when there is one")]
    Unanswered {
        pool: String,
        name: String,
        failure: Failure,
    },
    /// The operator has to choose another address, or to end what listens there.
    #[error("cannot listen on {address}: {source}{}", hint(.source))]
    Bind { address: String, source: std::io::Error },
}

impl ReloadError {
    /// Whether the same configuration may be good later without the operator's doing: it is then tried again.
    fn retry_may_help(&self) -> bool {
        matches!(self, Self::Unanswered { .. })
    }
}

fn hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => " (another process, maybe another proxima, listens there)",
        std::io::ErrorKind::AddrNotAvailable => " (this host has no such address)",
        std::io::ErrorKind::PermissionDenied => " (ports below 1024 need CAP_NET_BIND_SERVICE)",
        _ => "",
    }
}

/// What is to run.
pub(super) struct Wanted {
    pub(super) loaded: Loaded,
    /// The servers of each pool, whatever their source.
    pub(super) servers: Lists,
    /// Copies that are named no more.
    pub(super) departed: Departed,
    /// What the names in their addresses stand for.
    pub(super) hosts: BTreeMap<String, IpAddr>,
}

/// Everything that was made of a configuration before anything was changed.
pub(super) struct Made {
    pub(super) loaded: Loaded,
    pub(super) servers: Lists,
    pub(super) departed: Departed,
    pub(super) hosts: BTreeMap<String, IpAddr>,
    /// One for each worker, and one for the control thread.
    pub(super) trees: Vec<Tree>,
    pub(super) listeners: Vec<String>,
    pub(super) warnings: Vec<String>,
    pub(super) opened: Vec<(u16, String, Vec<Socket>)>,
    pub(super) closed: Vec<u16>,
}

/// Makes all that is wanted. `known` are the listeners that are open, by number.
pub(super) fn make(
    wanted: Wanted,
    registry: &mut Registry,
    known: &[String],
    bound: &[Option<String>],
    workers: usize,
    host_id: u64,
    dialects: Dialects,
) -> Result<Made, ReloadError> {
    // A member that was removed while it was ejected must not come back so: nobody probes it any more.
    registry.purge();
    let Wanted {
        loaded,
        servers,
        departed,
        hosts,
    } = wanted;
    registry.set_hosts(hosts.clone());
    let config = &loaded.config;
    let mut listeners = known.to_vec();
    for listener in &config.listeners {
        if !listeners.contains(&listener.address) {
            listeners.push(listener.address.clone());
        }
    }
    let mut compiler = Compiler::new(
        config,
        &servers,
        registry,
        dialects,
        &version(&loaded, &servers),
        host_id,
    )?;
    compiler.keep(&departed.servers(), registry)?;
    let mut trees = Vec::with_capacity(workers + 1);
    let mut warnings = loaded.warnings.clone();
    for number in 0..=workers {
        let built = compiler.tree(registry, &listeners)?;
        if number == 0 {
            warnings.extend(built.warnings);
        }
        trees.push(built.tree);
    }
    let mut opened = Vec::new();
    let mut closed = Vec::new();
    for (number, address) in listeners.iter().enumerate() {
        let wanted = config
            .listeners
            .iter()
            .find(|listener| listener.address == *address);
        let open = bound.get(number).is_some_and(Option::is_some);
        let refused = |source| ReloadError::Bind {
            address: address.clone(),
            source,
        };
        match (wanted, address.strip_prefix("unix:")) {
            (Some(listener), _) if !open => {
                let new = bind(address, &listener.permissions, workers).map_err(refused)?;
                opened.push((number as u16, new.address, new.sockets));
            }
            (Some(listener), Some(path)) => permit(path, &listener.permissions).map_err(refused)?,
            (Some(_), None) => {}
            (None, _) if open => closed.push(number as u16),
            (None, _) => {}
        }
    }
    Ok(Made {
        loaded,
        servers,
        departed,
        hosts,
        trees,
        listeners,
        warnings,
        opened,
        closed,
    })
}

/// The configuration's own text and the lists of servers it names: the same on every proxy that runs the same.
fn version(loaded: &Loaded, servers: &Lists) -> String {
    let lists = xxhash_rust::xxh3::xxh3_64(format!("{servers:?}").as_bytes());
    format!("{}-{:08x}", loaded.version_hash, lists as u32)
}

/// Keys that differ, and that a reload does not change.
fn read_at_start(running: &Config, wanted: &Config) -> Vec<&'static str> {
    let differ = [
        ("workers", running.workers != wanted.workers),
        ("admin", running.admin != wanted.admin),
        ("embedded.memory", running.embedded != wanted.embedded),
        ("state", running.state != wanted.state),
    ];
    differ
        .into_iter()
        .filter_map(|(key, differs)| differs.then_some(key))
        .collect()
}

impl State {
    /// What has to be asked for what runs.
    fn questions(&self) -> Questions {
        let mut questions = Questions::of(&self.loaded.config, &self.servers);
        questions.extend(Questions::of(&self.loaded.config, &self.departed.servers()));
        questions
    }
}

impl Proxy {
    /// Reads the configuration again; the running one stays if it is refused. Returns whether anything changed.
    ///
    /// # Errors
    /// Why it was refused; also logged and counted.
    pub fn reload(self: &Arc<Self>) -> Result<bool, ReloadError> {
        let _turn = self.turn();
        self.read_again()
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.change.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_again(self: &Arc<Self>) -> Result<bool, ReloadError> {
        let result = self.try_reload();
        let mut state = self.state();
        state.waits = result.as_ref().is_err_and(ReloadError::retry_may_help);
        if !state.waits {
            self.names.follow(&state.questions());
        }
        match &result {
            Ok(changed) => {
                if state.refused.take().is_some() {
                    tracing::info!(version = %state.tree.version, "the configuration is good again");
                }
                state.reloads += u64::from(*changed);
            }
            Err(error) => {
                state.failures += 1;
                state.refused = Some(error.to_string());
                tracing::error!("configuration refused, the running one stays: {error}");
            }
        }
        result
    }

    fn try_reload(self: &Arc<Self>) -> Result<bool, ReloadError> {
        let loaded = self.source.load()?;
        let mut servers = source::lists(&loaded.config)?;
        let mut questions = Questions::of(&loaded.config, &servers);
        let running = {
            let state = self.state();
            questions.extend(state.questions());
            state.loaded.config.clone()
        };
        self.names.follow(&questions);
        self.names.wait_for_first();
        self.answered(&loaded.config, &running)?;
        self.names.list(&loaded.config, &mut servers);
        self.replace(&mut self.state(), loaded, servers)
    }

    /// A pool that serves is not exchanged for one without servers. One that has none yet, as nobody has answered since the
    /// start, may go on waiting.
    fn answered(&self, config: &Config, running: &Config) -> Result<(), ReloadError> {
        for (pool, spec) in &config.pools {
            let before = running.pools.get(pool).map(|before| &before.source);
            if let Some(question) = spec.source.question()
                && before != Some(&spec.source)
                && self.names.servers(question).is_none()
            {
                let failure = self
                    .names
                    .standing(question)
                    .and_then(|standing| standing.failure);
                return Err(ReloadError::Unanswered {
                    pool: pool.clone(),
                    name: question.name.clone(),
                    failure: failure.unwrap_or(Failure::Late),
                });
            }
        }
        Ok(())
    }

    /// Puts what DNS says now into the running configuration, and waits no longer for departed copies whose grace has ended; nothing
    /// else of it is read again. A configuration that was refused for want of an answer is tried once more.
    pub(super) fn renew(self: &Arc<Self>) {
        let _turn = self.turn();
        let mut state = self.state();
        let mut servers = state.servers.clone();
        self.names.list(&state.loaded.config, &mut servers);
        let mut loaded = state.loaded.clone();
        // They were told when it was read.
        loaded.warnings.clear();
        match self.replace(&mut state, loaded, servers) {
            Ok(changed) => state.reloads += u64::from(changed),
            Err(error) => {
                state.failures += 1;
                tracing::error!("the servers that DNS names cannot be used, those before them stay: {error}");
            }
        }
        let waits = state.waits;
        if !waits {
            self.names.follow(&state.questions());
        }
        drop(state);
        if waits {
            // The result is logged and kept.
            let _ = self.read_again();
        }
    }

    /// Makes everything, and hands it out if it differs from what runs.
    fn replace(
        self: &Arc<Self>,
        state: &mut State,
        loaded: Loaded,
        servers: Lists,
    ) -> Result<bool, ReloadError> {
        let departed = state.departed.after(
            (&state.loaded.config, &state.servers),
            (&loaded.config, &servers),
            Instant::now(),
        );
        let mut questions = Questions::of(&loaded.config, &servers);
        questions.extend(Questions::of(&loaded.config, &departed.servers()));
        let made = make(
            Wanted {
                loaded,
                servers,
                departed,
                hosts: self.names.addresses(&questions),
            },
            &mut state.registry,
            &state.listeners,
            &state.bound,
            self.workers.len(),
            self.host_id,
            self.dialects,
        );
        let made = match made {
            Ok(made) => made,
            Err(error) => {
                state.registry.purge();
                return Err(error);
            }
        };
        let same = made
            .trees
            .first()
            .is_some_and(|tree| tree.version == state.tree.version);
        let same = same && made.departed == state.departed && made.hosts == state.hosts;
        if same && made.opened.is_empty() && made.closed.is_empty() {
            return Ok(false);
        }
        self.install(state, made);
        Ok(true)
    }

    /// Hands each worker its tree and waits until all have taken it.
    fn install(self: &Arc<Self>, state: &mut State, mut made: Made) {
        for warning in &made.warnings {
            tracing::warn!("{warning}");
        }
        for key in read_at_start(&state.loaded.config, &made.loaded.config) {
            tracing::warn!(
                "`{key}` has changed, and is read at the start only: it takes effect with a restart"
            );
        }
        let Some(own) = made.trees.pop() else { return };
        let orders = state
            .localities
            .as_deref()
            .map(|localities| own.orders(localities));
        for tree in made.trees.iter().chain([&own]) {
            tree.follow(orders.as_ref().unwrap_or(&Orders::default()));
        }
        let members = own.members();
        let room = state.descriptors.provide(Need {
            clients: made.loaded.config.limits.clients,
            workers: self.workers.len(),
            members: members.len(),
        });
        self.register.set_room(room);
        self.remove_copies(state, &members);
        let before = std::mem::replace(&mut state.members, members);
        state.loaded = made.loaded;
        state.servers = made.servers;
        state.departed = made.departed;
        state.hosts = made.hosts;
        self.add_copies(state, &before);
        let (done, all) = mpsc::channel();
        let limits = state.loaded.config.limits.clone();
        let mut trees = made.trees.into_iter();
        let mut sockets: Vec<(u16, std::vec::IntoIter<Socket>)> = made
            .opened
            .iter_mut()
            .map(|(number, _, sockets)| (*number, std::mem::take(sockets).into_iter()))
            .collect();
        self.workers.order(|_| {
            let Some(tree) = trees.next() else {
                return Order::Stop;
            };
            Order::Swap {
                tree: Box::new(tree),
                limits: limits.clone(),
                open: sockets
                    .iter_mut()
                    .filter_map(|(number, all)| Some((*number, all.next()?)))
                    .collect(),
                close: made.closed.clone(),
                done: done.clone(),
            }
        });
        drop(done);
        let _ = all.iter().count();
        state.bound.resize(made.listeners.len(), None);
        for (number, address, _) in made.opened {
            state.bound[usize::from(number)] = Some(address);
        }
        for number in made.closed {
            state.bound[usize::from(number)] = None;
        }
        state.listeners = made.listeners;
        state.tree = own;
        state.changed = SystemTime::now();
        state.registry.purge();
        self.register.listening(&state.bound);
        self.nodes.send_if_modified(|nodes| {
            let wanted = &state.loaded.config.nodes;
            let differs = nodes != wanted;
            nodes.clone_from(wanted);
            differs
        });
        self.recount(state);
        self.expect_no_longer(state.departed.until());
        tracing::info!(version = %state.tree.version, members = state.members.len(), "configuration in effect");
    }

    pub(super) fn start_serving(self: &Arc<Self>, made: Made) {
        let mut state = self.state();
        self.install(&mut state, made);
    }
}
