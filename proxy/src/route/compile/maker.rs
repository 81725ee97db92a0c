//! Turns one route after the other into nodes.

use std::{collections::HashMap, sync::Arc};

use super::{CompileError, Compiler};
use crate::{
    config::schema::{Children, Config, Route},
    members::Registry,
    protocol::Protocol,
    route::{
        LeaseTable, StatefulPool,
        handle::{ByPart, Parts, gather_name},
        tree::{Attempt, Choose, Fan, Leaf, Node, NodeId, Script, Wait, Wrap},
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

/// A route that can be built over what stands below it: a route, a list of them, or nothing.
pub(in crate::route) trait Build<'a, Below> {
    /// Makes its nodes, and those below it.
    fn build(&'a self, below: Below, maker: &mut Maker<'_, 'a>) -> Result<NodeId, CompileError>;
}

/// Children with names, and the one for what none of them is for.
pub(in crate::route) type Named<'a> = (&'a [(String, Route)], Option<&'a Route>);

/// Makes the nodes of one tree.
pub(in crate::route) struct Maker<'m, 'a> {
    pub(super) compiler: &'m mut Compiler<'a>,
    pub(super) registry: &'m mut Registry,
    /// The protocol of the listener whose route is being made.
    pub(in crate::route) protocol: &'static dyn Protocol,
    pub(super) nodes: Vec<Node>,
    /// The named routes, by protocol, name, the parts of the key that they look at, and the routing prefix
    /// that servers get. Each is made once and shared.
    pub(super) named: HashMap<NamedKey<'a>, NodeId>,
    /// The replicated pools, which are made once, and shared.
    pub(super) copied: HashMap<&'a str, NodeId>,
    /// The parts of the key at which the routes being made look; empty: they look at the whole key.
    pub(in crate::route) parts: Arc<[Parts]>,
    /// The members whose failed deletes are kept, with the name of their pool in the spool.
    pub(super) spooled: HashMap<NodeId, Arc<str>>,
    /// The pools for which their protocol keeps a state.
    pub(super) stateful: Vec<StatefulPool>,
    /// The name for the members that are being made. `None`: their failed deletes are not kept.
    pub(in crate::route) spools: Option<Arc<str>>,
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

    pub(in crate::route) fn config(&self) -> &'a Config {
        self.compiler.config
    }

    pub(in crate::route) fn leases(&self) -> Arc<LeaseTable> {
        Arc::clone(&self.compiler.leases)
    }

    pub(in crate::route) fn push(&mut self, node: Node) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        if let (Node::Leaf(Leaf::Member(_)), Some(name)) = (&node, &self.spools) {
            self.spooled.insert(id, Arc::clone(name));
        }
        self.nodes.push(node);
        id
    }

    pub(in crate::route) fn choose(
        &mut self,
        handle: impl Choose + 'static,
        children: Vec<NodeId>,
    ) -> NodeId {
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

    pub(in crate::route) fn attempt(
        &mut self,
        handle: impl Attempt + 'static,
        children: Vec<NodeId>,
    ) -> NodeId {
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

    pub(in crate::route) fn gather(
        &mut self,
        wait: Wait,
        children: &'a Children,
    ) -> Result<NodeId, CompileError> {
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

    pub(in crate::route) fn wrap(&mut self, handle: impl Wrap + 'static, child: NodeId) -> NodeId {
        self.push(Node::Wrap {
            handle: Box::new(handle),
            child,
        })
    }

    pub(in crate::route) fn fan(&mut self, handle: impl Fan + 'static, children: Vec<NodeId>) -> NodeId {
        self.push(Node::Fan {
            handle: Box::new(handle),
            children,
        })
    }

    pub(in crate::route) fn gather_of(&mut self, wait: Wait, children: Vec<NodeId>) -> NodeId {
        self.push(Node::Gather {
            name: gather_name(wait),
            wait,
            children,
        })
    }

    pub(in crate::route) fn script(
        &mut self,
        handle: impl Script + 'static,
        children: Vec<NodeId>,
    ) -> Result<NodeId, CompileError> {
        if self.protocol.name() != "memcached" {
            return Err(CompileError::Memcached {
                route: handle.name(),
                protocol: self.protocol.name(),
            });
        }
        Ok(self.push(Node::Script {
            handle: Box::new(handle),
            children,
        }))
    }

    pub(in crate::route) fn node(&mut self, route: &'a Route) -> Result<NodeId, CompileError> {
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

    fn make(&mut self, route: &'a Route) -> Result<NodeId, CompileError> {
        match route {
            Route::Named(name) => self.by_name(name),
            Route::Leaf(leaf) => leaf.build((), self),
            Route::One(one, child) => one.build(&**child, self),
            Route::Of(of, children) => of.build(children, self),
            Route::Pair(pair, first, second) => pair.build([&**first, &**second], self),
            Route::Keyed(keyed, routes, default) => keyed.build((routes, default.as_deref()), self),
            Route::FailoverWithTtl(failover, normal, others) => failover.build((&**normal, others), self),
            Route::Shadow(child, shadows) => shadows.build(&**child, self),
            Route::Near(near) => near.build((), self),
        }
    }

    fn by_name(&mut self, name: &'a str) -> Result<NodeId, CompileError> {
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

    pub(in crate::route) fn children(&mut self, children: &'a Children) -> Result<Vec<NodeId>, CompileError> {
        match children {
            Children::Pool(name) => self.members(name),
            Children::List(routes) => routes.iter().map(|route| self.node(route)).collect(),
        }
    }

    pub(in crate::route) fn one_of(&mut self, handle: impl Choose + 'static, nodes: Vec<NodeId>) -> NodeId {
        match nodes[..] {
            [] => self.push(Node::Leaf(Leaf::Null)),
            [only] => only,
            _ => self.choose(handle, nodes),
        }
    }

    pub(in crate::route) fn default(
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
