//! The way of a key: where a request for it would end, found without sending anything.
//!
//! A request with several keys stays whole where all of them go the same way, whatever routes are on it.
//! Nodes that decide by the key are asked for each key; nodes that decide about a whole request (chance,
//! turns, limits) are followed to all their children, because the next decision may be another one.

use super::{Leaf, Node, NodeId, Walk, tree::AttemptRecord};
use crate::{engine::Engine, members::MemberId, route::step::pass_by_ejected};

/// Which children of a node that asks one after the other belong to the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Branches {
    /// The child that is asked now.
    Now,
    /// Every child that may be asked. Where an answer decides about one key, each key has a way of its own.
    Any,
}

impl Engine {
    /// Gives each node where a request with this key may end to `take`, always in the same order.
    pub(crate) fn way(
        &mut self,
        mut node: NodeId,
        walk: &Walk<'_>,
        key: &[u8],
        branches: Branches,
        take: &mut dyn FnMut(NodeId),
    ) {
        loop {
            match walk.tree.node(node) {
                Node::Choose { handle, children } => {
                    let query = walk.query(key, self.unix());
                    if handle.varies(&query) {
                        return self.ways(children, walk, key, branches, take);
                    }
                    let query = query.of(walk, &self.clients);
                    let choices = walk.children(children, self.copies.snapshot());
                    match children.get(handle.choose(&query, &choices, &mut self.random)) {
                        Some(&child) => node = child,
                        None => return take(node),
                    }
                }
                Node::ByClient { handle, children } => {
                    match children.get(handle.choose(self.address_of(walk.to), children.len())) {
                        Some(&child) => node = child,
                        None => return take(node),
                    }
                }
                Node::Gather { children, .. } => return self.ways(children, walk, key, branches, take),
                Node::Attempt { handle, children } => {
                    let query = walk.query(key, self.unix());
                    if branches == Branches::Any {
                        if handle.judges_keys(&query) {
                            apart(key, take);
                        }
                        return self.ways(children, walk, key, branches, take);
                    }
                    let choices = walk.children(children, self.copies.snapshot());
                    let mut tried = AttemptRecord::first(0);
                    if !choices.is_up(0) {
                        pass_by_ejected(&**handle, &query, &mut tried, &choices);
                    }
                    match children.get(tried.child) {
                        Some(&child) => node = child,
                        None => return take(node),
                    }
                }
                Node::Fan { children, .. } if branches == Branches::Any => {
                    return self.ways(children, walk, key, branches, take);
                }
                Node::Fan { handle, children } => {
                    let query = walk.query(key, self.unix());
                    let mut others = std::mem::take(&mut self.router.others);
                    let chosen = handle.choose(&query, &mut self.random, &mut others);
                    others.clear();
                    self.router.others = others;
                    match children.get(chosen) {
                        Some(&child) => node = child,
                        None => return take(node),
                    }
                }
                Node::Wrap { handle, child } => {
                    node = *child;
                    if let Some(changed) = handle.new_key(key) {
                        return self.way(node, walk, &changed, branches, take);
                    }
                }
                Node::Near(near) => {
                    node = near.child;
                    let parts = branches == Branches::Any && near.parts(walk.request, key);
                    // Each key is an answer of its own. An origin has no answer to a key that comes twice.
                    if parts && near.origin.is_some() {
                        self.router.parted = self.router.parted.wrapping_add(1);
                        apart(&self.router.parted.to_le_bytes(), take);
                    } else if parts {
                        apart(key, take);
                    }
                }
                Node::Leaf(_) | Node::Copies(_) | Node::Script { .. } => return take(node),
            }
        }
    }

    fn ways(
        &mut self,
        children: &[NodeId],
        walk: &Walk<'_>,
        key: &[u8],
        branches: Branches,
        take: &mut dyn FnMut(NodeId),
    ) {
        for &child in children {
            self.way(child, walk, key, branches, take);
        }
    }

