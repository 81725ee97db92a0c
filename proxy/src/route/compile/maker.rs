//! Turns one route after the other into nodes.

use std::{cell::RefCell, collections::HashMap, sync::Arc};

use super::{CompileError, Compiler};
use crate::{
    config::schema::{Algorithm, Children, Hash, Pool, Replicated, Route, Server, TtlAction},
    members::{Member, Registry},
    protocol::Protocol,
    route::{
        FleetPool, StatefulPool,
        handle::{
            After, Assigned, BareKey, BigValue, ByPart, Delay, Fail, Held, HostId, Log, MissFailover,
            ModifyKey, ModifyTtl, Nearest, Parts, RandomChild, Redirected, RoundRobin, SizeSplit, Total,
            gather_name,
        },
        tree::{Attempt, Choose, Copies, Leaf, Node, NodeId, Wait, Wrap},
    },
};

/// What tells a named route from every other one.
type NamedKey<'a> = (&'static str, &'a str, Arc<[Parts]>, KeptPrefix);

/// The routing prefix that servers get which keep it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct KeptPrefix {
    /// This prefix. `None`: the keys have none, or that which was asked for.
    pub(super) given: Option<Arc<str>>,
    /// The keys have the prefix that was asked for, which the routes do not see.
    pub(super) is_hidden: bool,
    /// The servers get that one.
    pub(super) is_asked: bool,
}

/// Makes the nodes of one tree.
pub(super) struct Maker<'m, 'a> {
    pub(super) compiler: &'m mut Compiler<'a>,
    pub(super) registry: &'m mut Registry,
    /// The protocol of the listener whose route is being made.
    pub(super) protocol: &'static dyn Protocol,
    pub(super) nodes: Vec<Node>,
    /// The named routes, by protocol, name, the parts of the key that they look at, and the routing prefix
    /// that servers get. Each is made once and shared.
    pub(super) named: HashMap<NamedKey<'a>, NodeId>,
    /// The replicated pools, which are made once, and shared.
    pub(super) copied: HashMap<&'a str, NodeId>,
    /// The parts of the key at which the routes being made look; empty: they look at the whole key.
    pub(super) parts: Arc<[Parts]>,
    /// The members whose failed deletes are kept, with the name of their pool in the spool.
    pub(super) spooled: HashMap<NodeId, Arc<str>>,
    /// The pools for which their protocol keeps a state.
    pub(super) stateful: Vec<StatefulPool>,
    /// The name for the members that are being made. `None`: their failed deletes are not kept.
    pub(super) spools: Option<Arc<str>>,
    /// The routing prefix that servers get which keep it.
    pub(super) prefix: KeptPrefix,
    pub(super) depth: usize,
    /// The number of distributions that this tree has asked for. Later trees take them in the same order.
    pub(super) hashes: usize,
    pub(super) warnings: Vec<String>,
}

