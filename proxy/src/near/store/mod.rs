//! The kept replies, found by key, and by rule and form below a key: dropping a key drops them all.
//!
//! The keys are spread over shards, each behind a lock of its own that is held for a look-up and a copy of at
//! most [`SMALL`] bytes. A larger reply is handed out by reference, and lives as long as it is being sent.
//!
//! ```text
//!  table   the entries, and the index that finds those of a key, which are a chain
//!  entry   one reply: two cache lines, and a record with key, form and bytes in one block
//!  queue   the order in which replies go, and ghosts: keys whose replies went too early, or were turned away
//!  blocks  free memory for records
//!  shard   all of them behind one lock
//! ```
//!
//! Invariant: the replies and their indexes take no more than the limit, except for replies that are being
//! sent. Invariant: no entry is found whose rule was emptied, whose time is over, or that is older than a
//! change of everything.
#![allow(
    clippy::disallowed_types,
    reason = "the named exception: shards of the near cache, locked for one memcpy"
)]

mod answer;
mod blocks;
mod bytes;
mod candidate;
mod entries;
mod entry;
mod fill;
mod ghosts;
mod index;
mod owned_question;
mod preload;
mod priority;
mod queue;
mod record;
mod shard;
mod slab_index;
mod table;
mod tally;
#[cfg(test)]
mod tests;
mod value;
#[cfg(test)]
mod value_tests;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use ahash::RandomState;
use parking_lot::{Mutex, MutexGuard};
use proxima_wire::message::Reply;

pub use self::{
    answer::{Answer, Lookup, Passes, Question, Refusal},
    bytes::Bytes,
    entries::{Entries, EntryReport, HotKey},
    fill::Fill,
    owned_question::OwnedQuestion,
    preload::Preload,
    tally::{RemovalReason, RuleUsage},
    value::StoredValue,
};
use self::{
    blocks::FreeBlockBudget,
    shard::{Shard, ShardLookup},
};
use super::{KeyHash, Near, Rule, Words};
use crate::micros::Micros;

/// The number of shards.
const SHARDS: usize = 64;

/// A reply up to this size is copied while its shard is locked. A larger one is not copied at all.
pub const SMALL: usize = 64 << 10;

/// The most replies that are evicted while a shard is locked.
const AT_ONCE: usize = 4;

/// The divisor of the limit that gives the freed bytes after which threads give their free memory back.
const MUCH: usize = 64;

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
    free: Arc<FreeBlockBudget>,
    total: Arc<Total>,
    /// The shard of which something is evicted next.
    hand: AtomicUsize,
}

/// The memory of all shards together.
#[derive(Default)]
struct Total {
    /// Bytes of all entries and what finds them.
    bytes: AtomicUsize,
    /// Bytes that were freed since threads gave back theirs.
    freed: AtomicUsize,
}

/// The usage of a store.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Keys that have entries.
    pub keys: u64,
    /// Bytes of all entries, their indexes and the free blocks.
    pub bytes: u64,
}

impl Store {
    pub(super) fn new(memory: usize, words: Arc<Words>, seed: [u64; 4]) -> Self {
        let total = Arc::<Total>::default();
        let free = Arc::<FreeBlockBudget>::default();
        let shard = || Shard::new(Arc::clone(&words), Arc::clone(&free), Arc::clone(&total));
        Self {
            shards: (0..SHARDS).map(|_| Line(Mutex::new(shard()))).collect(),
            hasher: RandomState::with_seeds(seed[0], seed[1], seed[2], seed[3]),
            memory: AtomicUsize::new(memory),
            for_entries: AtomicUsize::new(free.take(memory)),
            free,
            total,
            hand: AtomicUsize::new(0),
        }
    }

    /// The limit in bytes.
    pub fn memory(&self) -> usize {
        self.memory.load(Relaxed)
    }

    /// Sets the limit. Replies above it go with the next reply that is kept, or are [swept](Entries::sweep).
    pub fn set_memory(&self, bytes: usize) {
        self.memory.store(bytes, Relaxed);
        self.for_entries.store(self.free.take(bytes), Relaxed);
    }

    /// The number of bytes that have to go to make room for this number of bytes.
    fn lacks(&self, bytes: usize) -> usize {
        let total = self.total.bytes.load(Relaxed) + bytes;
        total.saturating_sub(self.for_entries.load(Relaxed))
    }

    /// Evicts replies until there is room for this many bytes. No shard is locked.
    fn make_room(&self, bytes: usize, now: Micros) {
        while self.lacks(bytes) > 0 && self.total.bytes.load(Relaxed) > 0 {
            let number = self.hand.fetch_add(1, Relaxed) % SHARDS;
            let mut shard = self.shards[number].0.lock();
            shard.evict(now);
            shard.tell();
        }
    }