    /// A key's whole way in one number. Keys that may be led apart have different ones.
    pub(crate) fn way_mark(&mut self, root: NodeId, walk: &Walk<'_>, key: &[u8], branches: Branches) -> Mark {
        let mut mark = Mark::default();
        self.way(root, walk, key, branches, &mut |end| mark.add(end));
        mark
    }

    /// The ends of the ways of two keys where these differ; `None`: they go the same way.
    pub(crate) fn parting(
        &mut self,
        root: NodeId,
        walk: &Walk<'_>,
        [one, other]: [&[u8]; 2],
    ) -> Option<[NodeId; 2]> {
        let (mut ends, mut at, mut parted) = (Vec::new(), 0, None);
        self.way(root, walk, one, Branches::Now, &mut |end| ends.push(end));
        self.way(root, walk, other, Branches::Now, &mut |end| {
            if parted.is_none() && ends.get(at).is_some_and(|&first| first != end) {
                parted = Some([ends[at], end]);
            }
            at += 1;
        });
        match (parted, ends.first()) {
            // One of them goes to more places than the other.
            (None, Some(&first)) if at != ends.len() => Some([first, first]),
            _ => parted,
        }
    }

    /// Do all keys of this request go the same way below `node`? A request with one key does.
    pub(super) fn stays_whole(&mut self, node: NodeId, walk: &Walk<'_>) -> bool {
        if walk.request.more_keys.is_empty() || walk.is_streamed() {
            return true;
        }
        let (mut first, mut is_whole) = (None, true);
        let mut keys = Vec::new();
        walk.origin
            .protocol
            .keys(walk.request, walk.message, &mut |key| keys.push(key));
        for key in keys {
            let mark = self.way_mark(node, walk, key.of(walk.message), Branches::Now);
            is_whole = *first.get_or_insert(mark) == mark;
            if !is_whole {
                break;
            }
        }
        is_whole
    }

    /// Does this key's way from `root` lead to this member, and to no other one?
    pub(crate) fn leads_to(&mut self, root: NodeId, walk: &Walk<'_>, key: &[u8], member: MemberId) -> bool {
        let (tree, mut is_led, mut is_elsewhere) = (walk.tree, false, false);
        self.way(root, walk, key, Branches::Now, &mut |end| match tree.node(end) {
            Node::Leaf(Leaf::Member(found)) if found.id == member => is_led = true,
            Node::Leaf(Leaf::Member(_)) | Node::Copies(_) => is_elsewhere = true,
            _ => {}
        });
        is_led && !is_elsewhere
    }
}

/// Gives what makes the ways of two keys differ, which is no node.
fn apart(key: &[u8], take: &mut dyn FnMut(NodeId)) {
    key.chunks(3).for_each(|part| take(NodeId(fold(part))));
    take(NodeId(u32::MAX));
}

/// Up to three bytes of a key as a number.
fn fold(part: &[u8]) -> u32 {
    part.iter()
        .fold(part.len() as u32, |number, &byte| number << 8 | u32::from(byte))
}

/// A way in one number: its ends, mixed as by wyhash's multiplication. A client cannot choose ends, so that
/// it cannot make two ways look alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(pub(crate) u64);

impl Default for Mark {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl Mark {
    /// Adds one more end of the way.
    pub(crate) fn add(&mut self, end: NodeId) {
        let product = u128::from(self.0 ^ u64::from(end.0)) * 0xa076_1d64_78bd_642f_u128;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::{Mark, NodeId};

    #[test]
    fn ways_with_other_ends_or_another_order_have_other_marks() {
        let mark = |ends: &[u32]| {
            let mut mark = Mark::default();
            ends.iter().for_each(|&end| mark.add(NodeId(end)));
            mark
        };
        let mut seen = std::collections::HashSet::new();
        for one in 0..300 {
            assert!(seen.insert(mark(&[one]).0));
            for other in 0..300 {
                assert!(seen.insert(mark(&[one, other]).0), "{one} {other}");
            }
        }
    }
}