impl<'a> Maker<'_, 'a> {
    /// The most nodes of a tree. No route has more than a thousand of its own beside its children.
    pub(super) const NODES: usize = 1 << 20;

    /// Does the tree have a pool of a fleet?
    pub(super) fn has_fleet_pool(nodes: &[Node]) -> bool {
        nodes
            .iter()
            .any(|node| matches!(node, Node::Copies(copies) if copies.fleet.is_some()))
    }

    pub(super) fn push(&mut self, node: Node) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        if let (Node::Leaf(Leaf::Member(_)), Some(name)) = (&node, &self.spools) {
            self.spooled.insert(id, Arc::clone(name));
        }
        self.nodes.push(node);
        id
    }

    pub(super) fn choose(&mut self, handle: impl Choose + 'static, children: Vec<NodeId>) -> NodeId {
        let choice: Box<dyn Choose> = Box::new(handle);
        let handle = match self.parts.is_empty() {
            true => choice,
            false => Box::new(ByPart {
                parts: Arc::clone(&self.parts),
                choice,
            }),
        };
        self.push(Node::Choose { handle, children })
    }

    pub(super) fn attempt(&mut self, handle: impl Attempt + 'static, children: Vec<NodeId>) -> NodeId {
        match children[..] {
            [] | [_] => self.first_of(children),
            _ => self.push(Node::Attempt {
                handle: Box::new(handle),
                children,
            }),
        }
    }

    /// The first of these children, or a null route without any.
    pub(super) fn first_of(&mut self, children: Vec<NodeId>) -> NodeId {
        let first = children.into_iter().next();
        first.unwrap_or_else(|| self.push(Node::Leaf(Leaf::Null)))
    }

    pub(super) fn gather(&mut self, wait: Wait, children: &'a Children) -> Result<NodeId, CompileError> {
        let config = self.compiler.config;
        if let (Wait::All, Children::Pool(name)) = (wait, children)
            && let Some(replicated) = config.pools.get(name).and_then(|pool| pool.replicated.as_ref())
        {
            return self.copies(name, replicated);
        }
        let children = self.children(children)?;
        Ok(match children[..] {
            [] => self.push(Node::Leaf(Leaf::Null)),
            // With one child all rules are the same, except that all_async never waits.
            [only] if wait != Wait::None => only,
            _ => self.push(Node::Gather {
                name: gather_name(wait),
                wait,
                children,
            }),
        })
    }

    pub(super) fn wrap(&mut self, handle: impl Wrap + 'static, child: NodeId) -> NodeId {
        self.push(Node::Wrap {
            handle: Box::new(handle),
            child,
        })
    }

    pub(super) fn node(&mut self, route: &'a Route) -> Result<NodeId, CompileError> {
        if self.nodes.len() > Self::NODES {
            return Err(CompileError::TooLarge);
        }
        self.depth += 1;
        if self.depth > Route::DEPTH {
            return Err(CompileError::TooDeep);
        }
        let made = self.make(route);
        self.depth -= 1;
        made
    }

    // This function is longer than 80 lines: it is one `match` with one arm for each kind of route.
    pub(super) fn make(&mut self, route: &'a Route) -> Result<NodeId, CompileError> {
        Ok(match route {
            Route::Named(name) => self.by_name(name)?,
            Route::Pool(name) => self.pool(name)?,
            Route::Member(address) => self.single(address)?,
            Route::Embedded if self.protocol.embedded().is_none() => {
                return Err(CompileError::NotEmbedded(self.protocol.name()));
            }
            Route::Embedded => {
                let leaf = self.push(Node::Leaf(Leaf::Embedded));
                self.bare(leaf)
            }
            Route::Null => self.push(Node::Leaf(Leaf::Null)),
            Route::Discard => self.push(Node::Leaf(Leaf::Discard)),
            Route::Error(error) => self.push(Node::Leaf(Leaf::Error(error.clone()))),
            Route::Hash { children, hash } => {
                let config = self.compiler.config;
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
                    _ => self.choose(Nearest::default(), nodes),
                }
            }
            Route::ByOperation { operations, default } => {
                self.by_operation(operations, default.as_deref())?
            }
            Route::ByPrefix { prefixes, default } => self.by_prefix(prefixes, default.as_deref())?,
            Route::ByLogin { of, names, default } => self.by_login(*of, names, default.as_deref())?,
            Route::ByKeyPattern { patterns, default } => self.by_key_pattern(patterns, default.as_deref())?,
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
                let id = self.host_number(salt);
                self.one_of(HostId { id }, nodes)
            }
            Route::ByClient { children, offset } => self.by_client(children, *offset)?,
            Route::Latest {
                children,
                count,
                weights,
                salt,
                per_worker,
                rules,
            } => {
                let seed = self.host_number(salt) ^ self.worker_number(*per_worker);
                self.latest(children, weights.as_deref(), *count, seed, rules)?
            }
            Route::AllSync(children) => self.gather(Wait::All, children)?,
            Route::AllMajority(children) => self.gather(Wait::Majority, children)?,
            Route::AllFastest(children) => self.gather(Wait::Fastest, children)?,
            Route::AllInitial(children) => self.gather(Wait::Initial, children)?,
            Route::AllAsync(children) => self.gather(Wait::None, children)?,
            Route::Failover { children, rules } => {
                let nodes = self.children(children)?;
                self.failover(nodes, rules)?
            }
            Route::FailoverWithTtl {
                normal,
                failover,
                ttl,
                rules,
            } => {
                let mut nodes = vec![self.node(normal)?];
                for stand_in in self.children(failover)? {
                    let bound = ModifyTtl {
                        ttl: i64::from(*ttl),
                        action: TtlAction::Min,
                    };
                    nodes.push(self.wrap(bound, stand_in));
                }
                self.failover(nodes, rules)?
            }
            Route::MissFailover {
                children,
                best_on_error,
            } => {
                let nodes = self.children(children)?;
                self.attempt(
                    MissFailover {
                        best_on_error: *best_on_error,
                        touch: self.protocol.command("touch"),
                    },
                    nodes,
                )
            }
            Route::ModifyKey {
                child,
                routing_prefix,
                ensure_prefix,
                replace_prefix,
                in_place,
                suffix,
            } => {
                let child = match routing_prefix.as_deref() {
                    None => self.node(child)?,
                    Some("") => self.with_prefix(None, child)?,
                    prefix => self.with_prefix(prefix, child)?,
                };
                let handle = ModifyKey {
                    ensure_prefix: ensure_prefix.clone().into(),
                    replace_prefix: replace_prefix.clone().map(Into::into),
                    in_place: *in_place,
                    suffix: suffix.clone().into(),
                };
                self.wrap(handle, child)
            }
            Route::Migrate {
                from,
                to,
                start,
                interval,
            } => self.migrate(from, to, *start, *interval)?,
            Route::Near(near) => self.near(near)?,
            Route::ShardSplit { child, splits } => self.shard_split(child, splits)?,
            Route::KeySplit {
                child,
                copies,
                all_sync,
                first_hit,
            } => self.key_split(child, *copies, *all_sync, *first_hit)?,
            Route::Shadow { child, shadows } => self.shadow(child, shadows)?,
            Route::RateLimit {
                child,
                rates,
                fallback,
            } => self.rate_limit(child, rates, fallback.as_deref())?,
            Route::OutstandingLimit { child, most, queue } => {
                self.outstanding_limit(child, *most, queue.as_ref())?
            }
            Route::WarmUp { cold, warm, ttl } => self.warm_up(cold, warm, *ttl)?,
            Route::SlowWarmUp {
                child,
                failover,
                settings,
            } => self.slow_warm_up(child, failover, *settings)?,
            Route::Staging { warm, staging } => self.staging(warm, staging)?,
            Route::L1L2Cache { l1, l2, ttl, misses } => self.l1_l2_cache(l1, l2, *ttl, *misses)?,
            &Route::SizeSplit {
                ref l1,
                ref l2,
                threshold,
                ttl_threshold,
                failure_ttl,
                both,
                retries,
                hides_server,
            } => {
                let handle = SizeSplit {
                    threshold,
                    ttl_threshold,
                    failure_ttl,
                    both,
                    retries,
                    hides_server,
                };
                self.size_split(l1, l2, handle)?
            }
            &Route::BigValue {
                ref child,
                threshold,
                batch,
                hides_flag,
            } => {
                let handle = BigValue {
                    threshold,
                    batch,
                    hides_flag,
                };
                self.big_value(child, handle)?
            }
            Route::ByKey {
                keys,
                listed,
                default,
            } => self.by_key(keys, listed, default)?,
            Route::KeyPart {
                child,
                parts,
                delimiter,
            } => {
                let (count, delimiter) = (*parts, *delimiter);
                self.key_part(child, Parts { count, delimiter })?
            }
            Route::HashStop { child, prefixes } => self.hash_stop(child, prefixes)?,
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
                let mut node = self.node(child)?;
                if fault.error_rate > 0.0 {
                    node = self.wrap(Fail(fault.error_rate), node);
                }
                // The delays are around the errors, so that requests that will fail are held as well.
                if !fault.delay.is_zero() {
                    node = self.wrap(Delay(fault.delay), node);
                }
                if !fault.delay_after.is_zero() {
                    node = self.wrap(After(fault.delay_after), node);
                }
                if !fault.total.is_empty() {
                    let shares = fault.total.clone();
                    node = self.wrap(Total { shares }, node);
                }
                node
            }
            Route::Spool { child, name } => {
                let outer = self.spools.replace(name.as_str().into());
                let node = self.node(child);
                self.spools = outer;
                node?
            }
            Route::ByRoutingPrefix {
                routes,
                default,
                takes_unknown,
            } => self.by_routing_prefix(routes, default, *takes_unknown)?,
        })
    }

    pub(super) fn by_name(&mut self, name: &'a str) -> Result<NodeId, CompileError> {
        let key = (
            self.protocol.name(),
            name,
            Arc::clone(&self.parts),
            self.prefix.clone(),
        );
        if let Some(&node) = self.named.get(&key) {
            return Ok(node);
        }
        let config = self.compiler.config;
        // A named route is made once, for all who name it.
        let spools = self.spools.take();
        let node = match config.routes.get(name) {
            Some(route) => self.node(route),
            None => self.pool(name),
        };
        self.spools = spools;
        let node = node?;
        self.named.insert(key, node);
        Ok(node)
    }

    /// A replicated pool of all members and the departed ones, so that the writes that these miss are
    /// remembered.
    fn copies(&mut self, name: &'a str, replicated: &Replicated) -> Result<NodeId, CompileError> {
        if let Some(&node) = self.copied.get(name) {
            return Ok(self.bare(node));
        }
        // The pool as a whole gets the bare key.
        let outer = std::mem::take(&mut self.prefix.is_hidden);
        let children = self.servers(name);
        self.prefix.is_hidden = outer;
        let mut children = children?;
        let named = children.len();
        for member in self.compiler.departed.get(name).cloned().unwrap_or_default() {
            children.push(self.push(Node::Leaf(Leaf::Member(member))));
        }
        let mut nearest: Vec<usize> = (0..named).collect();
        nearest.sort_by_key(|&child| self.distance(children[child]));
        let sorted: Vec<NodeId> = nearest.iter().map(|&child| children[child]).collect();
        self.warn_if_none_is_local(&Children::Pool(name.to_owned()), &sorted);
        let home = match replicated.decide_at_home && !children.is_empty() {
            true => Some(
                self.shared_distribution(&Hash::of(Algorithm::Rendezvous), &children, &|| {
                    format!("pool {name}")
                })?,
            ),
            false => None,
        };
        let min_acks = replicated.acks_of(named);
        let protocol = self.protocol.name();
        let copied = self
            .protocol
            .copy_support()
            .ok_or_else(|| CompileError::NoCopies {
                pool: name.to_owned(),
                protocol,
            })?;
        let node = self.push(Node::Copies(Copies {
            copied,
            children,
            nearest,
            order: RefCell::default(),
            min_acks,
            home: home.flatten(),
            fleet: self
                .compiler
                .config
                .fleet
                .as_ref()
                .map(|_| FleetPool::new(name, self.protocol)),
        }));
        self.copied.insert(name, node);
        Ok(self.bare(node))
    }

    /// A node that chooses one member of a pool by the pool's own hash, or the whole pool if it is
    /// replicated.
    pub(super) fn pool(&mut self, name: &'a str) -> Result<NodeId, CompileError> {
        let config = self.compiler.config;
        let pool = config
            .pools
            .get(name)
            .ok_or_else(|| CompileError::Unknown(name.into()))?;
        if let Some(replicated) = &pool.replicated {
            return self.copies(name, replicated);
        }
        if let Some((name, replicated)) = self.fleet_pool(name)? {
            return self.copies(name, replicated);
        }
        let spec = pool.hash.clone();
        let nodes = self.servers(name)?;
        let chosen = self.hash(spec, nodes.clone(), || format!("pool {name}"))?;
        Ok(self.by_state(chosen, nodes))
    }

    /// Puts around the choice of a pool the nodes that follow the protocol's state of the pool, if it has
    /// one.
    fn by_state(&mut self, chosen: NodeId, members: Vec<NodeId>) -> NodeId {
        let of = |&node: &NodeId| Some(Arc::clone(self.member_at(node)?));
        let Some(all) = members.iter().map(of).collect::<Option<Vec<_>>>() else {
            return chosen;
        };
        let Some(first) = all.first().filter(|member| member.pool.state.is_some()) else {
            return chosen;
        };
        let kept = StatefulPool {
            pool: Arc::clone(&first.pool),
            members: all.iter().map(Arc::clone).collect(),
        };
        let Some((redirects, holds)) = kept
            .state()
            .map(|state| (state.may_redirect(), state.may_hold() || state.has_one_writer()))
        else {
            return chosen;
        };
        if !self.stateful.contains(&kept) {
            self.stateful.push(kept.clone());
        }
        let with = |node: NodeId| [&[node], members.as_slice()].concat();
        let mut node = self.choose(Assigned(kept.clone()), with(chosen));
        if holds {
            node = self.wrap(Held(kept.clone()), node);
        }
        match redirects {
            // What has failed begins anew behind the members, and may have to wait there.
            true => self.attempt(Redirected(kept), [&*with(node), &[node]].concat()),
            false => node,
        }
    }

    /// The members of a pool. The copies of a fleet are never asked one by one: the pool stands for them.
    pub(super) fn members(&mut self, pool: &'a str) -> Result<Vec<NodeId>, CompileError> {
        match self.fleet_pool(pool)? {
            Some((name, replicated)) => Ok(vec![self.copies(name, replicated)?]),
            None => self.servers(pool),
        }
    }

    fn servers(&mut self, pool: &str) -> Result<Vec<NodeId>, CompileError> {
        let members = self
            .compiler
            .pools
            .get(pool)
            .cloned()
            .ok_or_else(|| CompileError::Unknown(pool.into()))?;
        let spec = self.compiler.config.pools.get(pool);
        self.speaks(pool)?;
        let question = spec.and_then(|pool| pool.source.question());
        if let (true, Some(question)) = (members.is_empty(), question) {
            // An empty list would answer a miss, and a write to it would be lost without an error.
            let asked = question.asked();
            let text = format!("pool {pool} has no servers: {asked} has not named any yet");
            return Ok(vec![self.push(Node::Leaf(Leaf::Error(text.into())))]);
        }
        let keeps = spec.is_some_and(|pool| pool.keep_routing_prefix);
        Ok(members
            .into_iter()
            .map(|member| self.member(member, keeps))
            .collect())
    }

    /// This member. If it `keeps` routing prefixes, it gets that of the key.
    fn member(&mut self, member: Arc<Member>, keeps: bool) -> NodeId {
        let leaf = self.push(Node::Leaf(Leaf::Member(member)));
        if keeps && self.prefix.is_asked {
            return leaf;
        }
        let node = match self.prefix.given.as_ref().filter(|_| keeps) {
            None => leaf,
            Some(prefix) => {
                let prefixed = ModifyKey {
                    ensure_prefix: prefix.as_bytes().to_vec(),
                    replace_prefix: None,
                    in_place: false,
                    suffix: Vec::new(),
                };
                self.wrap(prefixed, leaf)
            }
        };
        self.bare(node)
    }

    /// This node, which gets keys without a hidden prefix.
    fn bare(&mut self, node: NodeId) -> NodeId {
        match self.prefix.is_hidden {
            true => self.wrap(BareKey, node),
            false => node,
        }
    }

    /// A member that the text names as `pool/name`, or a server of no pool by its address.
    pub(super) fn single(&mut self, text: &'a str) -> Result<NodeId, CompileError> {
        let pool = text.split_once('/').map(|(pool, _)| pool);
        let of_fleet = match pool.filter(|pool| self.compiler.pools.contains_key(pool)) {
            Some(pool) => self.fleet_pool(pool)?,
            None => self.copy_at(text),
        };
        if let Some((name, replicated)) = of_fleet {
            return self.copies(name, replicated);
        }
        if let Some((pool, name)) = text.split_once('/')
            && let Some(members) = self.compiler.pools.get(pool)
        {
            self.speaks(pool)?;
            let found = members
                .iter()
                .find(|member| member.name == name || member.address == name)
                .cloned();
            let member = found.ok_or_else(|| CompileError::Unknown(text.into()))?;
            let spec = self.compiler.config.pools.get(pool);
            let keeps = spec.is_some_and(|pool| pool.keep_routing_prefix);
            return Ok(self.member(member, keeps));
        }
        let server = Server {
            address: text.into(),
            name: None,
            weight: 1.0,
            zone: None,
        };
        let spec = Pool::of(vec![server.clone()]);
        let member = self.registry.member(text, &spec, &server, self.protocol)?;
        let leaf = self.push(Node::Leaf(Leaf::Member(member)));
        Ok(self.bare(leaf))
    }

    pub(super) fn children(&mut self, children: &'a Children) -> Result<Vec<NodeId>, CompileError> {
        match children {
            Children::Pool(name) => self.members(name),
            Children::List(routes) => routes.iter().map(|route| self.node(route)).collect(),
        }
    }

    pub(super) fn one_of(&mut self, handle: impl Choose + 'static, nodes: Vec<NodeId>) -> NodeId {
        match nodes[..] {
            [] => self.push(Node::Leaf(Leaf::Null)),
            [only] => only,
            _ => self.choose(handle, nodes),
        }
    }

    pub(super) fn default(
        &mut self,
        route: Option<&'a Route>,
        otherwise: &str,
    ) -> Result<NodeId, CompileError> {
        match route {
            Some(route) => self.node(route),
            None => Ok(self.push(Node::Leaf(Leaf::Error(otherwise.into())))),
        }
    }
}
