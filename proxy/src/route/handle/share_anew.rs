//! hash, as twemproxy does it: while a child is ejected, all keys are shared out anew among the others.

use std::{cell::RefCell, sync::Arc};

use proxima_wire::hash::{Distribution, Node};

use super::{HashRoute, Random};
use crate::{
    config::{
        distribution,
        routes::{self, Spec},
    },
    members::health_changes,
    route::tree::{Children, Choose, Query},
};

/// A `hash` whose distribution is over the live children alone.
#[derive(Debug)]
pub(in crate::route) struct ShareAnew {
    /// The choice while all children are live.
    all: HashRoute,
    /// The names and weights of the children.
    nodes: Arc<[(String, f64)]>,
    live: RefCell<Live>,
}

/// The live children, as they were at the last change of any member's health.
#[derive(Debug, Default)]
struct Live {
    /// The number of that change; `None`: nothing was asked yet.
    seen: Option<u64>,
    /// The indexes of the children that are live.
    children: Vec<usize>,
    /// Their distribution. `None`: all children are live, or none is.
    ring: Option<Distribution>,
}

impl Live {
    /// Takes the live children as they are now. A distribution over the same ones is kept: most changes are
    /// those of other pools.
    fn renew(&mut self, children: Vec<usize>, share: impl FnOnce(&[usize]) -> Option<Distribution>) {
        if self.seen.is_none() || self.children != children {
            self.ring = share(&children);
            self.children = children;
        }
    }
}

impl ShareAnew {
    /// The choice by `all` among children with these names and weights.
    pub(in crate::route) fn new(all: HashRoute, nodes: Arc<[(String, f64)]>) -> Self {
        Self {
            all,
            nodes,
            live: RefCell::default(),
        }
    }

    /// Shares the keys out among these children.
    fn share(&self, live: &[usize]) -> Option<Distribution> {
        if live.is_empty() || live.len() == self.nodes.len() {
            return None;
        }
        let nodes: Vec<Node<'_>> = live
            .iter()
            .filter_map(|&index| self.nodes.get(index))
            .map(|(name, weight)| Node {
                name,
                weight: *weight,
            })
            .collect();
        // What was good for all children is good for some of them.
        distribution(self.all.spec.algorithm, &nodes).ok().flatten()
    }
}

impl Choose for ShareAnew {
    fn name(&self) -> &'static str {
        routes::ByHash::NAME
    }

    fn is_hash(&self) -> bool {
        true
    }

    #[inline]
    fn choose(&self, query: &Query<'_>, children: &Children<'_>, random: &mut Random) -> usize {
        let mut live = self.live.borrow_mut();
        // The number is read before the states: a change in between is seen with the next request.
        let changes = health_changes();
        if live.seen != Some(changes) {
            let up = (0..self.nodes.len()).filter(|&index| children.is_up(index));
            live.renew(up.collect(), |up| self.share(up));
            live.seen = Some(changes);
        }
        match &live.ring {
            None => self.all.choose(query, children, random),
            Some(ring) => {
                let chosen = self.all.pick(query.key, |key| ring.pick(key));
                live.children.get(chosen).copied().unwrap_or(usize::MAX)
            }
        }
    }

    fn chooses_four(&self) -> bool {
        self.all.chooses_four()
    }

    fn choose_four(&self, keys: [&[u8]; 4]) -> Option<[usize; 4]> {
        let live = self.live.borrow();
        let is_whole = live.seen == Some(health_changes()) && live.ring.is_none();
        is_whole.then(|| self.all.choose_four(keys)).flatten()
    }

    fn why(&self, query: &Query<'_>, children: &Children<'_>, chosen: usize) -> String {
        let reason = self.all.why(query, children, chosen);
        let live = self.live.borrow();
        match live.ring.is_some() {
            true => format!(
                "{reason}, shared out anew among {} that are up",
                live.children.len()
            ),
            false => reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_shared_out_anew_only_when_other_children_are_live() {
        let mut live = Live::default();
        let mut shared = Vec::new();
        for (change, children) in [vec![0, 1, 2], vec![0, 2], vec![0, 2], vec![1, 2], vec![1, 2]]
            .into_iter()
            .enumerate()
        {
            live.renew(children, |children| {
                shared.push(children.to_vec());
                None
            });
            live.seen = Some(change as u64);
        }
        assert_eq!(shared, [vec![0, 1, 2], vec![0, 2], vec![1, 2]]);
    }
}
