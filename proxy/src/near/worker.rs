//! A worker's state for the near cache.

use std::{collections::VecDeque, sync::Arc};

use super::{Changes, Near, OpenChange};
use crate::micros::Micros;

/// The time after which a server executes no request any more whose connection is gone.
pub const LINGER: Micros = Micros::secs(10);
/// The most changes that a worker remembers one by one behind their lanes. More are remembered as a change of
/// everything.
const MOST_LINGERING: usize = 16 * 1024;
/// A change of everything is begun for those so often.
const WHOLESALE: Micros = Micros::secs(1);
/// The time by which a delayed flush may come earlier or later: servers count whole seconds, memcached takes
/// one off, and workers check a few times a second for due flushes.
const EARLY: Micros = Micros::secs(3);
const LATE: Micros = Micros::secs(2);
/// The most flushes that are remembered until they are due. More have begun at once.
const MOST_DUE: usize = 1024;

/// How one worker counts its changes, and which of them have no answer.
#[derive(Default)]
pub struct WorkerNear {
    near: Option<Arc<Near>>,
    changes: Option<Changes>,
    /// Changes without an answer, the oldest first, and when each ends.
    lingering: VecDeque<(Micros, OpenChange)>,
    /// The time of the last change of everything that began in place of single ones.
    wholesale: Option<Micros>,
    /// The beginnings and ends of flushes that were sent to servers with a delay.
    due: Vec<(Micros, Micros)>,
}

impl WorkerNear {
    /// The counting of changes. `None` without a near cache in this process.
    #[inline]
    pub fn changes(&self) -> Option<&Changes> {
        self.changes.as_ref()
    }

    /// The near cache, if anything may be kept.
    #[inline]
    pub fn near(&self) -> Option<&Arc<Near>> {
        self.changes.as_ref().and(self.near.as_ref())
    }

    /// Does this worker count its changes?
    #[inline]
    pub fn counts(&self) -> bool {
        self.changes.is_some()
    }

    /// Does something wait for its end?
    pub fn waits(&self) -> bool {
        !self.lingering.is_empty() || !self.due.is_empty()
    }

    /// Begins to count changes in this near cache. Those that are under way must be counted before the worker
    /// [joins](Self::join).
    pub fn begin(&mut self, near: &Arc<Near>) {
        self.changes = Some(Changes::new(Arc::clone(near)));
    }

    /// Tells the others that every change of this worker is counted.
    pub fn join(&mut self, near: &Arc<Near>) {
        near.ready.join();
        self.near = Some(Arc::clone(near));
    }

    /// Stops counting changes. Replies that were kept until now are not found when the near cache comes back.
    pub fn leave(&mut self) {
        if let Some(near) = self.near.take() {
            near.ready.leave();
        }
        if let Some(changes) = self.changes.take() {
            drop(changes.of_everything());
        }
    }

    /// Keeps a change open whose request was sent, and whose answer never comes.
    pub fn linger(&mut self, change: OpenChange, now: Micros) {
        let change = match (&self.changes, self.lingering.len() < MOST_LINGERING) {
            (Some(changes), false) => {
                if self.wholesale.is_some_and(|begun| now - begun < WHOLESALE) {
                    return;
                }
                self.wholesale = Some(now);
                changes.of_everything()
            }
            _ => change,
        };
        let until = now + LINGER + WHOLESALE;
        self.lingering.push_back((until, change));
    }

    /// A flush is due at servers in so many seconds.
    pub fn flush_later(&mut self, seconds: u32, now: Micros) {
        let due = now + Micros::secs(u64::from(seconds));
        let begin = match self.due.len() < MOST_DUE {
            true => due - EARLY,
            false => now,
        };
        self.due.push((begin, due + LATE));
        if self.changes.is_none() && self.due.len() > MOST_DUE {
            // One span stands for all of them.
            let begin = self.due.iter().map(|&(begin, _)| begin).min();
            let end = self.due.iter().map(|&(_, end)| end).max();
            self.due = begin.zip(end).into_iter().collect();
        }
        self.end_due(now);
    }

    /// Ends what has lasted long enough, and begins what is due.
    pub fn end_due(&mut self, now: Micros) {
        while self.lingering.front().is_some_and(|&(until, _)| until <= now) {
            self.lingering.pop_front();
        }
        let Some(changes) = &self.changes else {
            // They count if something is kept again before they are over.
            self.due.retain(|&(_, end)| end > now);
            return;
        };
        let begun: Vec<Micros> = self
            .due
            .extract_if(.., |(begin, _)| *begin <= now)
            .map(|(_, end)| end)
            .collect();
        for end in begun {
            let at = self.lingering.partition_point(|&(until, _)| until <= end);
            self.lingering.insert(at, (end, changes.of_everything()));
        }
    }
}

impl Drop for WorkerNear {
    fn drop(&mut self) {
        self.leave();
    }
}
