//! hash, as twemproxy does it: while a child is ejected, all keys are shared out anew among the others.

use std::{cell::RefCell, sync::Arc};

use proxima_wire::hash::{Distribution, Node};

use super::{HashRoute, Random};
use crate::{
    config::distribution,
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
#[derive(Debug)]
struct Live {
    /// The number of that change; `None`: nothing was asked yet.
    seen: Option<u64>,
    shares: Shares,
}

/// Who gets keys.
#[derive(Debug)]
enum Shares {
    /// All children, or none of them is live.
    All,
    /// These children, by this distribution over them.
    Some(Distribution, Vec<usize>),
}

impl ShareAnew {
    /// The choice by `all` among children with these names and weights.
    pub(in crate::route) fn new(all: HashRoute, nodes: Arc<[(String, f64)]>) -> Self {
        Self {
            all,
            nodes,
            live: RefCell::new(Live {
                seen: None,
                shares: Shares::All,
            }),
        }
    }

    /// Shares the keys out among the children that are live now.
    fn share(&self, children: &Children<'_>) -> Shares {
        let live: Vec<usize> = (0..self.nodes.len())
            .filter(|&index| children.is_up(index))
            .collect();
        if live.is_empty() || live.len() == self.nodes.len() {
            return Shares::All;
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
        match distribution(self.all.spec.algorithm, &nodes) {
            Ok(Some(distribution)) => Shares::Some(distribution, live),
            Ok(None) | Err(_) => Shares::All,
        }
    }
}

impl Choose for ShareAnew {
    fn name(&self) -> &'static str {
        "hash"
    }

    #[inline]
    fn choose(&self, query: &Query<'_>, children: &Children<'_>, random: &mut Random) -> usize {
        let mut live = self.live.borrow_mut();
        // The number is read before the states: a change in between is seen with the next request.
        let changes = health_changes();
        if live.seen != Some(changes) {
            live.shares = self.share(children);
            live.seen = Some(changes);
        }
        match &live.shares {
            Shares::All => self.all.choose(query, children, random),
            Shares::Some(distribution, members) => {
                let chosen = self.all.pick(query.key, |key| distribution.pick(key));
                members.get(chosen).copied().unwrap_or(usize::MAX)
            }
        }
    }

    fn chooses_four(&self) -> bool {
        self.all.chooses_four()
    }

    fn choose_four(&self, keys: [&[u8]; 4]) -> Option<[usize; 4]> {
        let live = self.live.borrow();
        let is_whole = live.seen == Some(health_changes()) && matches!(live.shares, Shares::All);
        is_whole.then(|| self.all.choose_four(keys)).flatten()
    }

    fn why(&self, query: &Query<'_>, children: &Children<'_>, chosen: usize) -> String {
        let reason = self.all.why(query, children, chosen);
        match &self.live.borrow().shares {
            Shares::All => reason,
            Shares::Some(_, members) => {
                format!("{reason}, shared out anew among {} that are up", members.len())
            }
        }
    }
}
