//! Deletes that are sent again, as the near cache counts them.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::near::{Changes, LINGER, Near, OpenChange};

/// How the deletes that are sent again are counted.
#[derive(Default)]
pub(super) struct ReplayedDeletes {
    changes: Option<Changes>,
    /// Deletes without an answer, the oldest first, and when each ends.
    lingering: VecDeque<(Instant, OpenChange)>,
}

impl ReplayedDeletes {
    /// Counts in this near cache from now on. Deletes that are under way by then are not known, so this
    /// counts as a change of everything.
    pub(super) fn follow(&mut self, near: Option<&Arc<Near>>) {
        match (near, &self.changes) {
            (Some(near), None) => {
                let changes = Changes::new(Arc::clone(near));
                drop(changes.of_everything());
                self.changes = Some(changes);
            }
            (None, Some(_)) => self.changes = None,
            _ => {}
        }
        let now = Instant::now();
        while self.lingering.front().is_some_and(|&(until, _)| until <= now) {
            self.lingering.pop_front();
        }
    }

    /// Begins deletes of these keys. `None` if no near cache keeps them.
    pub(super) fn begin<'a>(&self, keys: impl Iterator<Item = &'a str>) -> Option<OpenChange> {
        let changes = self.changes.as_ref()?;
        Some(changes.of_keys(keys.map(str::as_bytes)))
    }

    /// The server has not answered all of them: it may still execute the others.
    pub(super) fn linger(&mut self, change: Option<OpenChange>) {
        let until = Instant::now() + Duration::from(LINGER);
        self.lingering.extend(change.map(|change| (until, change)));
    }
}

#[cfg(test)]
mod tests {
    use proxima_wire::message::{Outcome, Reply};

    use super::*;
    use crate::{
        micros::Micros,
        near::{Lookup, Passes, Question, Rule, RuleSettings},
    };

    #[test]
    fn deletes_that_are_sent_again_end_what_is_kept_and_keep_fills_out() {
        let settings = RuleSettings {
            ttl: Micros::secs(10),
            jitter: 0,
            stale: Micros::ZERO,
            stale_on_error: Micros::ZERO,
            negative: Micros::ZERO,
            largest: 1 << 20,
        };
        let near = Arc::new(Near::new(1 << 20, [1, 2, 3, 4]));
        let rule = Arc::new(Rule::new("rule", 0, &settings));
        let look = |key: &str| {
            let question = Question {
                rule: &rule,
                key: key.as_bytes(),
                form: b"",
            };
            near.look(&question, Micros::ZERO, &mut Vec::new(), Passes::Never)
        };
        let keep = |key: &str| {
            let Lookup::Miss(mut fill) = look(key) else {
                panic!("{key} is no miss");
            };
            let reply = Reply::new(Outcome::Found, 1);
            fill.keep(&reply, b"v"[..].into(), false, Micros::ZERO, 0)
                .unwrap();
        };
        keep("before");
        let mut again = ReplayedDeletes::default();
        assert!(again.begin(["k"].into_iter()).is_none(), "nothing is kept yet");
        again.follow(Some(&near));
        assert!(
            matches!(look("before"), Lookup::Miss(_)),
            "whoever was deleting then"
        );
        keep("k");
        keep("other");
        let change = again.begin(["k"].into_iter());
        assert!(matches!(look("k"), Lookup::Changing));
        assert!(matches!(look("other"), Lookup::Hit(..)));
        again.linger(change);
        again.follow(Some(&near));
        assert!(matches!(look("k"), Lookup::Changing), "it may still be executed");
        again.lingering.clear();
        assert!(matches!(look("k"), Lookup::Miss(_)));
    }
}
