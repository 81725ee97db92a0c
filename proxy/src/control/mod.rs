//! The control thread: configuration, membership, health, admin. It never serves a request; it only hands snapshots to the
//! workers.
//!
//! ```text
//!  file ─▶ watch ─▶ reload ─▶ trees ─▶ workers
//!  DNS ─▶ names ──────┘
//!  node agent ─▶ nodes ─▶ orders of `nearest` ─▶ workers
//!  news of ejections ◀─ workers          admin ─▶ figures, explain, ready
//!        └─▶ probes ─▶ health
//! ```
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the control thread: owns the clock, serves no request"
)]

mod connection;
mod copies;
mod descriptors;
mod dns;
mod file_watcher;
mod follow;
mod greet;
mod health;
mod host;
mod nodes;
mod offline;
mod probe;
mod reload;
mod run;
mod start;
mod workers;

use std::{
    collections::BTreeMap,
    net::IpAddr,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use tokio::sync::mpsc;

use self::{copies::Copies, descriptors::Descriptors, dns::Names, health::Ejections, workers::Workers};
pub use self::{copies::CopyCounters, health::Ejection};
pub use self::{
    dns::{Asked, LookupFailure},
    nodes::{Agent, AgentError},
    offline::{OfflineError, check, explain},
    probe::probe,
    reload::ReloadError,
    run::run,
    start::{Options, StartError},
};
use tokio::sync::watch::Sender;

use crate::{
    client::Register,
    config::{Loaded, schema::Nodes, source::Lists},
    copies::{CopyState, CopyStatus, Departed},
    dialect::Dialects,
    figures::Figures,
    frontdoor::ConfigSource,
    members::{Address, Distance, DistanceSource, Localities, Member},
    near::store::{Store, Totals},
    reactor::Io,
    route::{self, Asker, ExplainError, Random, Tree},
};

/// The running proxy, as its control thread and admin port see it.
pub struct Proxy {
    source: Box<dyn ConfigSource>,
    workers: Workers,
    names: Arc<Names>,
    register: Arc<Register>,
    store: Arc<Store>,
    started: Instant,
    io: Io,
    dialects: Dialects,
    /// Where repairs and probes run.
    runtime: tokio::runtime::Handle,
    /// Who is to tell of NUMA nodes.
    nodes: Sender<Option<Nodes>>,
    /// Where operators ask to have the configuration read again.
    requests: mpsc::Sender<follow::Request>,
    state: Mutex<State>,
}

/// What a reload changes.
struct State {
    loaded: Loaded,
    /// The servers of each pool.
    servers: Lists,
    /// Copies that the configuration names no more.
    departed: Departed,
    /// What the names in their addresses stand for.
    hosts: BTreeMap<String, IpAddr>,
    /// What the node agent tells; `None`: nothing, or there is none.
    localities: Option<Arc<Localities>>,
    agent: Agent,
    /// The control thread's own tree, for `explain`.
    tree: Tree,
    /// The version of the configuration by which every worker serves.
    version: Arc<str>,
    /// Listener addresses as configured, by number; and as bound.
    listeners: Vec<String>,
    bound: Vec<Option<String>>,
    members: Vec<Arc<Member>>,
    copies: Copies,
    ejections: Ejections,
    descriptors: Descriptors,
    changed: SystemTime,
    reloads: u64,
    failures: u64,
    /// Why the newest configuration was refused; none while it runs.
    refused: Option<String>,
    draining: bool,
    random: Random,
}

impl State {
    /// Nothing runs yet. `loaded` is the first configuration.
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
            changed: SystemTime::now(),
            reloads: 0,
            failures: 0,
            refused: None,
            draining: false,
            random,
        }
    }
}

/// A member with the pool's word on it, for readiness.
pub struct PoolState {
    /// The pool's name in the configuration.
    pub name: String,
    /// Members that may be asked.
    pub up: usize,
    /// Members in all.
    pub members: usize,
}

impl PoolState {
    fn empty(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            up: 0,
            members: 0,
        }
    }
}

impl Proxy {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves nothing half done here: every change is one assignment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sum over all workers.
    pub fn figures(&self) -> Figures {
        self.workers.figures()
    }

    /// Time since the start.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// The back end that the workers use.
    pub fn io(&self) -> Io {
        self.io
    }

    /// How many there are.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// All members of the running configuration, departed copies that are waited for among them.
    pub fn members(&self) -> Vec<Arc<Member>> {
        self.state().members.clone()
    }

    /// The memory that the embedded store may take, and what it holds; none: no listener leads to it.
    pub fn store(&self) -> Option<(usize, Totals)> {
        let now = self.started.elapsed().as_millis() as u64;
        let leads = self.state().tree.has_store();
        leads.then(|| (self.store.limits().memory, self.store.totals(now)))
    }

    /// Every copy, and what happened to it.
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

    /// How many copies are in which state, by pool; those that the configuration names no more are `departed`.
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

