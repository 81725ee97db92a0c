//! Makes trees of a configuration's routes.
//!
//! A route is built beside its decision, in `handle`. Here is what the routes are built with: `maker` turns
//! one route after the other into nodes, `leaves` builds those without children, `pools` the members of pools
//! and their copies, and `near` the route that keeps replies. `hashing` makes distributions, and `failovers`
//! the nodes that several failovers share. `hosts` has the numbers of this host, `prefixes` the routing
//! prefixes that servers keep, and `root` the entry of a listener. `in_fleet` knows the copies of a fleet
//! under every name. `survey` looks at nodes that are made.

mod consistency;
mod failovers;
mod hashing;
mod hosts;
mod in_fleet;
mod leaves;
mod maker;
mod near;
mod pools;
mod prefixes;
mod root;
mod survey;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use proxima_wire::hash::{Distribution, DistributionError};

use self::maker::KeptPrefix;
pub(super) use self::maker::{Build, Maker, Named};
pub use self::near::{all_near_settings, near_rules, near_settings};
use super::{
    LeaseTable, Samples, SlowRequests,
    tree::{Leaf, Node, Tree},
};
use crate::{
    config::schema::{Config, DeclaredCommand, Protocol, Route, Server},
    members::{AddressError, Member, Registry},
    near::{Near, Rules},
    protocol::{CommandDeclaration, DeclaredCommands, ProtocolSlot, Protocols},
    spool::Spool,
    tls::TlsError,
};

/// A configuration cannot become a tree.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// A server's address cannot be parsed.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A route names no route and no pool of the configuration.
    #[error("there is no route and no pool called `{0}`")]
    Unknown(String),
    /// Routes are nested too deep, or name each other in a circle.
    #[error(
        "routes are nested more than {} deep (do they name each other in a circle?)",
        Route::DEPTH
    )]
    TooDeep,
    /// TLS with the clients of a listener cannot be set up.
    #[error("listener {address}: {reason}")]
    Tls {
        /// The address of the listener.
        address: String,
        /// The reason.
        reason: TlsError,
    },
    /// The routes have too many nodes: copies of keys and lists of servers multiply.
    #[error("the routes have more than {} nodes", Maker::NODES)]
    TooLarge,
    /// A hash cannot be made over these children.
    #[error("hash over {over}: {source}")]
    Hash {
        /// The children, for people.
        over: String,
        /// The reason.
        source: DistributionError,
    },
    /// A `by_operation` names neither a command of the protocol nor a class.
    #[error("`{0}` is no operation of this protocol")]
    Operation(String),
    /// This program does not speak this protocol.
    #[error("this program does not speak `{0}`")]
    Protocol(&'static str),
    /// A pool is replicated, but its protocol has no rules for copies.
    #[error("pool {pool} cannot be replicated: {protocol} has no copies")]
    NoCopies {
        /// The name of the pool.
        pool: String,
        /// The name of the protocol.
        protocol: &'static str,
    },
    /// Some servers of a pool are copies of a fleet, and others are not, or are those of another pool.
    #[error(
        "pool {pool} mixes copies of a fleet with other servers ({} and {}): write two pools",
        servers[0],
        servers[1]
    )]
    HalfInFleet {
        /// The name of the pool.
        pool: String,
        /// Two servers that do not go together.
        servers: [String; 2],
    },
    /// A route knows the commands of memcached alone.
    #[error("`{route}` serves memcached alone, and the listener speaks {protocol}")]
    Memcached {
        /// The name of the route.
        route: &'static str,
        /// The listener's protocol.
        protocol: &'static str,
    },
    /// A route keeps replies of a protocol that has none to keep.
    #[error("`near` keeps no replies of {0}")]
    NotKept(&'static str),
    /// A route leads to the embedded store, which does not speak the listener's protocol.
    #[error("the embedded store does not speak {0}")]
    NotEmbedded(&'static str),
    /// A listener and a pool that it leads to have different protocols.
    #[error("a route of a listener that speaks {listener} leads to pool {pool}, which speaks {other}")]
    TwoProtocols {
        /// The listener's protocol.
        listener: &'static str,
        /// The name of the pool.
        pool: String,
        /// The pool's protocol.
        other: &'static str,
    },
}

/// Makes the trees of one configuration, one for each worker. The trees share large parts that never change.
pub struct Compiler<'a> {
    config: &'a Config,
    /// The members of each pool, whatever their source.
    pools: Pools<'a>,
    /// The departed copies of each pool.
    departed: Pools<'a>,
    /// The distributions, in the order in which trees ask for them. `None`: the children are chosen at
    /// random.
    distributions: Vec<Option<Arc<Distribution>>>,
    protocols: Protocols,
    version: Arc<str>,
    host_id: u64,
    /// Where failed deletes are kept. `None`: their clients get the errors.
    spool: Option<Arc<Spool>>,
    /// The owners of the leases' tokens that clients hold.
    leases: Arc<LeaseTable>,
    /// Where samples of requests go, and where slow requests do.
    samples: Arc<Samples>,
    slow_requests: Arc<SlowRequests>,
    /// Where replies are kept, and by which rules. `None`: nowhere.
    near: Option<(Arc<Near>, Rules)>,
    /// The number of trees that were made.
    trees: u64,
}

/// A tree, and the warnings that came up while it was made.
pub struct Compiled {
    /// The tree of one worker.
    pub tree: Tree,
    /// Warnings for the operator.
    pub warnings: Vec<String>,
}

