//! Pools, their members, and their copies.

use std::{cell::RefCell, sync::Arc};

use super::{CompileError, maker::Maker};
use crate::{
    config::schema::{Algorithm, Children, Hash, Pool, Replicated, Server},
    members::Member,
    route::{
        FleetPool, StatefulPool,
        handle::{Assigned, BareKey, Held, ModifyKey, Redirected},
        tree::{Copies, Leaf, Node, NodeId},
    },
};

impl<'a> Maker<'_, 'a> {
    /// A replicated pool of all members and the departed ones, so that the writes that these miss are
    /// remembered.
    pub(super) fn copies(&mut self, name: &'a str, replicated: &Replicated) -> Result<NodeId, CompileError> {
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
    pub(super) fn bare(&mut self, node: NodeId) -> NodeId {
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
            pod: None,
        };
        let spec = Pool::of(vec![server.clone()]);
        let member = self.registry.member(text, &spec, &server, self.protocol)?;
        let leaf = self.push(Node::Leaf(Leaf::Member(member)));
        Ok(self.bare(leaf))
    }
}
