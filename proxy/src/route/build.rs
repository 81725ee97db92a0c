//! From a configuration's routes to a tree.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write,
    sync::Arc,
};

use proxima_wire::{
    hash::{Distribution, DistributionError, Node as HashNode, twemproxy_order},
    message::Class,
};

use super::{
    handle::{
        ByKeyPattern, ByOperation, ByPrefix, ByRoutingPrefix, Failover, FaultRoute, HashRoute, HostId, Log,
        MissFailover, ModifyKey, ModifyTtl, Nearest, RandomChild, RoundRobin, Tokens, gather_name,
    },
    tree::{Attempt, Choose, Leaf, Node, NodeId, Tree, Wait, Wrap},
};
use crate::{
    config::{
        distribution,
        schema::{Algorithm, Children, Config, Hash, Pool, Route, Server, Source},
    },
    dialect::Dialect,
    members::{AddressError, Distance, Member, Registry},
};

/// A configuration cannot become a tree.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
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
pub struct Build<'a> {
    config: &'a Config,
    /// The servers of each pool, whatever their source.
    pools: HashMap<&'a str, Vec<Arc<Member>>>,
    /// In the order in which trees ask for them; none: by chance.
    distributions: Vec<Option<Arc<Distribution>>>,
    dialect: &'static dyn Dialect,
    version: Arc<str>,
    host_id: u64,
}

/// What is known after the first tree.
pub struct Built {
    pub tree: Tree,
    /// What an operator should hear.
    pub warnings: Vec<String>,
}

impl<'a> Build<'a> {
    /// Looks up every server. `servers` are the lists of pools that have a source outside the configuration.
    ///
    /// # Errors
    /// A server's address is none, or its name does not resolve.
    pub fn new(
        config: &'a Config,
        servers: &BTreeMap<String, Vec<Server>>,
        registry: &mut Registry,
        dialect: &'static dyn Dialect,
        version: &str,
        host_id: u64,
    ) -> Result<Self, BuildError> {
        let mut pools = HashMap::new();
        for (name, pool) in &config.pools {
            let listed = servers.get(name).map_or(&[][..], Vec::as_slice);
            let members: Result<Vec<_>, _> = listed
                .iter()
                .map(|server| registry.member(name, pool, server, dialect))
                .collect();
            pools.insert(name.as_str(), members?);
        }
        Ok(Self {
            config,
            pools,
            distributions: Vec::new(),
            dialect,
            version: version.into(),
            host_id,
        })
    }

