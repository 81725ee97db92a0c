//! rendezvous, a policy of `failover`: behind the first child come the others in the order of their scores
//! for the key. The server that the first child, a pool of the others, chooses is not asked again.

use std::sync::Arc;

use proxima_wire::hash::Distribution;

use super::{
    failover::Policy,
    key_part::{Parts, part},
};
use crate::route::tree::{AttemptRecord, Children, Query};

/// The policy.
#[derive(Debug)]
pub(in crate::route) struct RendezvousOrder {
    /// The distribution over all children but the first.
    pub(in crate::route) distribution: Arc<Distribution>,
    /// The parts of the key that are hashed.
    pub(in crate::route) parts: Arc<[Parts]>,
}

impl RendezvousOrder {
    /// Child number `count` in the order, counted from 0. `first`: the position of the server that child 0
    /// chooses.
    fn child(&self, key: &[u8], first: Option<usize>, count: u32) -> Option<usize> {
        let mut passed: Vec<usize> = first.into_iter().collect();
        let mut found = None;
        for _ in 0..count {
            let next = self
                .distribution
                .pick_live(key, |position| !passed.contains(&position))?;
            passed.push(next);
            found = Some(next + 1);
        }
        found
    }
}

impl Policy for RendezvousOrder {
    fn next(&self, query: &Query<'_>, tried: &AttemptRecord, children: &Children<'_>) -> Option<usize> {
        let first = children.hashed_below(0, query);
        self.child(part(&self.parts, query.key), first, tried.count)
    }

    fn why(&self) -> String {
        "in the order of their scores for the key".into()
    }
}

#[cfg(test)]
mod tests {
    use proxima_wire::hash::Node;

    use super::*;

    #[test]
    fn children_come_in_falling_order_of_their_scores_without_the_first_choice() {
        let nodes = ["s0", "s1", "s2", "s3", "s4"].map(|name| Node { name, weight: 1.0 });
        let policy = RendezvousOrder {
            distribution: Arc::new(Distribution::rendezvous(&nodes).unwrap()),
            parts: Arc::new([]),
        };
        let order = |first| -> Vec<usize> {
            (1..6)
                .map_while(|count| policy.child(b"foo", first, count))
                .collect()
        };
        let all = order(None);
        // Server 3 has the highest score for `foo`, and is child 4.
        assert_eq!((all[0], all.len()), (4, 5));
        let without: Vec<usize> = all.iter().copied().filter(|&child| child != 4).collect();
        assert_eq!(order(Some(3)), without);
    }
}
