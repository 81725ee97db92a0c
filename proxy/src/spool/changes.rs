//! Deletes that are sent again, as the near cache counts them.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::near::{Changes, LINGER, Near, OpenChange};

/// How the deletes that are sent again are counted.
#[derive(Default)]
pub(super) struct SentAgain {
    changes: Option<Changes>,
    /// Deletes without an answer, the oldest first, and when each ends.
    lingering: VecDeque<(Instant, OpenChange)>,
}

impl SentAgain {
    /// Counts in this near cache from now on. Whoever was deleting by then is not known, so that it counts as a
    /// change of everything.
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

    /// Deletes of these keys begin. `None`: nothing is kept of them.
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
