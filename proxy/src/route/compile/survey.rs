//! Facts about nodes that are made: members, distances, fan-out.

use std::{collections::BTreeMap, sync::Arc};

use xxhash_rust::xxh3::xxh3_64;

use super::{CompileError, maker::Maker};
use crate::{
    config::schema::Children,
    members::{Distance, Member},
    route::tree::{Leaf, Node, NodeId},
};

/// Numbers of nodes are below this: with one added they fit in 15 bits.
const NUMBERS: u16 = (1 << 15) - 1;

impl Maker<'_, '_> {
    pub(super) fn member_at(&self, node: NodeId) -> Option<&Arc<Member>> {
        match self.nodes.get(node.0 as usize) {
            Some(Node::Leaf(Leaf::Member(member))) => Some(member),
            _ => None,
        }
    }

    /// The member that this node is, directly or below wraps.
    pub(super) fn member_below(&self, node: NodeId) -> Option<&Arc<Member>> {
        match self.nodes.get(node.0 as usize) {
            Some(Node::Leaf(Leaf::Member(member))) => Some(member),
            Some(Node::Wrap { child, .. }) => self.member_below(*child),
            Some(Node::Near(near)) => self.member_below(near.child),
            _ => None,
        }
    }

    /// See [`Tree::is_plain`](crate::route::Tree::is_plain).
    pub(super) fn is_plain(&self, root: NodeId) -> bool {
        let Some(Node::Choose { handle, children }) = self.nodes.get(root.0 as usize) else {
            return false;
        };
        let is_member = |&child: &NodeId| self.member_at(child).is_some_and(|member| !member.is_copy());
        handle.chooses_four() && children.iter().all(is_member)
    }

    /// The largest number of members that one request goes to at once.
    pub(super) fn fanout(&self, node: NodeId) -> u32 {
        let widest = |children: &[NodeId]| children.iter().map(|&child| self.fanout(child)).max();
        match &self.nodes[node.0 as usize] {
            Node::Choose { children, .. }
            | Node::ByClient { children, .. }
            | Node::Attempt { children, .. } => widest(children).unwrap_or(1),
            Node::Gather { children, .. } | Node::Fan { children, .. } | Node::Script { children, .. } => {
                children
                    .iter()
                    .fold(0, |sum: u32, &child| sum.saturating_add(self.fanout(child)))
                    .max(1)
            }
            Node::Copies(copies) => (copies.children.len() as u32).max(1),
            Node::Wrap { child, .. } => self.fanout(*child),
            Node::Near(near) => self.fanout(near.child),
            Node::Leaf(_) => 1,
        }
    }

    /// Is there such a node, here or below?
    pub(super) fn has(&self, node: NodeId, is: &dyn Fn(&Node) -> bool) -> bool {
        let node = &self.nodes[node.0 as usize];
        let below = |children: &[NodeId]| children.iter().any(|&child| self.has(child, is));
        is(node)
            || match node {
                Node::Script { children, .. }
                | Node::Choose { children, .. }
                | Node::ByClient { children, .. }
                | Node::Fan { children, .. }
                | Node::Gather { children, .. }
                | Node::Attempt { children, .. } => below(children),
                Node::Wrap { child, .. } => self.has(*child, is),
                Node::Near(near) => self.has(near.child, is),
                Node::Copies(_) | Node::Leaf(_) => false,
            }
    }

