//! From a configuration's routes to a tree.
//!
//! `maker` turns each kind of route into nodes; `selectors` are the routes that look at a command or a key's letters,
//! `hashing` those that hash it; `survey` looks at nodes that are made.

mod hashing;
mod maker;
mod selectors;
mod survey;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use proxima_wire::hash::{Distribution, DistributionError};

use self::maker::Maker;
use super::tree::{Leaf, Node, Tree, Wait};
use crate::{
    config::schema::{Config, Route, Server},
    dialect::Dialect,
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
}

/// Makes trees of one configuration: one for each worker, sharing what is large and never changes.
pub struct Compiler<'a> {
    config: &'a Config,
    /// The servers of each pool, whatever their source.
    pools: Pools<'a>,
    /// Copies of each pool that are named no more.
    absent: Pools<'a>,
    /// In the order in which trees ask for them; none: by chance.
    distributions: Vec<Option<Arc<Distribution>>>,
    dialect: &'static dyn Dialect,
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
        dialect: &'static dyn Dialect,
        version: &str,
        host_id: u64,
    ) -> Result<Self, CompileError> {
        Ok(Self {
            config,
            pools: members(config, servers, registry, dialect)?,
            absent: HashMap::new(),
            distributions: Vec::new(),
            dialect,
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
        absent: &BTreeMap<String, Vec<Server>>,
        registry: &mut Registry,
    ) -> Result<(), CompileError> {
        self.absent = members(self.config, absent, registry, self.dialect)?;
        Ok(())
    }

    /// One more tree. `listeners` are their addresses by number; a number whose address the configuration does not name
    /// any more leads to an error.
    ///
    /// # Errors
    /// See [`CompileError`]; the first tree finds them all.
    pub fn tree(&mut self, registry: &mut Registry, listeners: &[String]) -> Result<Compiled, CompileError> {
        let mut maker = Maker {
            compiler: self,
            registry,
            nodes: Vec::new(),
            named: HashMap::new(),
            copied: HashMap::new(),
            depth: 0,
            hashes: 0,
            warnings: Vec::new(),
        };
        let config = maker.compiler.config;
        let mut roots = Vec::with_capacity(listeners.len());
        for address in listeners {
            roots.push(
                match config
                    .listeners
                    .iter()
                    .find(|listener| listener.address == *address)
                {
                    Some(listener) => maker.node(&listener.route)?,
                    None => maker.push(Node::Leaf(Leaf::Error("this listener was removed".into()))),
                },
            );
        }
        let mut reach = Vec::new();
        let mut broadcasts = Vec::new();
        let mut stores = Vec::new();
        let mut plain = Vec::new();
        let mut fanouts = Vec::new();
        for &root in &roots {
            let mut leaves = Vec::new();
            maker.leaves(root, &mut leaves);
            stores.push(leaves.iter().any(|&leaf| maker.member_at(leaf).is_none()));
            plain.push(maker.is_plain(root));
            fanouts.push(maker.fanout(root));
            reach.push(
                leaves
                    .iter()
                    .filter_map(|&leaf| maker.member_at(leaf).cloned())
                    .collect(),
            );
            let children = maker.everywhere(root, &leaves)?;
            broadcasts.push(maker.push(Node::Gather {
                name: "everywhere",
                wait: Wait::All,
                children,
            }));
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
            reach,
            broadcasts,
            stores,
            plain,
            fanouts,
            numbers,
            dialect: self.dialect,
            version: Arc::clone(&self.version),
        };
        Ok(Compiled { tree, warnings })
    }
}

type Pools<'a> = HashMap<&'a str, Vec<Arc<Member>>>;

fn members<'a>(
    config: &'a Config,
    servers: &BTreeMap<String, Vec<Server>>,
    registry: &mut Registry,
    dialect: &'static dyn Dialect,
) -> Result<Pools<'a>, AddressError> {
    let mut pools = HashMap::new();
    for (name, pool) in &config.pools {
        let listed = servers.get(name).map_or(&[][..], Vec::as_slice);
        let members: Result<Vec<_>, _> = listed
            .iter()
            .map(|server| registry.member(name, pool, server, dialect))
            .collect();
        pools.insert(name.as_str(), members?);
    }
    Ok(pools)
}