    /// The shard of this key, locked, with room for this many bytes. Replies are evicted from the same shard,
    /// unless it has far less than its part, or has to be unlocked for others in between. Nothing goes if
    /// `is_turned_away` says so of the shard: then there is no room.
    fn room_for(
        &self,
        hash: KeyHash,
        bytes: usize,
        now: Micros,
        is_turned_away: impl FnOnce(&mut Shard) -> bool,
    ) -> (MutexGuard<'_, Shard>, bool) {
        let mut shard = self.shard(hash);
        let mut lacks = self.lacks(bytes);
        if lacks > 0 && is_turned_away(&mut shard) {
            return (shard, false);
        }
        for _ in 0..AT_ONCE {
            if lacks == 0 || shard.told() < self.for_entries.load(Relaxed) / SHARDS / 8 * 7 {
                break;
            }
            lacks = lacks.saturating_sub(shard.evict(now));
        }
        if lacks > 0 {
            shard.tell();
            drop(shard);
            self.make_room(bytes, now);
            shard = self.shard(hash);
        }
        (shard, true)
    }

    /// Was so much freed that every thread should give its free memory back? A thread's replies are mostly
    /// freed by others. The same bytes are reported once.
    pub fn has_freed_much(&self) -> bool {
        let freed = &self.total.freed;
        let is_much = freed.load(Relaxed) >= (self.memory() / MUCH).max(1 << 20);
        is_much && freed.swap(0, Relaxed) > 0
    }

    #[inline]
    pub(super) fn hash(&self, key: &[u8]) -> KeyHash {
        KeyHash(self.hasher.hash_one(key))
    }

    /// Tells an answer from all others: its rule, key and form. After a drop it is another one: requests do
    /// not wait for a fill that began before.
    fn identity(&self, hash: KeyHash, question: &Question<'_>) -> u64 {
        let rule = question.rule;
        self.hasher
            .hash_one((hash.0, rule.number(), rule.drops(), question.form))
    }

    fn shard(&self, hash: KeyHash) -> MutexGuard<'_, Shard> {
        self.shards[hash.shard(SHARDS)].0.lock()
    }

    /// The shard of this key, if it is not locked.
    fn try_shard(&self, hash: KeyHash) -> Option<MutexGuard<'_, Shard>> {
        self.shards[hash.shard(SHARDS)].0.try_lock()
    }

    /// Removes this key in all rules and forms.
    pub(super) fn remove(&self, hash: KeyHash, key: &[u8]) {
        self.shard(hash).remove_changed(hash, key);
    }

    /// The usage of the store.
    pub fn usage(&self) -> Usage {
        Usage {
            keys: self.shards.iter().map(|line| line.0.lock().keys() as u64).sum(),
            bytes: (self.total.bytes.load(Relaxed) + self.free.bytes()) as u64,
        }
    }

    /// The replies that this rule keeps, and those that went.
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
    /// on the process's clock. `passes`: a second request for one key costs little, so that the first one
    /// passes if its reply would be turned away.
    pub fn look(
        self: &Arc<Self>,
        question: &Question<'_>,
        now: Micros,
        out: &mut Vec<u8>,
        passes: Passes,
    ) -> Lookup {
        let hash = self.store.hash(question.key);
        let mut shard = self.store.shard(hash);
        let found = match shard.look(hash, question, now, out) {
            ShardLookup::Answer(answer) if !answer.is_stale => return Lookup::Hit(answer, None),
            ShardLookup::Unkept => return Lookup::Unkept,
            ShardLookup::Answer(answer) => Some(answer),
            ShardLookup::Nothing => None,
        };
        let identity = || self.store.identity(hash, question);
        if found.is_none() && passes == Passes::IfUnasked {
            // A little room is not enough: each reply of a batch that is asked for at once would seem to fit.
            let is_full = |bytes| self.store.lacks(bytes * SHARDS) > 0;
            if shard.turns_away_early(hash, identity, is_full) {
                return Lookup::Unasked;
            }
        }
        let begun = self.words.note(hash).map(|note| {
            let identity = identity();
            (identity, note, shard.begin_fill(identity, note))
        });
        drop(shard);
        match (found, begun) {
            (Some(answer), Some((identity, note, Some(serial)))) => {
                let fill = Fill::new(self, hash, identity, serial, note, question);
                Lookup::Hit(answer, Some(Box::new(fill)))
            }
            (Some(answer), _) => Lookup::Hit(answer, None),
            (None, None) => Lookup::Changing,
            (None, Some((_, _, None))) => Lookup::Filling,
            (None, Some((identity, note, Some(serial)))) => {
                Lookup::Miss(Fill::new(self, hash, identity, serial, note, question))
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
        self.store.shard(hash).look_on_error(hash, question, now)
    }
}
