//! Keys and values in memory, shared by all workers: the store of the `embedded` route.
//!
//! The keys are spread over shards, each a small table behind a lock of its own that is held for well under a
//! microsecond. What one thread stores every other reads. There is no clock and no source of randomness in
//! here: time comes with each call, as milliseconds since a moment that the owner chooses, and the hash's
//! seed with [`Store::new`].
//!
//! Invariants:
//! * items, their unused tails and the tables together never take more than [`Limits::memory`];
//! * between a change and the next, an item's cas id stays; no two changes of the store draw the same id;
//! * a key is never found in another keyspace than that in which it was stored;
//! * an item that expired or was flushed is never seen again, no matter when its memory is reclaimed.
#![allow(
    clippy::disallowed_types,
    reason = "the named exception: shards of the store, locked for one memcpy"
)]

mod counters;
mod entry;
mod item;
mod keyspace;
mod pick;
mod prefetch;
mod several;
mod shard;
mod table;
#[cfg(test)]
mod tests;
mod walk;

use ahash::RandomState;
use parking_lot::{Mutex, MutexGuard};

pub use self::{
    counters::{Counter, Counters},
    entry::{Entry, TooLarge},
    item::{Item, Marks, Meta},
    keyspace::Keyspace,
    prefetch::Prefetch,
    several::Several,
    shard::Miss,
    walk::Walk,
};
use self::{shard::Shard, table::Hash};

/// Limits of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all items and the tables that find them.
    pub memory: usize,
    /// Bytes of the largest item in memcached's measure (its `-I`): key and value and 60 or so.
    pub item: usize,
}

impl Default for Limits {
    /// 64 MiB, and 1 MiB for an item, as memcached.
    fn default() -> Self {
        Self {
            memory: 64 << 20,
            item: 1 << 20,
        }
    }
}

/// The largest possible item: lengths are kept in 32 bits.
const LARGEST: usize = 1 << 31;

/// The smallest share of a shard that takes items. Less has no room for a table.
const SMALLEST_SHARE: usize = 4 << 10;

/// A shard alone in its cache lines, so that two workers on neighbouring shards do not disturb each other.
#[repr(align(128))]
struct Line(Mutex<Shard>);

/// The store.
pub struct Store {
    shards: Box<[Line]>,
    hasher: RandomState,
    limits: Limits,
}

/// The contents and counters of a keyspace.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Living items, including those that have expired and were not found yet.
    pub items: u64,
    /// Bytes of items and tables, of all keyspaces together.
    pub bytes: u64,
    /// Counters since the start, or since the last reset.
    pub counters: Counters,
}

impl Totals {
    /// The sum of both, which are of one store.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        self.items += other.items;
        self.counters.add_all(&other.counters);
        self
    }
}

impl Store {
    /// An empty store. `seed` keeps clients that know this program from choosing keys that collide: draw it
    /// at random.
    ///
    /// An item larger than a quarter of a shard's share could evict most of its shard, so there are as many
    /// shards, at most 1024, as leave each 4 MiB and four items; with less than four items' memory the
    /// largest item is smaller.
    pub fn new(limits: Limits, seed: [u64; 4]) -> Self {
        let share = (4 << 20).max(limits.item.saturating_mul(4));
        let count = ((limits.memory / share).clamp(1, 1024) + 1).next_power_of_two() / 2;
        let share = limits.memory / count;
        let item = if share < SMALLEST_SHARE {
            0
        } else {
            limits.item.min(share / 4).min(LARGEST)
        };
        let shard = |number| Line(Mutex::new(Shard::new(share, number as u64, count as u64)));
        Self {
            shards: (0..count).map(shard).collect(),
            hasher: RandomState::with_seeds(seed[0], seed[1], seed[2], seed[3]),
            limits: Limits {
                memory: limits.memory,
                item,
            },
        }
    }

    /// The limits in effect.
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// Whether the store takes a value of this many bytes under this key.
    pub fn takes(&self, key: &[u8], value_length: usize) -> bool {
        item::size(key.len(), 0, value_length) <= self.limits.item
    }

    /// The entry of `key` at `now`, with its shard locked.
    #[inline]
    pub fn entry<'k>(&self, keyspace: Keyspace, key: &'k [u8], now: u64) -> Entry<'_, 'k> {
        let hash = self.hash(key);
        self.entry_in(self.shard(hash.shard()), keyspace, (hash, key), now)
    }

    /// The entry of `key` in its shard.
    // As a function of its own it would pass its result through memory, for each request.
    #[inline(always)]
    fn entry_in<'s, 'k>(
        &self,
        mut shard: MutexGuard<'s, Shard>,
        keyspace: Keyspace,
        (hash, key): (Hash, &'k [u8]),
        now: u64,
    ) -> Entry<'s, 'k> {
        shard.begin(keyspace, now);
        let found = shard.find(keyspace, hash, key, now);
        Entry {
            shard,
            keyspace,
            hash,
            key,
            now,
            largest: self.limits.item,
            found,
        }
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> Hash {
        Hash(self.hasher.hash_one(key))
    }

    fn shard(&self, number: usize) -> MutexGuard<'_, Shard> {
        self.line(number).lock()
    }

    fn line(&self, number: usize) -> &Mutex<Shard> {
        &self.shards[number & (self.shards.len() - 1)].0
    }

    /// Drops everything of the keyspace that exists at `at` milliseconds, or now if that is not later than
    /// `now`. It replaces an earlier call whose time has not come.
    pub fn flush(&self, keyspace: Keyspace, at: u64, now: u64) {
        for number in 0..self.shards.len() {
            let mut shard = self.shard(number);
            shard.begin(keyspace, now);
            shard.flush_at(keyspace, at, now);
        }
        self.shard(0).counters(keyspace).add(Counter::Flushes);
    }

    /// The contents of the keyspace at `now`.
    pub fn totals(&self, keyspace: Keyspace, now: u64) -> Totals {
        let mut totals = Totals::default();
        for number in 0..self.shards.len() {
            let mut shard = self.shard(number);
            shard.begin(keyspace, now);
            totals.items += shard.items(keyspace) as u64;
            totals.bytes += shard.memory() as u64;
            totals.counters.add_all(shard.counters(keyspace));
        }
        totals
    }

    /// Resets the counters of the keyspace to 0.
    pub fn reset_counters(&self, keyspace: Keyspace) {
        for number in 0..self.shards.len() {
            *self.shard(number).counters(keyspace) = Counters::default();
        }
    }
}