    /// Adds the leaves below this node to `found`, each member once; `shadows`: also of routes that get only
    /// copies of requests.
    pub(super) fn leaves(&self, node: NodeId, shadows: bool, found: &mut Vec<NodeId>) {
        let mut pending = vec![node];
        let mut members = Vec::new();
        let mut embedded = false;
        while let Some(node) = pending.pop() {
            match &self.nodes[node.0 as usize] {
                Node::Fan { handle, children } if handle.shadows() && !shadows => {
                    pending.extend(children.first());
                }
                Node::Choose { children, .. }
                | Node::ByClient { children, .. }
                | Node::Fan { children, .. }
                | Node::Script { children, .. }
                | Node::Gather { children, .. }
                | Node::Attempt { children, .. } => {
                    pending.extend(children);
                }
                Node::Copies(copies) => pending.extend(&copies.children),
                Node::Wrap { child, .. } => pending.push(*child),
                Node::Near(near) => pending.push(near.child),
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

    /// The nodes that a command for all of these leaves goes to. Copies get it as a whole pool, because the
    /// pool remembers which copies miss it. Without leaves it goes to the root, which makes the answer.
    pub(super) fn everywhere(
        &mut self,
        root: NodeId,
        leaves: &[NodeId],
    ) -> Result<Vec<NodeId>, CompileError> {
        if leaves.is_empty() {
            return Ok(vec![root]);
        }
        let config = self.compiler.config;
        let mut found = Vec::new();
        for &leaf in leaves {
            let copied = self.member_at(leaf).filter(|member| member.is_copy());
            let pool = copied.and_then(|member| config.pools.get_key_value(&*member.pool.name));
            let node = match pool {
                Some((pool, _)) => self.pool(pool)?,
                None => leaf,
            };
            if pool.is_none() || !found.contains(&node) {
                found.push(node);
            }
        }
        Ok(found)
    }

    /// These nodes with their numbers, in ascending order. The names of a member and its pool make its
    /// number. If two members have the same, one of them takes the next number that is free.
    pub(super) fn numbered(&self, nodes: &[NodeId]) -> Vec<(u16, NodeId)> {
        let name = |&node: &NodeId| match self.member_at(node) {
            Some(member) => format!("{}/{}", member.pool.name, member.name),
            None => String::new(),
        };
        let mut named: Vec<_> = nodes.iter().map(|node| (name(node), *node)).collect();
        named.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut numbered = BTreeMap::new();
        for (name, node) in named {
            let mut number = (xxh3_64(name.as_bytes()) % u64::from(NUMBERS)) as u16;
            while numbered.len() < usize::from(NUMBERS) && numbered.contains_key(&number) {
                number = (number + 1) % NUMBERS;
            }
            numbered.insert(number, node);
        }
        numbered.into_iter().collect()
    }

    /// The distance of the nearest leaf below this node.
    pub(in crate::route) fn distance(&self, node: NodeId) -> Distance {
        match &self.nodes[node.0 as usize] {
            Node::Leaf(Leaf::Member(member)) => member.distance,
            Node::Leaf(Leaf::Embedded) => Distance::Process,
            Node::Leaf(_) => Distance::Elsewhere,
            Node::Copies(copies) => copies
                .children
                .iter()
                .map(|&child| self.distance(child))
                .min()
                .unwrap_or(Distance::Elsewhere),
            Node::Wrap { child, .. } => self.distance(*child),
            Node::Near(near) => self.distance(near.child),
            Node::Choose { children, .. }
            | Node::ByClient { children, .. }
            | Node::Fan { children, .. }
            | Node::Script { children, .. }
            | Node::Gather { children, .. }
            | Node::Attempt { children, .. } => children
                .iter()
                .map(|&child| self.distance(child))
                .min()
                .unwrap_or(Distance::Elsewhere),
        }
    }

    pub(in crate::route) fn warn_if_none_is_local(&mut self, children: &Children, nodes: &[NodeId]) {
        // The node agent will report the local servers.
        if self.compiler.config.nodes.is_some() {
            return;
        }
        // A member whose name does not resolve yet may be the local one.
        let lost = |&node: &NodeId| self.member_at(node).is_some_and(|member| member.socket.is_none());
        if nodes.iter().any(lost) {
            return;
        }
        let member = nodes.first().filter(|&&node| self.member_at(node).is_some());
        let nearest = member.map(|&node| self.distance(node));
        if let (Children::Pool(pool), Some(Distance::Zone | Distance::Elsewhere)) = (children, nearest) {
            let warning = format!(
                "no server of pool `{pool}` is on this host, so `nearest` reads from afar; if one is, say which with \
                 --node-address or HOST_IP"
            );
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }
}
