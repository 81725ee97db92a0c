//! From a configuration's routes to a tree.
//!
//! `maker` turns each kind of route into nodes; `selectors` are the routes that look at a command or a key's letters,
//! `hashing` those that hash it; `survey` looks at nodes that are made.

mod hashing;
mod maker;
mod root;
mod selectors;
mod survey;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use proxima_wire::hash::{Distribution, DistributionError};

use self::maker::Maker;
use super::tree::{Leaf, Node, Tree};
use crate::{
    config::schema::{Config, Protocol, Route, Server},
    dialect::{Dialects, Spoken},
    members::{AddressError, Member, Registry},
};

/// A configuration cannot become a tree.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error("there is no route and no pool called `{0}`")]
    Unknown(String),
    #[error(
        "routes are nested more than {} deep (do they name each other in a circle?)",
        Route::DEPTH
    )]
    TooDeep,
    #[error("hash over {over}: {source}")]
    Hash { over: String, source: DistributionError },
    #[error("`{0}` is no operation of this protocol")]
    Operation(String),
    #[error("this program does not speak `{0}`")]
    Protocol(&'static str),
    #[error("pool {pool} cannot be replicated: {protocol} has no copies")]
    NoCopies { pool: String, protocol: &'static str },
    #[error("the embedded store does not speak {0}")]
    NotEmbedded(&'static str),
    #[error("a route of a listener that speaks {listener} leads to pool {pool}, which speaks {other}")]
    TwoProtocols {
        listener: &'static str,
        pool: String,
        other: &'static str,
    },
}

/// Makes trees of one configuration: one for each worker, sharing what is large and never changes.
pub struct Compiler<'a> {
    config: &'a Config,
    /// The servers of each pool, whatever their source.
    pools: Pools<'a>,
    /// Copies of each pool that are named no more.
    departed: Pools<'a>,
    /// In the order in which trees ask for them; none: by chance.
    distributions: Vec<Option<Arc<Distribution>>>,
    dialects: Dialects,
    version: Arc<str>,
    host_id: u64,
}

/// What is known after the first tree.
pub struct Compiled {
    pub tree: Tree,
    /// What an operator should hear.
    pub warnings: Vec<String>,
}

impl<'a> Compiler<'a> {
    /// Makes every server a member. `servers` are those of each pool.
    ///
    /// # Errors
    /// A server's address is none.
    pub fn new(
        config: &'a Config,
        servers: &BTreeMap<String, Vec<Server>>,
        registry: &mut Registry,
        dialects: Dialects,
        version: &str,
        host_id: u64,
    ) -> Result<Self, CompileError> {
        Ok(Self {
            config,
            pools: members(config, servers, registry, dialects)?,
            departed: HashMap::new(),
            distributions: Vec::new(),
            dialects,
            version: version.into(),
            host_id,
        })
    }

    /// These copies are named no more, and are to stay members for a while.
    ///
    /// # Errors
    /// As for [`Compiler::new`].
    pub fn keep(
        &mut self,
        departed: &BTreeMap<String, Vec<Server>>,
        registry: &mut Registry,
    ) -> Result<(), CompileError> {
        self.departed = members(self.config, departed, registry, self.dialects)?;
        Ok(())
    }

    /// One more tree. `listeners` are their addresses by number; a number whose address the configuration does not name
    /// any more leads to an error.
    ///
    /// # Errors
    /// See [`CompileError`]; the first tree finds them all.
    pub fn tree(&mut self, registry: &mut Registry, listeners: &[String]) -> Result<Compiled, CompileError> {
        let dialects = self.dialects;
        let mut maker = Maker {
            compiler: self,
            registry,
            dialect: dialects.default().dialect,
            nodes: Vec::new(),
            named: HashMap::new(),
            copied: HashMap::new(),
            depth: 0,
            hashes: 0,
            warnings: Vec::new(),
        };
        let mut roots = Vec::with_capacity(listeners.len());
        for address in listeners {
            roots.push(maker.root(address)?);
        }
        let (nodes, warnings) = (maker.nodes, maker.warnings);
        let numbers = nodes
            .iter()
            .filter_map(|node| match node {
                Node::Leaf(Leaf::Member(member)) => Some(member.id),
                _ => None,
            })
            .collect();
        let tree = Tree {
            nodes,
            roots,
            numbers,
            version: Arc::clone(&self.version),
        };
        Ok(Compiled { tree, warnings })
    }
}

fn spoken(dialects: Dialects, protocol: Protocol) -> Result<Spoken, CompileError> {
    dialects.of(protocol.0).ok_or(CompileError::Protocol(protocol.0))
}

type Pools<'a> = HashMap<&'a str, Vec<Arc<Member>>>;

fn members<'a>(
    config: &'a Config,
    servers: &BTreeMap<String, Vec<Server>>,
    registry: &mut Registry,
    dialects: Dialects,
) -> Result<Pools<'a>, CompileError> {
    let mut pools = HashMap::new();
    for (name, pool) in &config.pools {
        let listed = servers.get(name).map_or(&[][..], Vec::as_slice);
        let dialect = spoken(dialects, pool.protocol)?.dialect;
        let members: Result<Vec<_>, _> = listed
            .iter()
            .map(|server| registry.member(name, pool, server, dialect))
            .collect();
        pools.insert(name.as_str(), members?);
    }
    Ok(pools)
}
