//! The kept replies, found by key, and by rule and form below a key: dropping a key drops them all.
//!
//! The keys are spread over shards, each behind a lock of its own that is held for a look-up and a copy of at
//! most [`SMALL`] bytes. A larger reply is handed out as it lies, and lives as long as somebody sends it.
//!
//! Invariant: the replies with all that finds them take no more than the limit, but for those that are being
//! sent. Invariant: no entry is found whose rule was emptied, whose time is over, or that is older than a
//! change of everything.
#![allow(
    clippy::disallowed_types,
    reason = "the named exception: shards of the near cache, locked for one memcpy"
)]

mod answer;
mod blocks;
mod bytes;
mod entries;
mod entry;
mod fill;
mod shard;
mod tally;
#[cfg(test)]
mod tests;
mod value;
#[cfg(test)]
mod value_tests;

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
};

use ahash::RandomState;
use parking_lot::{Mutex, MutexGuard};
use proxima_wire::message::Reply;

pub use self::{
    answer::{Answer, Look, Question, Refusal},
    entries::{Entries, Hot, Shown},
    fill::Fill,
    tally::{Gone, RuleUsage},
    value::Old,
};
use self::{blocks::Blocks, shard::Shard};
use super::{KeyHash, Near, Rule, Words};
use crate::micros::Micros;

/// The number of shards.
const SHARDS: usize = 64;

/// A reply up to this size is copied while its shard is locked. A larger one is not copied at all.
pub const SMALL: usize = 64 << 10;

/// Workers give back what is free of their memory no more often than this.
const GIVES_BACK: Micros = Micros::millis(200);

/// A shard alone in its cache lines, so that two workers on neighbouring shards do not disturb each other.
#[repr(align(128))]
struct Line(Mutex<Shard>);

/// The kept replies of all rules.
pub struct Store {
    shards: Box<[Line]>,
    hasher: RandomState,
    memory: AtomicUsize,
    /// The part of it that is not for free blocks.
    for_entries: AtomicUsize,
    blocks: Arc<Blocks>,
    total: Arc<Total>,
    /// The shard of which something is evicted next.
    hand: AtomicUsize,
}

/// What all shards take together.
#[derive(Default)]
struct Total {
    /// Bytes of all entries and what finds them.
    bytes: AtomicUsize,
    /// Bytes that were freed since workers gave back theirs.
    freed: AtomicUsize,
    /// When they did.
    given_back: AtomicU64,
}

/// What a store has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Keys that have entries.
    pub keys: u64,
    /// Bytes of all entries, what finds them, and what waits to be used again.
    pub bytes: u64,
}

impl Store {
    pub(super) fn new(memory: usize, words: Arc<Words>, seed: [u64; 4]) -> Self {
        let total = Arc::<Total>::default();
        let blocks = Arc::<Blocks>::default();
        let shard = || Shard::new(Arc::clone(&words), Arc::clone(&blocks), Arc::clone(&total));
        Self {
            shards: (0..SHARDS).map(|_| Line(Mutex::new(shard()))).collect(),
            hasher: RandomState::with_seeds(seed[0], seed[1], seed[2], seed[3]),
            memory: AtomicUsize::new(memory),
            for_entries: AtomicUsize::new(blocks.take_share(memory)),
            blocks,
            total,
            hand: AtomicUsize::new(0),
        }
    }

    /// The limit in bytes.
    pub fn memory(&self) -> usize {
        self.memory.load(Relaxed)
    }

    /// Sets the limit. What is above it goes with the next reply that is kept, or is [swept](Entries::sweep).
    pub fn set_memory(&self, bytes: usize) {
        self.memory.store(bytes, Relaxed);
        self.for_entries.store(self.blocks.take_share(bytes), Relaxed);
    }

    /// Evicts entries until there is room for this many bytes. No shard is locked.
    fn make_room(&self, bytes: usize, now: Micros) {
        let total = || self.total.bytes.load(Relaxed);
        while total() + bytes > self.for_entries.load(Relaxed) && total() > 0 {
            let number = self.hand.fetch_add(1, Relaxed) % SHARDS;
            self.shards[number].0.lock().evict(now);
        }
    }

