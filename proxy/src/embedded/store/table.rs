//! Hash of a key → slot: open addressing with linear probing.
//!
//! With 100,000 keys neither slots nor items lie in the nearer caches, and a lookup costs as many accesses to
//! memory as it has to wait for one after the other. Here that is two: the slot, whose neighbours, where
//! probing goes on, come in the same line or the next one; and the item, which is looked at only if 32 bits
//! of hash agree. (Tags in an array of their own made misses cheaper and hits dearer by one access.) Removal
//! shifts the rest of the run back instead of leaving a tombstone, so that a cache that evicts for years
//! probes as on its first day (Knuth, The Art of Computer Programming 3, §6.4, algorithm R).

use super::{
    item::{self, Item},
    keyspace::Keyspace,
};
use crate::reactor::prefetch;

const SMALLEST: usize = 16;

/// A key's hash, cut into parts: the shard and the first slot of a search use different bits.
#[derive(Clone, Copy)]
pub(super) struct Hash(pub(super) u64);

impl Hash {
    const fn home(self) -> u32 {
        self.0 as u32
    }

    /// The bits that choose a shard.
    pub(super) const fn shard(self) -> usize {
        (self.0 >> 32) as usize
    }
}

/// The fields of an item that the table, the crawler and the eviction need without touching the item: 32
/// bytes, two to a cache line.
#[derive(Default)]
pub(super) struct Slot {
    /// Empty in an empty slot.
    pub(super) bytes: Box<[u8]>,
    pub(super) life: Life,
    home: u32,
    /// The shard's operation counter when the item was last used.
    pub(super) tick: u32,
}

impl Slot {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The item in it, which must not be empty.
    pub(super) fn item(&self) -> Item<'_> {
        Item {
            bytes: &self.bytes,
            expires: self.life.expires(),
            keyspace: self.life.keyspace(),
        }
    }
}

/// An item's expiry time, the flush it has survived, and its hits, in 64 bits.
#[derive(Clone, Copy, Default)]
pub(super) struct Life(u64);

impl Life {
    const HITS_BITS: u32 = 2;
    const EPOCH_BITS: u32 = 18;
    const EXPIRES_AT: u32 = Self::HITS_BITS + Self::EPOCH_BITS;
    const HITS: u64 = (1 << Self::HITS_BITS) - 1;
    /// The last epoch that fits.
    pub(super) const LAST_EPOCH: u32 = (1 << Self::EPOCH_BITS) - 1;
    /// The latest time that fits, in milliseconds: 557 years.
    const LATEST: u64 = u64::MAX >> Self::EXPIRES_AT;

    pub(super) fn new(expires: u64, epoch: u32) -> Self {
        Self(expires.min(Self::LATEST) << Self::EXPIRES_AT | u64::from(epoch) << Self::HITS_BITS)
    }

    pub(super) const fn expires(self) -> u64 {
        self.0 >> Self::EXPIRES_AT
    }

    #[inline]
    pub(super) const fn has_expired(self, now: u64) -> bool {
        let expires = self.expires();
        expires != 0 && expires <= now
    }

    pub(super) const fn epoch(self) -> u32 {
        (self.0 >> Self::HITS_BITS) as u32 & Self::LAST_EPOCH
    }

    /// The keyspace of the item.
    #[inline]
    pub(super) const fn keyspace(self) -> Keyspace {
        Keyspace::of_epoch(self.epoch())
    }

    /// Hits since the last decay: 0 to 3, where 3 means three or more.
    pub(super) const fn hits(self) -> u32 {
        (self.0 & Self::HITS) as u32
    }

    pub(super) const fn hit(self) -> Self {
        if self.0 & Self::HITS == Self::HITS {
            self
        } else {
            Self(self.0 + 1)
        }
    }

    /// The same number of hits with another expiry time and epoch.
    pub(super) const fn with_hits_of(self, other: Self) -> Self {
        Self(self.0 & !Self::HITS | other.0 & Self::HITS)
    }
}

/// The slots and how many of them hold an item.
#[derive(Default)]
pub(super) struct Table {
    slots: Box<[Slot]>,
    len: usize,
}

impl Table {
    /// Items in it.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Slots, empty ones included: 0 or a power of two.
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Bytes that a table of `slots` slots takes.
    pub(super) const fn bytes(slots: usize) -> usize {
        slots * size_of::<Slot>()
    }

