//! miss_failover, with mcrouter's rules: reads and deletes try the children in turn until one has the key;
//! every other request asks the first child only.

use proxima_wire::message::{Class, Outcome};

use crate::{
    config::routes::{self, Spec},
    route::{
        Answer,
        compile::{Build, CompileError, Maker},
        tree::{Attempt, AttemptRecord, Children, NodeId, Query},
    },
};

/// The route `miss_failover`.
#[derive(Debug)]
pub(in crate::route) struct MissFailover {
    /// The answer is the best reply, not the last one, when no child has the key.
    pub(in crate::route) best_on_error: bool,
    /// The number of the command `touch`, which reads nothing, unlike the other commands of its class.
    pub(in crate::route) touch: Option<u16>,
}

impl Attempt for MissFailover {
    fn name(&self) -> &'static str {
        routes::MissFailover::NAME
    }

    fn next(
        &self,
        query: &Query<'_>,
        tried: &mut AttemptRecord,
        children: &Children<'_>,
        answer: &Answer<'_>,
    ) -> Option<usize> {
        let outcome = answer.outcome();
        // To a wrong request no other server would answer anything else.
        let is_final = outcome.is_hit() || matches!(outcome, Outcome::Ok | Outcome::ClientError);
        self.follow(query, tried, children).filter(|_| !is_final)
    }

    fn follow(&self, query: &Query<'_>, tried: &AttemptRecord, children: &Children<'_>) -> Option<usize> {
        let next = tried.child + 1;
        (self.goes_on(query) && next < children.len()).then_some(next)
    }

    fn best_on_failure(&self) -> bool {
        self.best_on_error
    }

    fn goes_on(&self, query: &Query<'_>) -> bool {
        match query.class {
            Class::Read | Class::Delete => true,
            Class::Touch => self.touch != Some(query.command),
            _ => false,
        }
    }

    fn judges_keys(&self, query: &Query<'_>) -> bool {
        self.goes_on(query)
    }

    fn why(&self) -> String {
        "the next after a miss or an error".into()
    }
}

impl<'a> Build<'a, &'a routes::Children> for routes::MissFailover {
    fn build(
        &'a self,
        children: &'a routes::Children,
        maker: &mut Maker<'_, 'a>,
    ) -> Result<NodeId, CompileError> {
        let nodes = maker.children(children)?;
        let handle = MissFailover {
            best_on_error: self.best_on_error,
            touch: maker.protocol.command("touch"),
        };
        Ok(maker.attempt(handle, nodes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        copies::Snapshot,
        protocol::Failed,
        route::{NodeId, Tree},
    };

    #[test]
    fn a_miss_goes_on_and_a_write_does_not() {
        let route = MissFailover {
            best_on_error: false,
            touch: Some(1),
        };
        let (tree, snapshot) = (Tree::empty(), Snapshot::default());
        let children = Children {
            tree: &tree,
            ids: &[NodeId(0), NodeId(1)],
            snapshot: &snapshot,
            class: Class::Read,
        };
        for (class, command, child, outcome, next) in [
            (Class::Read, 0, 0, Outcome::NotFound, Some(1)),
            (Class::Read, 0, 1, Outcome::NotFound, None),
            (Class::Read, 0, 0, Outcome::Found, None),
            (Class::Write, 0, 0, Outcome::Timeout, None),
            (Class::Touch, 0, 0, Outcome::NotFound, Some(1)),
            (Class::Touch, 1, 0, Outcome::NotFound, None),
        ] {
            let query = Query {
                command,
                class,
                ..Query::example()
            };
            let answer = Answer::Failed(Failed::here(outcome, ""));
            let found = route.next(&query, &mut AttemptRecord::first(child), &children, &answer);
            assert_eq!(found, next, "{class:?} {command} {child} {outcome:?}");
        }
    }
}
