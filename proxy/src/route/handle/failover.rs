//! failover: one child after the other is asked, until a reply is no failover error. The order is that of the
//! children, or a policy's.

use std::cell::Cell;

use proxima_wire::message::{Class, Outcome};

use super::ModifyTtl;
use crate::{
    config::{
        routes::{self, Spec},
        schema::{FailoverErrors, FailoverLimit, Route, TtlAction},
    },
    metrics::FailoverCounts,
    route::{
        Answer,
        compile::{Build, CompileError, Maker},
        tree::{Attempt, AttemptRecord, Children, NodeId, Query},
    },
};

/// The command that changes an expiry and returns no value.
const TOUCH: &str = "touch";

/// The order in which children are asked. The first one is always child 0.
pub(in crate::route) trait Policy: Send {
    /// The child behind those that were asked; `None`: all were asked.
    fn next(&self, query: &Query<'_>, tried: &AttemptRecord, children: &Children<'_>) -> Option<usize>;
    /// Notes a failure, and decides whether it may be followed by another try.
    fn allows(&self, _tried: &mut AttemptRecord, _outcome: Outcome) -> bool {
        true
    }
    /// Notes whether a child has answered with an error.
    fn learn(&self, _child: usize, _failed: bool) {}
    /// If there is no next child: were these all the tries that are allowed? Otherwise no further one was found.
    fn is_spent(&self, _tried: &AttemptRecord, _children: usize) -> bool {
        true
    }
    /// Draws that led to a child that was asked before, and to one of a domain that has failed.
    fn collisions(&self, _: &Query<'_>, _: &AttemptRecord, _: &Children<'_>) -> [u64; 2] {
        [0; 2]
    }
    /// The order, for people.
    fn why(&self) -> String;
}

/// The route `failover`.
pub(in crate::route) struct Failover {
    /// The outcomes after which the next child is asked.
    pub(in crate::route) errors: FailoverErrors,
    /// The limit on failovers; `None`: no limit.
    pub(in crate::route) limit: Option<Tokens>,
    /// The order; `None`: that of the children.
    pub(in crate::route) policy: Option<Box<dyn Policy>>,
    /// What was counted and not yet taken.
    pub(in crate::route) counts: Cell<FailoverCounts>,
}

/// mcrouter's failover_limit: a token bucket, full at the start. Each request earns `rate` tokens, and each
/// failover costs one.
#[derive(Debug)]
pub(in crate::route) struct Tokens {
    limit: FailoverLimit,
    level: Cell<f64>,
}

impl Tokens {
    /// A full bucket with this limit.
    pub(in crate::route) fn new(limit: FailoverLimit) -> Self {
        Self {
            level: Cell::new(limit.burst),
            limit,
        }
    }

    fn earn(&self) {
        self.level
            .set((self.level.get() + self.limit.rate).min(self.limit.burst));
    }

    fn spend(&self) -> bool {
        let enough = self.level.get() >= 1.0;
        if enough {
            self.level.set(self.level.get() - 1.0);
        }
        enough
    }
}

impl Failover {
    /// The outcomes that are failover errors for this request; `None`: the defaults.
    fn listed(&self, query: &Query<'_>) -> Option<&Vec<Outcome>> {
        match query.class {
            Class::Read => &self.errors.gets,
            // `gat` reads as well.
            Class::Touch if query.protocol.command_name(query.command) != TOUCH => &self.errors.gets,
            Class::Touch | Class::Arithmetic => &self.errors.others,
            Class::Delete => &self.errors.deletes,
            _ => &self.errors.updates,
        }
        .as_ref()
    }

    fn count(&self, add: impl FnOnce(&mut FailoverCounts)) {
        let mut counts = self.counts.get();
        add(&mut counts);
        self.counts.set(counts);
    }
}

impl Attempt for Failover {
    fn name(&self) -> &'static str {
        routes::Failover::NAME
    }

    fn next(
        &self,
        query: &Query<'_>,
        tried: &mut AttemptRecord,
        children: &Children<'_>,
        answer: &Answer<'_>,
    ) -> Option<usize> {
        let outcome = answer.outcome();
        if let Some(tokens) = &self.limit
            && tried.count == 1
        {
            tokens.earn();
        }
        if let Some(policy) = &self.policy {
            policy.learn(tried.child, outcome.is_error());
        }
        let counts = match self.listed(query) {
            Some(list) => list.contains(&outcome),
            None => outcome.is_failover(),
        };
        if !counts {
            return None;
        }
        let allowed = self
            .policy
            .as_ref()
            .is_none_or(|policy| policy.allows(tried, outcome));
        let next = self.follow(query, tried, children);
        let is_spent = |policy: &dyn Policy| policy.is_spent(tried, children.len());
        let is_last = next.is_none() && self.policy.as_deref().is_none_or(is_spent);
        self.count(|counts| match (is_last, outcome) {
            (true, _) => counts.all_failed += 1,
            (false, Outcome::Ejected) => counts.ejected += 1,
            (false, _) => counts.errors += 1,
        });
        let Some(next) = next.filter(|_| allowed) else {
            if let Some(policy) = &self.policy {
                let [collisions, domains] = policy.collisions(query, tried, children);
                self.count(|counts| {
                    counts.collisions += collisions;
                    counts.domain_collisions += domains;
                });
            }
            return None;
        };
        // These failovers cost no token, because the failed server got no load.
        let free = matches!(
            outcome,
            Outcome::Ejected | Outcome::ConnectError | Outcome::ConnectTimeout | Outcome::Shutdown
        );
        if free || self.limit.as_ref().is_none_or(Tokens::spend) {
            return Some(next);
        }
        self.count(|counts| counts.limited += 1);
        None
    }

    fn follow(&self, query: &Query<'_>, tried: &AttemptRecord, children: &Children<'_>) -> Option<usize> {
        match &self.policy {
            Some(policy) => policy.next(query, tried, children),
            None => Some(tried.child + 1).filter(|&next| next < children.len()),
        }
    }

    fn take_counts(&self) -> FailoverCounts {
        self.counts.take()
    }

    fn goes_on(&self, query: &Query<'_>) -> bool {
        self.listed(query).is_none_or(|list| !list.is_empty())
    }

    fn why(&self) -> String {
        match &self.policy {
            Some(policy) => format!("the next after an error, {}", policy.why()),
            None => "the next after an error".into(),
        }
    }
}

