//! failover: the children are asked in order, until a reply is no failover error.

use std::cell::Cell;

use proxima_wire::message::{Class, Outcome};

use crate::{
    config::schema::{FailoverErrors, FailoverLimit},
    route::{
        Answer,
        tree::{Attempt, Query},
    },
};

/// The command that changes an expiry and returns no value.
const TOUCH: &str = "touch";

/// The route `failover`.
#[derive(Debug)]
pub(in crate::route) struct Failover {
    /// The outcomes after which the next child is asked.
    pub(in crate::route) errors: FailoverErrors,
    /// The limit on failovers; `None`: no limit.
    pub(in crate::route) limit: Option<Tokens>,
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
            Class::Touch if query.dialect.command_name(query.command) != TOUCH => &self.errors.gets,
            Class::Touch | Class::Arithmetic => &self.errors.others,
            Class::Delete => &self.errors.deletes,
            _ => &self.errors.updates,
        }
        .as_ref()
    }
}

impl Attempt for Failover {
    fn name(&self) -> &'static str {
        "failover"
    }

    fn next(&self, query: &Query<'_>, tried: usize, children: usize, answer: &Answer<'_>) -> Option<usize> {
        let outcome = answer.outcome();
        if let Some(tokens) = &self.limit
            && tried == 0
        {
            tokens.earn();
        }
        let counts = match self.listed(query) {
            Some(list) => list.contains(&outcome),
            None => outcome.is_failover(),
        };
        if !counts || tried + 1 >= children {
            return None;
        }
        // These failovers cost no token, because the failed server got no load.
        let free = matches!(
            outcome,
            Outcome::Ejected | Outcome::ConnectError | Outcome::ConnectTimeout | Outcome::Shutdown
        );
        let allowed = free || self.limit.as_ref().is_none_or(Tokens::spend);
        allowed.then_some(tried + 1)
    }

    fn goes_on(&self, query: &Query<'_>) -> bool {
        self.listed(query).is_none_or(|list| !list.is_empty())
    }

    fn why(&self) -> String {
        "the next after an error".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        dialect::{self, Failed, Memcache},
        members::Locality,
        micros::Micros,
    };

    fn answer(outcome: Outcome) -> Answer<'static> {
        Answer::Failed(Failed::here(outcome, ""))
    }

    fn query(class: Class) -> Query<'static> {
        Query {
            command: 0,
            class,
            key: b"k",
            dialect: &Memcache::PLAIN,
            locality: Locality::NONE,
            unix: Micros::ZERO,
        }
    }

    #[test]
    fn goes_on_after_errors_only() {
        let failover = Failover {
            errors: FailoverErrors::default(),
            limit: None,
        };
        let read = query(Class::Read);
        for outcome in [
            Outcome::Timeout,
            Outcome::ConnectError,
            Outcome::Ejected,
            Outcome::RemoteError,
        ] {
            assert_eq!(
                failover.next(&read, 0, 2, &answer(outcome)),
                Some(1),
                "{outcome:?}"
            );
            assert_eq!(
                failover.next(&read, 1, 2, &answer(outcome)),
                None,
                "{outcome:?}: nobody is left"
            );
        }
        for outcome in [
            Outcome::Found,
            Outcome::NotFound,
            Outcome::NotStored,
            Outcome::ClientError,
        ] {
            assert_eq!(failover.next(&read, 0, 2, &answer(outcome)), None, "{outcome:?}");
        }
    }

    #[test]
    fn listed_errors_replace_the_defaults_of_their_group_alone() {
        let errors = FailoverErrors {
            gets: Some(vec![Outcome::Ejected]),
            ..Default::default()
        };
        let failover = Failover { errors, limit: None };
        assert_eq!(
            failover.next(&query(Class::Read), 0, 2, &answer(Outcome::Timeout)),
            None
        );
        assert_eq!(
            failover.next(&query(Class::Read), 0, 2, &answer(Outcome::Ejected)),
            Some(1)
        );
        assert_eq!(
            failover.next(&query(Class::Write), 0, 2, &answer(Outcome::Timeout)),
            Some(1)
        );
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
        let commands = dialect::Dialect::commands(&Memcache::PLAIN);
        let named = |name: &str, class| Query {
            command: commands.iter().position(|known| *known == name).unwrap() as u16,
            ..query(class)
        };
        let failover = Failover { errors, limit: None };
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
            let query = named(name, class);
            let next = failover.next(&query, 0, 2, &answer(Outcome::Timeout));
            assert_eq!(
                (next.is_some(), failover.goes_on(&query)),
                (goes_on, goes_on),
                "{name}"
            );
        }
    }

    #[test]
    fn the_limit_spares_the_next_server_from_a_slow_ones_load() {
        let limit = Some(Tokens::new(FailoverLimit {
            rate: 0.5,
            burst: 1.0,
        }));
        let failover = Failover {
            errors: FailoverErrors::default(),
            limit,
        };
        let read = query(Class::Read);
        let tries: Vec<_> = (0..4)
            .map(|_| failover.next(&read, 0, 2, &answer(Outcome::Timeout)).is_some())
            .collect();
        assert_eq!(tries, [true, false, true, false]);
        assert_eq!(
            failover.next(&read, 0, 2, &answer(Outcome::Ejected)),
            Some(1),
            "free"
        );
    }
}