    /// Was so much freed that every worker should give back what is free of its memory? What a worker has kept is
    /// mostly freed by others. One caller is told so, and the next one after a while.
    pub(super) fn has_freed_much(&self, now: Micros) -> bool {
        let Total {
            freed, given_back, ..
        } = &*self.total;
        if freed.load(Relaxed) < (self.memory() / 16).max(1 << 20) {
            return false;
        }
        let last = given_back.load(Relaxed);
        let is_told = now.0.saturating_sub(last) >= GIVES_BACK.0
            && given_back.compare_exchange(last, now.0, Relaxed, Relaxed).is_ok();
        if is_told {
            freed.store(0, Relaxed);
        }
        is_told
    }

    #[inline]
    pub(super) fn hash(&self, key: &[u8]) -> KeyHash {
        KeyHash(self.hasher.hash_one(key))
    }

    /// Tells an answer from all others: its rule, key and form. After a drop it is another one: nobody waits
    /// for what was asked for before.
    fn identity(&self, hash: KeyHash, question: &Question<'_>) -> u64 {
        let rule = question.rule;
        self.hasher
            .hash_one((hash.0, rule.number(), rule.drops(), question.form))
    }

    fn shard(&self, hash: KeyHash) -> MutexGuard<'_, Shard> {
        self.shards[hash.shard(SHARDS)].0.lock()
    }

    /// Removes this key in all rules and forms.
    pub(super) fn remove(&self, hash: KeyHash, key: &[u8]) {
        self.shard(hash).remove_changed(hash, key);
    }

    /// What the store has.
    pub fn usage(&self) -> Usage {
        Usage {
            keys: self.shards.iter().map(|line| line.0.lock().keys()).sum(),
            bytes: (self.total.bytes.load(Relaxed) + self.blocks.bytes()) as u64,
        }
    }

    /// What is kept by this rule, and what went.
    pub fn usage_of(&self, rule: &Rule) -> RuleUsage {
        let mut sum = RuleUsage::default();
        for line in &self.shards {
            sum += line.0.lock().usage_of(rule.slot);
        }
        sum
    }
}

impl Near {
    /// Looks for the answer to this question. Bytes of a small one are appended to `out`. `now` is the time
    /// on the process's clock.
    pub fn look(self: &Arc<Self>, question: &Question<'_>, now: Micros, out: &mut Vec<u8>) -> Look {
        let hash = self.store.hash(question.key);
        let identity = self.store.identity(hash, question);
        let settings = question.rule.settings();
        let mut shard = self.store.shard(hash);
        let found = shard.look(hash, question, &settings, now, out);
        let renews = match &found {
            Some(Answer { is_stale, .. }) => *is_stale,
            None if shard.is_unkept(hash, question, &settings, now) => return Look::Unkept,
            None => true,
        };
        if !renews {
            return match found {
                Some(answer) => Look::Hit(answer, None),
                None => Look::Changing,
            };
        }
        let note = self.words.note(hash);
        let begun = note.map(|note| (note, shard.begin_fill(identity, note)));
        drop(shard);
        match (found, begun) {
            (Some(answer), Some((note, Some(serial)))) => Look::Hit(
                answer,
                Some(Fill::new(self, hash, identity, serial, note, question)),
            ),
            (Some(answer), _) => Look::Hit(answer, None),
            (None, None) => Look::Changing,
            (None, Some((_, None))) => Look::Filling,
            (None, Some((note, Some(serial)))) => {
                Look::Miss(Fill::new(self, hash, identity, serial, note, question))
            }
        }
    }

    /// Tells a question from all others.
    pub fn identity(&self, question: &Question<'_>) -> u64 {
        self.store.identity(self.store.hash(question.key), question)
    }

    /// The old reply that may stand for an error.
    pub fn look_on_error(&self, question: &Question<'_>, now: Micros) -> Option<(Reply, Arc<[u8]>)> {
        let hash = self.store.hash(question.key);
        let settings = question.rule.settings();
        self.store
            .shard(hash)
            .look_on_error(hash, question, &settings, now)
    }
}
