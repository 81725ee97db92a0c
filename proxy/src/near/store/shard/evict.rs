//! The choice of what goes for want of memory, or because it is dead.
//!
//! **Eviction** takes the reply whose turn it is (see [`queue`](crate::near::store::queue)), where dead
//! replies go at once. Every sixteenth operation checks one more entry, so that dead replies of keys that are
//! not asked for go as well.

use super::Shard;
use crate::{
    micros::Micros,
    near::{
        Words,
        store::{RemovalReason, entry::Entry, queue::End},
    },
};

/// The most replies that go round before one goes, however often they were asked for.
const MOST_ROUNDS: usize = 64;

impl Shard {
    /// Looks whether the next entry is dead.
    pub(super) fn crawl(&mut self, now: Micros) {
        if self.crawl >= self.table.end() {
            self.crawl = 0;
        }
        self.bury(self.crawl, now);
        self.crawl += 1;
    }

    /// Removes the reply at this index if it is dead.
    pub(in crate::near::store) fn bury(&mut self, index: usize, now: Micros) {
        self.remove_if(index, |words, entry| why_dead(entry, words, now));
    }

    /// Evicts one reply, if there is any, and returns how many bytes that frees. They are reported together
    /// with the reply that is kept in its place.
    pub(in crate::near::store) fn evict(&mut self, now: Micros) -> usize {
        let before = self.memory();
        for round in 0.. {
            let Some(place) = self.queues.last() else { break };
            let Some(entry) = self.table.get(place) else { break };
            let hash = entry.hash;
            let is_unasked = entry.priority.uses() == 0;
            if let why @ Some(_) = why_dead(entry, &self.words, now) {
                self.unasked = self.unasked.saturating_add(u32::from(is_unasked));
                self.remove(place, why);
                break;
            }
            let Some(end) = self.queues.end(&mut self.table, place, round >= MOST_ROUNDS) else {
                continue;
            };
            self.unasked = self.unasked.saturating_add(u32::from(is_unasked));
            self.remove(place, Some(RemovalReason::Evicted));
            if let End::GoesFromShort = end {
                self.ghosts.add(hash, self.table.end());
            }
            break;
        }
        self.shrink();
        self.preload_next();
        before.saturating_sub(self.memory())
    }

    /// Begins to load what the next eviction will read.
    fn preload_next(&self) {
        if let Some(entry) = self.queues.last().and_then(|place| self.table.get(place)) {
            entry.record.preload();
            self.words.preload(entry.hash);
            self.table.preload_slot(entry.hash);
        }
    }
}

/// Why this reply is dead. `None` if it is alive.
pub(super) fn why_dead(entry: &Entry, words: &Words, now: Micros) -> Option<RemovalReason> {
    match entry.why_dead(now) {
        None if !words.is_current(entry.everything) => Some(RemovalReason::Flushed),
        why => why,
    }
}
