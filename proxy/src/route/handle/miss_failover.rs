//! miss_failover, with mcrouter's rules: reads and deletes try the children in turn until one has the key;
//! every other request asks the first child only.

use proxima_wire::message::{Class, Outcome};

use crate::route::Answer;
use crate::route::tree::{Attempt, Query};

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
        "miss_failover"
    }

    fn next(&self, query: &Query<'_>, tried: usize, children: usize, answer: &Answer<'_>) -> Option<usize> {
        let outcome = answer.outcome();
        let found = outcome.is_hit() || outcome == Outcome::Ok;
        (self.goes_on(query) && !found && tried + 1 < children).then_some(tried + 1)
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

    fn why(&self) -> String {
        "the next after a miss or an error".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        dialect::{Failed, Memcache},
        members::Locality,
        micros::Micros,
    };

    fn answer(outcome: Outcome) -> Answer<'static> {
        Answer::Failed(Failed::here(outcome, ""))
    }

    #[test]
    fn a_miss_goes_on_and_a_write_does_not() {
        let route = MissFailover {
            best_on_error: false,
            touch: Some(1),
        };
        let query = |class| Query {
            command: 0,
            class,
            key: b"k",
            dialect: &Memcache::PLAIN,
            locality: Locality::NONE,
            unix: Micros::ZERO,
        };
        assert_eq!(
            route.next(&query(Class::Read), 0, 2, &answer(Outcome::NotFound)),
            Some(1)
        );
        assert_eq!(
            route.next(&query(Class::Read), 1, 2, &answer(Outcome::NotFound)),
            None
        );
        assert_eq!(
            route.next(&query(Class::Read), 0, 2, &answer(Outcome::Found)),
            None
        );
        assert_eq!(
            route.next(&query(Class::Write), 0, 2, &answer(Outcome::Timeout)),
            None
        );
        let (reads_too, only_touches) = (
            query(Class::Touch),
            Query {
                command: 1,
                ..query(Class::Touch)
            },
        );
        assert_eq!(route.next(&reads_too, 0, 2, &answer(Outcome::NotFound)), Some(1));
        assert_eq!(route.next(&only_touches, 0, 2, &answer(Outcome::NotFound)), None);
    }
}
