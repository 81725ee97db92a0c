//! hash_order, a policy of `failover`: mcrouter's DeterministicOrderPolicy. Behind the first child, a hash of
//! the key with a number behind it names one child after the other.

use std::sync::Arc;

use proxima_wire::{
    hash::{Distribution, salted},
    message::Outcome,
};

use super::{
    failover::Policy,
    key_part::{Parts, part},
};
use crate::route::tree::{AttemptRecord, Children, Query};

/// The policy.
#[derive(Debug)]
pub(in crate::route) struct HashOrder {
    /// The distribution over all children.
    pub(in crate::route) distribution: Arc<Distribution>,
    /// The parts of the key that are hashed.
    pub(in crate::route) parts: Arc<[Parts]>,
    /// The most tries.
    pub(in crate::route) tries: u32,
    /// The most errors other than of ejected children.
    pub(in crate::route) error_tries: u32,
    /// The errors that count against neither limit.
    pub(in crate::route) exclude: Vec<Outcome>,
    /// The failure domain of each child; empty: they have none.
    pub(in crate::route) domains: Vec<Option<u32>>,
    /// The first child is a pool of the other children. The one that it chooses is not asked again.
    pub(in crate::route) knows_first: bool,
}

/// Draws for one try before there is none.
const DRAWS: u32 = 100;
/// Draws for one try that pass by a domain that has failed.
const DOMAIN_DRAWS: u32 = 75;
/// The number behind the key in the first draw.
const FIRST_SALT: u32 = 2;

/// The outcome of all draws for one request.
#[derive(Debug, Default, PartialEq)]
struct DrawResult {
    /// The children in their order.
    order: Vec<usize>,
    collisions: u64,
    domain_collisions: u64,
}

impl HashOrder {
    /// Draws children until there are `count` of them. `first`: the position of the server that child 0
    /// chooses, where that is known.
    fn draw(&self, key: &[u8], first: Option<usize>, count: usize, children: usize) -> DrawResult {
        let mut drawn = DrawResult {
            order: vec![0],
            ..DrawResult::default()
        };
        let taken = first.filter(|_| self.knows_first).map(|first| first + 1);
        let domain = |child: usize| self.domains.get(child).copied().flatten();
        let mut failed = vec![domain(first.map_or(0, |first| first + 1))];
        let mut salt = FIRST_SALT;
        while drawn.order.len() < count.min(children) {
            let mut draws = 0;
            let next = loop {
                if draws == DRAWS {
                    return drawn;
                }
                draws += 1;
                let child = salted(key, salt.to_string().as_bytes(), |key| {
                    self.distribution.pick(key)
                });
                salt += 1;
                if drawn.order.contains(&child) || taken == Some(child) {
                    drawn.collisions += 1;
                } else if draws <= DOMAIN_DRAWS && domain(child).is_some() && failed.contains(&domain(child))
                {
                    drawn.domain_collisions += 1;
                } else {
                    break child;
                }
            };
            failed.push(domain(next));
            drawn.order.push(next);
        }
        drawn
    }

    fn drawn(&self, query: &Query<'_>, count: u32, children: &Children<'_>) -> DrawResult {
        let first = match self.knows_first || !self.domains.is_empty() {
            true => children.hashed_below(0, query),
            false => None,
        };
        let key = part(&self.parts, query.key);
        self.draw(key, first, count as usize, children.len())
    }

    const fn counted(tried: &AttemptRecord) -> u32 {
        tried.count - tried.excluded
    }
}

impl Policy for HashOrder {
    fn next(&self, query: &Query<'_>, tried: &AttemptRecord, children: &Children<'_>) -> Option<usize> {
        if Self::counted(tried) >= self.tries {
            return None;
        }
        let drawn = self.drawn(query, tried.count + 1, children);
        drawn.order.get(tried.count as usize).copied()
    }

    fn allows(&self, tried: &mut AttemptRecord, outcome: Outcome) -> bool {
        if self.exclude.contains(&outcome) {
            tried.excluded += 1;
        } else if outcome != Outcome::Ejected {
            tried.errors += 1;
        }
        tried.errors < self.error_tries
    }

    fn is_spent(&self, tried: &AttemptRecord, children: usize) -> bool {
        Self::counted(tried) >= self.tries || tried.count as usize >= children
    }

    fn collisions(&self, query: &Query<'_>, tried: &AttemptRecord, children: &Children<'_>) -> [u64; 2] {
        // Where one more was allowed, the draws that found none count as well.
        let goes_on = tried.errors < self.error_tries && !self.is_spent(tried, children.len());
        let drawn = self.drawn(query, tried.count + u32::from(goes_on), children);
        [drawn.collisions, drawn.domain_collisions]
    }

    fn why(&self) -> String {
        format!(
            "in an order by the key, {} at most and {} errors",
            self.tries, self.error_tries
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(domains: Vec<Option<u32>>, knows_first: bool) -> HashOrder {
        HashOrder {
            distribution: Arc::new(Distribution::ch3(6).unwrap()),
            parts: Arc::new([]),
            tries: 6,
            error_tries: 3,
            exclude: vec![Outcome::Timeout],
            domains,
            knows_first,
        }
    }

    #[test]
    fn every_child_is_drawn_once_and_a_taken_one_never() {
        for number in 0..100 {
            let key = format!("key{number}");
            let drawn = order(Vec::new(), true).draw(key.as_bytes(), Some(2), 6, 6);
            let mut sorted = drawn.order.clone();
            sorted.sort_unstable();
            // Child 3 is the server that child 0 has chosen, so no sixth child is found.
            assert_eq!(sorted, [0, 1, 2, 4, 5], "{key}");
            assert!(drawn.collisions >= 100, "{key}: {drawn:?}");
            let drawn = order(Vec::new(), false).draw(key.as_bytes(), Some(2), 6, 6);
            assert_eq!(drawn.order.len(), 6, "{key}: {drawn:?}");
        }
    }

    #[test]
    fn domains_that_have_failed_are_passed_by_while_there_are_others() {
        let domains = vec![None, Some(1), Some(1), Some(2), Some(2), Some(3)];
        for number in 0..100 {
            let key = format!("key{number}");
            // The first server is child 1, of domain 1.
            let drawn = order(domains.clone(), true).draw(key.as_bytes(), Some(0), 3, 6);
            let tried: Vec<_> = drawn.order[1..].iter().map(|&child| domains[child]).collect();
            assert!(
                !tried.contains(&Some(1)) && tried[0] != tried[1],
                "{key}: {drawn:?}"
            );
        }
    }

    #[test]
    fn errors_are_limited_and_some_do_not_count() {
        let policy = order(Vec::new(), false);
        let mut tried = AttemptRecord::first(0);
        let outcomes = [
            Outcome::Ejected,
            Outcome::Timeout,
            Outcome::RemoteError,
            Outcome::ConnectError,
            Outcome::RemoteError,
        ];
        let allowed = outcomes.map(|outcome| policy.allows(&mut tried, outcome));
        assert_eq!(allowed, [true, true, true, true, false]);
        assert_eq!((tried.errors, tried.excluded), (3, 1));
    }

    #[test]
    fn tries_that_find_no_further_child_are_not_the_last_ones() {
        let policy = order(Vec::new(), true);
        let mut tried = AttemptRecord::first(0);
        for child in [1, 2, 4, 5] {
            assert!(!policy.is_spent(&tried, 6));
            tried.add(child);
        }
        assert!(
            !policy.is_spent(&tried, 6),
            "a sixth try is allowed, and finds nobody"
        );
        tried.add(3);
        assert!(policy.is_spent(&tried, 6));
    }
}