impl<'a> Build<'a, &'a routes::Children> for routes::Failover {
    fn build(
        &'a self,
        children: &'a routes::Children,
        maker: &mut Maker<'_, 'a>,
    ) -> Result<NodeId, CompileError> {
        let nodes = maker.children(children)?;
        maker.failover(nodes, &self.rules)
    }
}

impl<'a> Build<'a, (&'a Route, &'a routes::Children)> for routes::FailoverWithTtl {
    fn build(
        &'a self,
        (normal, failover): (&'a Route, &'a routes::Children),
        maker: &mut Maker<'_, 'a>,
    ) -> Result<NodeId, CompileError> {
        let mut nodes = vec![maker.node(normal)?];
        for stand_in in maker.children(failover)? {
            let bound = ModifyTtl {
                ttl: i64::from(self.ttl),
                action: TtlAction::Min,
            };
            nodes.push(maker.wrap(bound, stand_in));
        }
        maker.failover(nodes, &self.rules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        copies::Snapshot,
        protocol::{Failed, Protocol},
        protocols::Memcache,
        route::{NodeId, Tree},
    };

    fn failover(errors: FailoverErrors, limit: Option<Tokens>) -> Failover {
        Failover {
            errors,
            limit,
            policy: None,
            counts: Cell::default(),
        }
    }

    fn query(command: u16, class: Class) -> Query<'static> {
        Query {
            command,
            class,
            ..Query::example()
        }
    }

    /// The child of two that is asked after this answer of child `child`.
    fn next(route: &Failover, class: Class, child: usize, outcome: Outcome) -> Option<usize> {
        let (tree, snapshot) = (Tree::empty(), Snapshot::default());
        let children = Children {
            tree: &tree,
            ids: &[NodeId(0), NodeId(1)],
            snapshot: &snapshot,
            class,
        };
        let query = query(0, class);
        let mut tried = AttemptRecord::first(0);
        if child > 0 {
            tried.add(child);
        }
        let answer = Answer::Failed(Failed::here(outcome, ""));
        route.next(&query, &mut tried, &children, &answer)
    }

    #[test]
    fn goes_on_after_errors_only() {
        let route = failover(FailoverErrors::default(), None);
        for outcome in [
            Outcome::Timeout,
            Outcome::ConnectError,
            Outcome::Ejected,
            Outcome::RemoteError,
        ] {
            assert_eq!(next(&route, Class::Read, 0, outcome), Some(1), "{outcome:?}");
            assert_eq!(
                next(&route, Class::Read, 1, outcome),
                None,
                "{outcome:?}: nobody is left"
            );
        }
        let counted = FailoverCounts {
            errors: 3,
            ejected: 1,
            all_failed: 4,
            ..FailoverCounts::default()
        };
        assert_eq!(route.take_counts(), counted);
        for outcome in [
            Outcome::Found,
            Outcome::NotFound,
            Outcome::NotStored,
            Outcome::ClientError,
        ] {
            assert_eq!(next(&route, Class::Read, 0, outcome), None, "{outcome:?}");
        }
        assert_eq!(route.take_counts(), FailoverCounts::default());
    }

    #[test]
    fn listed_errors_replace_the_defaults_of_their_group_alone() {
        let errors = FailoverErrors {
            gets: Some(vec![Outcome::Ejected]),
            ..Default::default()
        };
        let route = failover(errors, None);
        assert_eq!(next(&route, Class::Read, 0, Outcome::Timeout), None);
        assert_eq!(next(&route, Class::Read, 0, Outcome::Ejected), Some(1));
        assert_eq!(next(&route, Class::Write, 0, Outcome::Timeout), Some(1));
    }

    #[test]
    fn sums_and_touches_are_in_no_group_of_errors() {
        let none = Some(Vec::new());
        let errors = FailoverErrors {
            gets: none.clone(),
            updates: none.clone(),
            deletes: none.clone(),
            others: None,
        };
        let route = failover(errors, None);
        for (name, class, goes_on) in [
            ("get", Class::Read, false),
            ("gat", Class::Touch, false),
            ("gats", Class::Touch, false),
            ("set", Class::Write, false),
            ("delete", Class::Delete, false),
            ("incr", Class::Arithmetic, true),
            ("decr", Class::Arithmetic, true),
            ("touch", Class::Touch, true),
        ] {
            let command = Memcache::PLAIN.command(name).unwrap();
            assert_eq!(route.goes_on(&query(command, class)), goes_on, "{name}");
        }
    }

    #[test]
    fn the_limit_spares_the_next_server_from_a_slow_ones_load() {
        let limit = Some(Tokens::new(FailoverLimit {
            rate: 0.5,
            burst: 1.0,
        }));
        let route = failover(FailoverErrors::default(), limit);
        let tries = [0; 4].map(|child| next(&route, Class::Read, child, Outcome::Timeout).is_some());
        assert_eq!(tries, [true, false, true, false]);
        assert_eq!(route.take_counts().limited, 2);
        assert_eq!(next(&route, Class::Read, 0, Outcome::Ejected), Some(1), "free");
    }
}