    /// What is known of a copy; `None`: it is simply current.
    pub fn copy(&self, member: &Member) -> Option<CopyStatus> {
        self.state().copies.status(member)
    }

    /// Where clients are accepted, by listener number; none: removed.
    pub fn listeners(&self) -> Vec<Option<String>> {
        self.state().bound.clone()
    }

    /// The version of the running configuration, the same on every proxy that has the same text.
    pub fn version(&self) -> String {
        self.state().version.to_string()
    }

    /// The text of the running configuration.
    pub fn config(&self) -> String {
        self.state().loaded.text.clone()
    }

    /// Successful and refused reloads, and why the last one was refused.
    pub fn reloads(&self) -> (u64, u64, Option<String>) {
        let state = self.state();
        (state.reloads, state.failures, state.refused.clone())
    }

    /// When the running configuration took effect.
    pub fn changed(&self) -> SystemTime {
        self.state().changed
    }

    /// Is this a name of this machine, or one that the configuration gives the admin port?
    pub fn is_called(&self, name: &str) -> bool {
        let name = name.strip_suffix('.').unwrap_or(name);
        let is = |other: &String| other.eq_ignore_ascii_case(name);
        self.state().loaded.config.admin_hosts.iter().any(is) || host::names().iter().any(is)
    }

    /// Whether it was told to stop and lets its clients finish.
    pub fn is_draining(&self) -> bool {
        self.state().draining
    }

    /// The way of a request that enters by listener number `listener`, from a client at this address.
    ///
    /// # Errors
    /// It is no request.
    pub fn explain(
        &self,
        listener: usize,
        command: &str,
        key: &[u8],
        from: Option<IpAddr>,
    ) -> Result<String, ExplainError> {
        let state = &mut *self.state();
        let snapshot = state.copies.snapshot(&state.members);
        let asker = Asker::at(state.localities.as_deref(), from);
        let random = &mut state.random;
        let mut text = route::explain(&state.tree, &snapshot, asker, listener, command, key, random)?;
        text.push_str(&self.names.explain(&state.loaded.config, &state.servers));
        Ok(text)
    }

    /// The node agent's state; `None`: the configuration names none.
    pub fn agent(&self) -> Option<(Agent, Option<Arc<Localities>>)> {
        let state = self.state();
        let followed = state.loaded.config.nodes.is_some();
        followed.then(|| (state.agent.clone(), state.localities.clone()))
    }

    /// How far a member is from a client at this address, and what that is known from; `None`: from one of which nothing is known.
    pub fn distance(&self, member: &Member, from: Option<IpAddr>) -> (Distance, DistanceSource) {
        Asker::at(self.state().localities.as_deref(), from).distance(member)
    }

    /// The NUMA nodes on which the node agent knows a member to be; `None`: it does not know it.
    pub fn numa_nodes(&self, member: &Member) -> Option<Vec<u16>> {
        let state = self.state();
        let localities = state.localities.as_deref()?;
        Some(localities.nodes_of(localities.of_member(member)?))
    }

    /// The protocols that are spoken here.
    pub fn dialects(&self) -> Dialects {
        self.dialects
    }

    /// How many members of each pool may be asked. A pool that waits for DNS to name its first has none.
    pub fn pools(&self) -> Vec<PoolState> {
        let state = self.state();
        let waiting = state.loaded.config.pools.iter().filter(|(name, pool)| {
            pool.source.may_be_empty() && state.servers.get(*name).is_none_or(Vec::is_empty)
        });
        let mut pools: Vec<PoolState> = waiting.map(|(name, _)| PoolState::empty(name)).collect();
        for member in state
            .members
            .iter()
            .filter(|member| !state.departed.holds(member))
        {
            let at = match pools.iter().position(|pool| pool.name == *member.pool.name) {
                Some(at) => at,
                None => {
                    pools.push(PoolState::empty(&member.pool.name));
                    pools.len() - 1
                }
            };
            pools[at].members += 1;
            let current = state.copies.state(member) == CopyState::Current;
            pools[at].up += usize::from(member.is_up() && current);
        }
        pools
    }

    /// How the questions to DNS stand that each pool asks, with the names that are asked for.
    pub fn questions(&self) -> Vec<(String, String, Asked)> {
        let state = self.state();
        let config = &state.loaded.config;
        let lists = config.pools.iter().filter_map(|(pool, spec)| {
            let question = spec.source.question()?;
            let asked = self.names.status(question)?;
            Some((pool.clone(), question.name.clone(), asked))
        });
        let hosts = dns::hosts(config, &state.servers).into_iter();
        let hosts = hosts.flat_map(|(pool, names)| names.into_iter().map(move |name| (pool.clone(), name)));
        let hosts = hosts.filter_map(|(pool, name)| {
            let asked = self.names.host(&name)?;
            Some((pool, name, asked))
        });
        lists.chain(hosts).collect()
    }

    /// Why nobody knows where this member is; none: it is known.
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