impl<'a> Compiler<'a> {
    /// Makes every server a member. `servers` has the servers of each pool.
    ///
    /// # Errors
    /// A server's address cannot be parsed.
    pub fn new(
        config: &'a Config,
        servers: &BTreeMap<String, Vec<Server>>,
        registry: &mut Registry,
        protocols: Protocols,
        version: &str,
        host_id: u64,
    ) -> Result<Self, CompileError> {
        Ok(Self {
            config,
            pools: members(config, servers, registry, protocols)?,
            departed: HashMap::new(),
            distributions: Vec::new(),
            protocols,
            version: version.into(),
            host_id,
            spool: None,
            leases: Arc::default(),
            samples: Arc::default(),
            slow_requests: Arc::default(),
            near: None,
            trees: 0,
        })
    }

    /// Keeps failed deletes there, of routes that say so.
    pub fn keep_deletes(&mut self, spool: Option<Arc<Spool>>) {
        self.spool = spool;
    }

    /// Puts samples of requests there, while somebody watches.
    pub fn put_samples(&mut self, samples: &Arc<Samples>) {
        self.samples = Arc::clone(samples);
    }

    /// Keeps slow requests there, if the configuration says which they are.
    pub fn keep_slow(&mut self, slow_requests: &Arc<SlowRequests>) {
        self.slow_requests = Arc::clone(slow_requests);
    }

    /// Remembers leases there, so that they outlive this configuration.
    pub fn remember_leases(&mut self, leases: &Arc<LeaseTable>) {
        self.leases = Arc::clone(leases);
    }

    /// Keeps replies there, by these rules.
    pub fn keep_replies(&mut self, near: Option<(Arc<Near>, Rules)>) {
        self.near = near;
    }

    /// Keeps departed copies as members for a while, although the configuration does not name them any more.
    ///
    /// # Errors
    /// As for [`Compiler::new`].
    pub fn keep(
        &mut self,
        departed: &BTreeMap<String, Vec<Server>>,
        registry: &mut Registry,
    ) -> Result<(), CompileError> {
        self.departed = members(self.config, departed, registry, self.protocols)?;
        // A server that is named again in another way has one identity, and of that there is one copy.
        for (pool, departed) in &mut self.departed {
            let named = self.pools.get(pool).map_or(&[][..], Vec::as_slice);
            departed.retain(|member| !named.iter().any(|other| other.identity == member.identity));
        }
        Ok(())
    }

    /// Makes one more tree. `listeners` has the addresses of the listeners by number. A listener whose
    /// address the configuration does not name any more answers every request with an error.
    ///
    /// # Errors
    /// See [`CompileError`]; the first tree finds them all.
    pub fn tree(&mut self, registry: &mut Registry, listeners: &[String]) -> Result<Compiled, CompileError> {
        let protocols = self.protocols;
        self.trees += 1;
        let mut maker = Maker {
            compiler: self,
            registry,
            protocol: protocols.default().protocol,
            nodes: Vec::new(),
            named: HashMap::new(),
            copied: HashMap::new(),
            parts: Arc::new([]),
            prefix: KeptPrefix::default(),
            spooled: HashMap::new(),
            stateful: Vec::new(),
            spools: None,
            depth: 0,
            hashes: 0,
            warnings: Vec::new(),
        };
        let mut roots = Vec::with_capacity(listeners.len());
        for (number, address) in (0..).zip(listeners) {
            roots.push(maker.root(number, address)?);
        }
        let (nodes, warnings, spooled, stateful) =
            (maker.nodes, maker.warnings, maker.spooled, maker.stateful);
        let numbers = nodes
            .iter()
            .filter_map(|node| match node {
                Node::Leaf(Leaf::Member(member)) => Some(member.id),
                _ => None,
            })
            .collect();
        let tree = Tree {
            has_fleet_pool: Maker::has_fleet_pool(&nodes),
            spool: self.spool.clone(),
            near: self.near.clone(),
            times: self.config.slow_requests.is_some(),
            spooled,
            stateful,
            declared: declared(self.config),
            nodes,
            roots,
            numbers,
            version: Arc::clone(&self.version),
        };
        Ok(Compiled { tree, warnings })
    }
}

/// The commands that a configuration declares.
fn declared(config: &Config) -> DeclaredCommands {
    let commands = config.commands.iter().map(|(name, command)| {
        let &DeclaredCommand { arity, keys, class } = command;
        (
            name.clone().into_bytes(),
            CommandDeclaration { arity, keys, class },
        )
    });
    commands.collect()
}

fn spoken(protocols: Protocols, protocol: Protocol) -> Result<ProtocolSlot, CompileError> {
    protocols.of(protocol.0).ok_or(CompileError::Protocol(protocol.0))
}

type Pools<'a> = HashMap<&'a str, Vec<Arc<Member>>>;

fn members<'a>(
    config: &'a Config,
    servers: &BTreeMap<String, Vec<Server>>,
    registry: &mut Registry,
    protocols: Protocols,
) -> Result<Pools<'a>, CompileError> {
    let mut pools = HashMap::new();
    for (name, pool) in &config.pools {
        let listed = servers.get(name).map_or(&[][..], Vec::as_slice);
        let protocol = spoken(protocols, pool.protocol)?.protocol;
        // Where sessions stay at a server until they can leave it, one that is about to end stays a member,
        // and gets nothing new. Elsewhere it is none any more, and what is under way there ends by itself.
        // Such a pool asks its servers itself whether they serve: the probe of a pod may just have been slow.
        let is_left = |server: &Server| server.pod.as_ref().is_some_and(|pod| pod.ends || pod.is_away);
        let members: Result<Vec<_>, _> = listed
            .iter()
            .filter(|server| pool.one_writer.is_some() || !is_left(server))
            .map(|server| registry.member(name, pool, server, protocol))
            .collect();
        pools.insert(name.as_str(), members?);
    }
    Ok(pools)
}