    /// One more tree. `listeners` are their addresses by number; a number whose address the configuration does not name
    /// any more leads to an error.
    ///
    /// # Errors
    /// See [`BuildError`]; the first tree finds them all.
    pub fn tree(&mut self, registry: &mut Registry, listeners: &[String]) -> Result<Built, BuildError> {
        let mut maker = Maker {
            build: self,
            registry,
            nodes: Vec::new(),
            named: HashMap::new(),
            depth: 0,
            hashes: 0,
            warnings: Vec::new(),
        };
        let config = maker.build.config;
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
        for &root in &roots {
            let mut leaves = Vec::new();
            maker.leaves(root, &mut leaves);
            stores.push(leaves.iter().any(|&leaf| maker.member_at(leaf).is_none()));
            reach.push(
                leaves
                    .iter()
                    .filter_map(|&leaf| maker.member_at(leaf).cloned())
                    .collect(),
            );
            broadcasts.push(maker.push(Node::Gather {
                name: "everywhere",
                wait: Wait::All,
                children: leaves,
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
            numbers,
            dialect: self.dialect,
            version: Arc::clone(&self.version),
        };
        Ok(Built { tree, warnings })
    }
}

struct Maker<'m, 'a> {
    build: &'m mut Build<'a>,
    registry: &'m mut Registry,
    nodes: Vec<Node>,
    /// Named routes are made once and shared.
    named: HashMap<&'a str, NodeId>,
    depth: usize,
    /// How many distributions this tree has asked for: later trees take them in the same order.
    hashes: usize,
    warnings: Vec<String>,
}

impl<'a> Maker<'_, 'a> {
    fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }

    fn choose(&mut self, handle: impl Choose + 'static, children: Vec<NodeId>) -> NodeId {
        self.push(Node::Choose {
            handle: Box::new(handle),
            children,
        })
    }

    fn attempt(&mut self, handle: impl Attempt + 'static, children: Vec<NodeId>) -> NodeId {
        match children[..] {
            [] => self.push(Node::Leaf(Leaf::Null)),
            [only] => only,
            _ => self.push(Node::Attempt {
                handle: Box::new(handle),
                children,
            }),
        }
    }

    fn gather(&mut self, wait: Wait, children: &'a Children) -> Result<NodeId, BuildError> {
        let children = self.children(children)?;
        Ok(match children[..] {
            [] => self.push(Node::Leaf(Leaf::Null)),
            // With one child all rules are one; but all_async never waits.
            [only] if wait != Wait::None => only,
            _ => self.push(Node::Gather {
                name: gather_name(wait),
                wait,
                children,
            }),
        })
    }

    fn wrap(&mut self, handle: impl Wrap + 'static, child: NodeId) -> NodeId {
        self.push(Node::Wrap {
            handle: Box::new(handle),
            child,
        })
    }

    fn node(&mut self, route: &'a Route) -> Result<NodeId, BuildError> {
        self.depth += 1;
        if self.depth > Route::DEPTH {
            return Err(BuildError::TooDeep);
        }
        let made = self.make(route);
        self.depth -= 1;
        made
    }

    fn make(&mut self, route: &'a Route) -> Result<NodeId, BuildError> {
        Ok(match route {
            Route::Named(name) => self.by_name(name)?,
            Route::Pool(name) => self.pool(name)?,
            Route::Member(address) => self.single(address)?,
            Route::Embedded => self.push(Node::Leaf(Leaf::Embedded)),
            Route::Null => self.push(Node::Leaf(Leaf::Null)),
            Route::Error(text) => self.push(Node::Leaf(Leaf::Error(text.clone()))),
            Route::Hash { children, hash } => {
                let config = self.build.config;
                let of_pool = match children {
                    Children::Pool(name) => config.pools.get(name).map(|pool| &pool.hash),
                    Children::List(_) => None,
                };
                let spec = hash
                    .as_ref()
                    .or(of_pool)
                    .cloned()
                    .unwrap_or_else(|| Hash::of(Algorithm::Ch3));
                let nodes = self.children(children)?;
                self.hash(spec, nodes, || format!("{children:?}"))?
            }
            Route::Nearest(children) => {
                let mut nodes = self.children(children)?;
                nodes.sort_by_key(|&node| self.distance(node));
                self.warn_if_none_is_local(children, &nodes);
                match nodes[..] {
                    [only] => only,
                    _ => self.choose(Nearest, nodes),
                }
            }
            Route::ByOperation { operations, default } => {
                self.by_operation(operations, default.as_deref())?
            }
            Route::ByPrefix { prefixes, default } => {
                let mut sorted: Vec<_> = prefixes.iter().collect();
                sorted.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
                let mut nodes = Vec::new();
                let mut table = Vec::new();
                for (prefix, route) in sorted {
                    table.push((prefix.as_bytes().to_vec(), nodes.len()));
                    nodes.push(self.node(route)?);
                }
                nodes.push(self.default(default.as_deref(), "no route for this key's prefix")?);
                self.choose(
                    ByPrefix {
                        prefixes: table,
                        default: nodes.len() - 1,
                    },
                    nodes,
                )
            }
            Route::ByKeyPattern { patterns, default } => {
                let mut nodes = Vec::new();
                for (_, route) in patterns {
                    nodes.push(self.node(route)?);
                }
                nodes.push(self.default(default.as_deref(), "no route for this key")?);
                let patterns = patterns
                    .iter()
                    .map(|(pattern, _)| pattern.as_bytes().to_vec())
                    .collect();
                self.choose(ByKeyPattern { patterns }, nodes)
            }
            Route::Random(children) => {
                let nodes = self.children(children)?;
                self.one_of(RandomChild, nodes)
            }
            Route::RoundRobin(children) => {
                let nodes = self.children(children)?;
                self.one_of(RoundRobin::default(), nodes)
            }
            Route::HostId { children, salt } => {
                let nodes = self.children(children)?;
                let id = self.build.host_id
                    ^ u64::from(proxima_wire::hash::KeyHash::Fnv1a32.hash(salt.as_bytes()));
                let id = if salt.is_empty() { self.build.host_id } else { id };
                self.one_of(HostId { id }, nodes)
            }
            Route::AllSync(children) => self.gather(Wait::All, children)?,
            Route::AllMajority(children) => self.gather(Wait::Majority, children)?,
            Route::AllFastest(children) => self.gather(Wait::Fastest, children)?,
            Route::AllInitial(children) => self.gather(Wait::Initial, children)?,
            Route::AllAsync(children) => self.gather(Wait::None, children)?,
            Route::Failover {
                children,
                errors,
                limit,
            } => {
                let nodes = self.children(children)?;
                let limit = limit.clone().map(Tokens::new);
                self.attempt(
                    Failover {
                        errors: errors.clone(),
                        limit,
                        ttl: None,
                    },
                    nodes,
                )
            }
            Route::FailoverWithTtl {
                normal,
                failover,
                ttl,
                errors,
            } => {
                let mut nodes = vec![self.node(normal)?];
                nodes.extend(self.children(failover)?);
                self.attempt(
                    Failover {
                        errors: errors.clone(),
                        limit: None,
                        ttl: Some(*ttl),
                    },
                    nodes,
                )
            }
            Route::MissFailover {
                children,
                best_on_error,
            } => {
                let nodes = self.children(children)?;
                self.attempt(
                    MissFailover {
                        best_on_error: *best_on_error,
                    },
                    nodes,
                )
            }
            Route::ModifyKey {
                child,
                ensure_prefix,
                replace_prefix,
                in_place,
                suffix,
            } => {
                let child = self.node(child)?;
                let handle = ModifyKey {
                    ensure_prefix: ensure_prefix.clone().into(),
                    replace_prefix: replace_prefix.clone().map(Into::into),
                    in_place: *in_place,
                    suffix: suffix.clone().into(),
                };
                self.wrap(handle, child)
            }
            Route::ModifyTtl { child, ttl, action } => {
                let child = self.node(child)?;
                self.wrap(
                    ModifyTtl {
                        ttl: *ttl,
                        action: *action,
                    },
                    child,
                )
            }
            Route::Log(child) => {
                let child = self.node(child)?;
                self.wrap(Log, child)
            }
            Route::Fault { child, fault } => {
                let child = self.node(child)?;
                self.wrap(FaultRoute(fault.clone()), child)
            }
            Route::ByRoutingPrefix { routes, default } => self.by_routing_prefix(routes, default)?,
        })
    }

    fn by_name(&mut self, name: &'a str) -> Result<NodeId, BuildError> {
        if let Some(&node) = self.named.get(name) {
            return Ok(node);
        }
        let config = self.build.config;
        let node = match config.routes.get(name) {
            Some(route) => self.node(route)?,
            None => self.pool(name)?,
        };
        self.named.insert(name, node);
        Ok(node)
    }

    /// One member of a pool, by the pool's own hash.
    fn pool(&mut self, name: &'a str) -> Result<NodeId, BuildError> {
        let config = self.build.config;
        let spec = config
            .pools
            .get(name)
            .ok_or_else(|| BuildError::Unknown(name.into()))?
            .hash
            .clone();
        let nodes = self.members(name)?;
        self.hash(spec, nodes, || format!("pool {name}"))
    }

    fn members(&mut self, pool: &str) -> Result<Vec<NodeId>, BuildError> {
        let members = self
            .build
            .pools
            .get(pool)
            .cloned()
            .ok_or_else(|| BuildError::Unknown(pool.into()))?;
        let source = self.build.config.pools.get(pool).map(|pool| &pool.source);
        if members.is_empty() && matches!(source, Some(Source::Dns(_))) {
            // Not the miss of an empty list: what is written to it is lost.
            let text = format!("pool {pool} has no servers: DNS has not named any yet");
            return Ok(vec![self.push(Node::Leaf(Leaf::Error(text)))]);
        }
        Ok(members
            .into_iter()
            .map(|member| self.push(Node::Leaf(Leaf::Member(member))))
            .collect())
    }

    /// `pool/name`, or a server that stands in no pool.
    fn single(&mut self, text: &str) -> Result<NodeId, BuildError> {
        if let Some((pool, name)) = text.split_once('/')
            && let Some(members) = self.build.pools.get(pool)
        {
            let found = members
                .iter()
                .find(|member| member.name == name || member.address == name)
                .cloned();
            let member = found.ok_or_else(|| BuildError::Unknown(text.into()))?;
            return Ok(self.push(Node::Leaf(Leaf::Member(member))));
        }
        let server = Server {
            address: text.into(),
            name: None,
            weight: 1.0,
            zone: None,
        };
        let spec = Pool::of(vec![server.clone()]);
        let member = self.registry.member(text, &spec, &server, self.build.dialect)?;
        Ok(self.push(Node::Leaf(Leaf::Member(member))))
    }

    fn children(&mut self, children: &'a Children) -> Result<Vec<NodeId>, BuildError> {
        match children {
            Children::Pool(name) => self.members(name),
            Children::List(routes) => routes.iter().map(|route| self.node(route)).collect(),
        }
    }

    fn one_of(&mut self, handle: impl Choose + 'static, nodes: Vec<NodeId>) -> NodeId {
        match nodes[..] {
            [] => self.push(Node::Leaf(Leaf::Null)),
            [only] => only,
            _ => self.choose(handle, nodes),
        }
    }

    fn default(&mut self, route: Option<&'a Route>, otherwise: &str) -> Result<NodeId, BuildError> {
        match route {
            Some(route) => self.node(route),
            None => Ok(self.push(Node::Leaf(Leaf::Error(otherwise.into())))),
        }
    }

    fn hash(
        &mut self,
        spec: Hash,
        mut nodes: Vec<NodeId>,
        over: impl Fn() -> String,
    ) -> Result<NodeId, BuildError> {
        match nodes[..] {
            [] => {
                let text = format!(
                    "HashRoute with empty children, name: {}",
                    over().trim_start_matches("pool ")
                );
                return Ok(self.push(Node::Leaf(Leaf::Error(text))));
            }
            [only] => return Ok(only),
            _ => {}
        }
        if matches!(
            spec.algorithm,
            Algorithm::Modula(_) | Algorithm::KetamaTwemproxy(_)
        ) {
            nodes.sort_by(|&a, &b| twemproxy_order(&self.name(a), &self.name(b)));
        }
        let number = self.hashes;
        self.hashes += 1;
        let distribution = match self.build.distributions.get(number) {
            Some(distribution) => distribution.clone(),
            None => {
                let made = self
                    .distribution(&spec, &nodes)
                    .map_err(|source| BuildError::Hash { over: over(), source })?;
                let made = made.map(Arc::new);
                self.build.distributions.push(made.clone());
                made
            }
        };
        Ok(match distribution {
            Some(distribution) => self.choose(HashRoute { distribution, spec }, nodes),
            None => self.choose(RandomChild, nodes),
        })
    }

    fn distribution(&self, spec: &Hash, nodes: &[NodeId]) -> Result<Option<Distribution>, DistributionError> {
        let names: Vec<String> = match &spec.tags {
            Some(tags) => tags.clone(),
            None => nodes.iter().map(|&node| self.name(node)).collect(),
        };
        let weight = |index: usize| match (&spec.weights, spec.algorithm) {
            // mcrouter: a weight that is not given is one half.
            (Some(weights), _) => weights.get(index).copied().unwrap_or(0.5),
            (None, _) => nodes
                .get(index)
                .and_then(|&node| self.member_at(node))
                .map_or(1.0, |member| member.weight),
        };
        let listed: Vec<HashNode<'_>> = names
            .iter()
            .enumerate()
            .map(|(index, name)| HashNode {
                name,
                weight: weight(index),
            })
            .collect();
        distribution(spec.algorithm, &listed)
    }

    fn by_operation(
        &mut self,
        operations: &'a BTreeMap<String, Route>,
        default: Option<&'a Route>,
    ) -> Result<NodeId, BuildError> {
        // Without a route: what a cache that has nothing answers, as mcrouter does.
        let mut nodes = vec![match default {
            Some(route) => self.node(route)?,
            None => self.push(Node::Leaf(Leaf::Null)),
        }];
        let mut table = Box::new([0; 256]);
        let mut named = Vec::new();
        for (name, route) in operations {
            nodes.push(self.node(route)?);
            let child = nodes.len() as u16 - 1;
            match (group(name), self.build.dialect.command(name)) {
                (Some(classes), _) => self.build.dialect.commands(&mut |command, class| {
                    if classes.contains(&class) {
                        table[usize::from(command)] = child;
                    }
                }),
                // Single commands are set last: they win over their group.
                (None, Some(command)) => named.push((command, child)),
                (None, None) => return Err(BuildError::Operation(name.clone())),
            }
        }
        for (command, child) in named {
            table[usize::from(command)] = child;
        }
        Ok(self.choose(ByOperation { table }, nodes))
    }

    fn by_routing_prefix(
        &mut self,
        routes: &'a BTreeMap<String, Route>,
        default: &str,
    ) -> Result<NodeId, BuildError> {
        let mut nodes = Vec::new();
        let mut prefixes = Vec::new();
        for (prefix, route) in routes {
            let plain = self.node(route)?;
            let strip = ModifyKey {
                ensure_prefix: Vec::new(),
                replace_prefix: Some(prefix.as_bytes().to_vec()),
                in_place: false,
                suffix: Vec::new(),
            };
            nodes.push(plain);
            nodes.push(self.wrap(strip, plain));
            prefixes.push(prefix.as_bytes().to_vec());
        }
        nodes.push(self.push(Node::Leaf(Leaf::Error("RootRoute: No rh found".into()))));
        let default = prefixes
            .iter()
            .position(|prefix| prefix == default.as_bytes())
            .ok_or_else(|| BuildError::Unknown(default.into()))?;
        Ok(self.choose(ByRoutingPrefix { prefixes, default }, nodes))
    }

    fn member_at(&self, node: NodeId) -> Option<&Arc<Member>> {
        match self.nodes.get(node.0 as usize) {
            Some(Node::Leaf(Leaf::Member(member))) => Some(member),
            _ => None,
        }
    }

    /// What consistent hashing knows a child by.
    fn name(&self, node: NodeId) -> String {
        match self.member_at(node) {
            Some(member) => member.name.clone(),
            None => {
                let mut name = String::from("child-");
                let _ = write!(name, "{}", node.0);
                name
            }
        }
    }

    fn leaves(&self, node: NodeId, found: &mut Vec<NodeId>) {
        let mut pending = vec![node];
        let mut members = Vec::new();
        let mut embedded = false;
        while let Some(node) = pending.pop() {
            match &self.nodes[node.0 as usize] {
                Node::Choose { children, .. }
                | Node::Gather { children, .. }
                | Node::Attempt { children, .. } => {
                    pending.extend(children);
                }
                Node::Wrap { child, .. } => pending.push(*child),
                Node::Leaf(Leaf::Member(member)) if !members.contains(&member.id) => {
                    members.push(member.id);
                    found.push(node);
                }
                Node::Leaf(Leaf::Embedded) if !embedded => {
                    embedded = true;
                    found.push(node);
                }
                Node::Leaf(_) => {}
            }
        }
    }

    /// How far the nearest leaf below is.
    fn distance(&self, node: NodeId) -> Distance {
        match &self.nodes[node.0 as usize] {
            Node::Leaf(Leaf::Member(member)) => member.distance,
            Node::Leaf(Leaf::Embedded) => Distance::Process,
            Node::Leaf(_) => Distance::Elsewhere,
            Node::Wrap { child, .. } => self.distance(*child),
            Node::Choose { children, .. }
            | Node::Gather { children, .. }
            | Node::Attempt { children, .. } => children
                .iter()
                .map(|&child| self.distance(child))
                .min()
                .unwrap_or(Distance::Elsewhere),
        }
    }

    fn warn_if_none_is_local(&mut self, children: &Children, nodes: &[NodeId]) {
        let member = nodes.first().filter(|&&node| self.member_at(node).is_some());
        let nearest = member.map(|&node| self.distance(node));
        if let (Children::Pool(pool), Some(Distance::Zone | Distance::Elsewhere)) = (children, nearest) {
            self.warnings.push(format!(
                "no server of pool `{pool}` is on this host, so `nearest` reads from afar; if one is, say which with \
                 --node-address or HOST_IP"
            ));
        }
    }
}

/// The words that stand for several commands.
fn group(name: &str) -> Option<&'static [Class]> {
    Some(match name {
        "read" => &[Class::Read],
        "write" => &[Class::Write],
        "delete" => &[Class::Delete],
        "arithmetic" => &[Class::Arithmetic],
        "touch" => &[Class::Touch],
        _ => return None,
    })
}