    /// Whether the table is three quarters full. Up to that a hit looks at two or three slots.
    pub(super) fn is_full(&self) -> bool {
        self.len >= self.slots() / 4 * 3
    }

    /// The size after this one.
    pub(super) fn larger(&self) -> usize {
        (self.slots() * 2).max(SMALLEST)
    }

    pub(super) fn slot(&self, at: usize) -> &Slot {
        &self.slots[at]
    }

    pub(super) fn slot_mut(&mut self, at: usize) -> &mut Slot {
        &mut self.slots[at]
    }

    /// The slot at `at` unless it is empty.
    pub(super) fn occupied(&self, at: usize) -> Option<&Slot> {
        self.slots.get(at).filter(|slot| !slot.is_empty())
    }

    /// Starts loading the slots where a search begins. Most searches look at no others.
    pub(super) fn preload_slots(&self, hash: Hash) {
        const RUN: usize = 4;
        let home = hash.home() as usize & self.slots.len().wrapping_sub(1);
        if let Some(slots) = self.slots.get(home..self.slots.len().min(home.wrapping_add(RUN))) {
            prefetch(slots);
        }
    }

    /// Starts loading the item that a search will most likely find.
    pub(super) fn preload_item(&self, hash: Hash) {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hash.home() as usize & mask;
        while let Some(slot) = self.occupied(at) {
            if slot.home == hash.home() {
                return item::preload(&slot.bytes);
            }
            at = (at + 1) & mask;
        }
    }

    /// The position of `key` in its keyspace.
    #[inline]
    pub(super) fn find(&self, keyspace: Keyspace, hash: Hash, key: &[u8]) -> Option<usize> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hash.home() as usize & mask;
        loop {
            let slot = self.occupied(at)?;
            if slot.home == hash.home() {
                item::preload(&slot.bytes);
                if slot.life.keyspace() == keyspace && item::key(keyspace, &slot.bytes) == key {
                    return Some(at);
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Inserts an item whose key is not in the table, which must not be full. Returns its position.
    pub(super) fn insert(&mut self, hash: Hash, bytes: Box<[u8]>, life: Life, tick: u32) -> usize {
        self.len += 1;
        self.put(Slot {
            bytes,
            life,
            home: hash.home(),
            tick,
        })
    }

    /// The slots of the keys whose home is `home`.
    pub(super) fn at_home(&self, home: usize) -> impl Iterator<Item = &Slot> {
        let mask = self.slots.len().wrapping_sub(1);
        let run = (0..self.slots.len()).map(move |step| &self.slots[(home + step) & mask]);
        run.take_while(|slot| !slot.is_empty())
            .filter(move |slot| slot.home as usize & mask == home & mask)
    }

    /// The home that follows `home` in a walk through all of them, which begins and ends with 0. It counts
    /// from the highest bit down. The homes that one home becomes when the table is doubled thus follow each
    /// other, so that a walk neither leaves out nor repeats any (as Redis's SCAN does it).
    pub(super) fn after(&self, home: usize) -> usize {
        if self.slots.is_empty() {
            return 0;
        }
        let above = !(self.slots.len() - 1);
        (home | above).reverse_bits().wrapping_add(1).reverse_bits()
    }

    fn put(&mut self, slot: Slot) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = slot.home as usize & mask;
        while !self.slots[at].is_empty() {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
        at
    }

    /// Takes an item out. Items behind it may move to slots before theirs.
    pub(super) fn remove(&mut self, at: usize) -> Slot {
        let mask = self.slots.len() - 1;
        let removed = std::mem::take(&mut self.slots[at]);
        let (mut hole, mut next) = (at, (at + 1) & mask);
        while !self.slots[next].is_empty() {
            let home = self.slots[next].home as usize;
            // The item may move to the hole unless the hole lies before its home.
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(hole) & mask {
                self.slots.swap(hole, next);
                hole = next;
            }
            next = (next + 1) & mask;
        }
        self.len -= 1;
        removed
    }

    /// Moves all items to a table of `slots` slots, a power of two of at least 16 with room for them.
    pub(super) fn resize(&mut self, slots: usize) {
        let empty = std::iter::repeat_with(Slot::default).take(slots).collect();
        for slot in std::mem::replace(&mut self.slots, empty) {
            if !slot.is_empty() {
                self.put(slot);
            }
        }
    }
}
