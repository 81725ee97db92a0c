//! The state that all workers of a process share: the clock, the newest stamps, and the floor.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, SeqCst},
};

use super::{
    Rules,
    open::Open,
    stamps::{KeyStamp, Stamps},
};
use crate::fleet::{Slot, Stamp};

/// The clocks of two peers may differ by this much, in microseconds. A stamp that is further ahead is
/// refused: it would move all clocks of the fleet ahead.
const AHEAD: u64 = 60_000_000;

/// The state of a keeper that its workers share.
pub struct Shared {
    stamps: Stamps,
    /// The time of the newest stamp that was drawn or seen, in microseconds.
    clock: AtomicU64,
    /// A change up to this stamp is not stored: its key is deleted.
    floor: AtomicU64,
    /// Keys with changes that may not be at all copies.
    pub(super) open: Open,
}

/// The decision on a change at a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is the newest of its key, and is applied.
    Store,
    /// It cannot be told whether it is the newest: its key is deleted.
    Delete,
    /// A newer one was applied before.
    Superseded,
    /// It was not decided, and is older than a decided one: its coordinator has to draw a later stamp than
    /// this.
    Decided(Stamp),
}

/// The changes of a key that a copy has had by some moment. If two of them are equal, the copy had no change
/// in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHistory {
    known: KeyStamp,
    floor: u64,
}

impl Shared {
    /// A keeper that has not joined: every change deletes its key.
    pub fn new() -> Self {
        Self::of(Stamps::full(), Open::full())
    }

    /// The same with a small table, for models.
    pub fn small() -> Self {
        Self::of(Stamps::new(1), Open::new(1))
    }

    /// The same state once more, for models.
    pub(super) fn fork(&self) -> Self {
        Self {
            stamps: self.stamps.fork(),
            clock: AtomicU64::new(self.clock.load(Acquire)),
            floor: AtomicU64::new(self.floor.load(Acquire)),
            open: self.open.fork(),
        }
    }

    /// All words of the state, for models.
    pub(super) fn words(&self) -> impl Iterator<Item = u64> {
        let words = [self.clock.load(Acquire), self.floor.load(Acquire)];
        words.into_iter().chain(self.stamps.words())
    }

    fn of(stamps: Stamps, open: Open) -> Self {
        Self {
            stamps,
            clock: AtomicU64::new(0),
            floor: AtomicU64::new(u64::MAX),
            open,
        }
    }

    /// A stamp later than all that were drawn or seen. `now`: Unix time, in microseconds.
    pub fn draw(&self, now: u64, slot: Slot) -> Stamp {
        let next = |last: u64| Some(now.max(last + 1));
        let last = self.clock.fetch_update(AcqRel, Acquire, next).unwrap_or_default();
        Stamp::new(now.max(last + 1), slot)
    }

    /// Notes a stamp of a peer. Returns `false` if it is too far ahead to be true.
    #[must_use]
    pub fn see(&self, stamp: Stamp, now: u64) -> bool {
        let is_sane = stamp.micros() <= now.saturating_add(AHEAD);
        if is_sane {
            self.clock.fetch_max(stamp.micros(), AcqRel);
        }
        is_sane
    }

    /// Makes the next stamp later than this one, which a peer has sent.
    pub(super) fn advance(&self, stamp: Stamp) {
        self.clock.fetch_max(stamp.micros(), AcqRel);
    }

    /// The stamp of the newest change that was drawn or seen. No change that was acknowledged by this peer is
    /// later.
    pub fn clock(&self) -> Stamp {
        Stamp::new(self.clock.load(Acquire) + 1, Slot(0))
    }

    /// From now on, changes up to this stamp are not stored.
    pub fn set_floor(&self, floor: Stamp) {
        if floor != Stamp::MAX {
            self.clock.fetch_max(floor.micros(), AcqRel);
        }
        self.floor.store(floor.bits(), SeqCst);
    }

    /// Raises the floor: changes up to this stamp are not stored.
    pub fn raise_floor(&self, floor: Stamp) {
        let raised = |old: u64| (old != u64::MAX && old < floor.bits()).then_some(floor.bits());
        // Where there is no floor, everything is below it.
        let _ = self.floor.fetch_update(SeqCst, SeqCst, raised);
    }

    /// Has this peer a floor? It gets one from its donor.
    pub fn has_floor(&self) -> bool {
        self.floor.load(Acquire) != u64::MAX
    }

    /// There is no floor: this peer has left.
    pub fn drop_floor(&self) {
        self.set_floor(Stamp::MAX);
    }

    /// Judges a change of the key with this hash, which the caller has locked. If it is stored, or deletes
    /// its key, its stamp is noted.
    pub(super) fn judge(&self, hash: u64, stamp: Stamp, rules: Rules) -> Fate {
        let known = self.stamps.get(hash);
        let (newest, decided) = match known {
            KeyStamp::Newest(newest, decided) => (newest, decided),
            KeyStamp::Forgotten(floor) if floor.is_decided() => (floor, floor),
            KeyStamp::Forgotten(floor) => (floor, Stamp::ZERO),
        };
        // A newer plain change does not help: it may not be everywhere yet, and the decided one is read
        // there.
        if stamp < decided && !stamp.is_decided() && rules.decided {
            return Fate::Decided(newest.max(decided));
        }
        if stamp <= newest && rules.stamps {
            return match known {
                // The same change again, or an older one.
                KeyStamp::Newest(..) => Fate::Superseded,
                KeyStamp::Forgotten(_) => Fate::Delete,
            };
        }
        self.stamps.raise(hash, stamp);
        let floor = self.floor.load(Acquire);
        let is_below = match floor {
            u64::MAX => rules.no_floor_deletes,
            _ => rules.floor && stamp.bits() <= floor,
        };
        if is_below { Fate::Delete } else { Fate::Store }
    }

    /// The changes of the key with this hash that this copy has had, if no change of it is open; `flush`: the
    /// hash of a change of all keys of its pool. `None`: another copy may lack a change that this one has.
    pub fn history(&self, hash: u64, flush: u64) -> Option<KeyHistory> {
        // The stamp is read first: a change that comes between is open, or changes the stamp.
        let history = KeyHistory {
            known: self.stamps.get(hash),
            floor: self.floor.load(SeqCst),
        };
        let is_open = self.open.has(hash) || self.open.has(flush) || history.floor == u64::MAX;
        (!is_open).then_some(history)
    }

    /// Notes that the own copy has this change, which was drawn here under the key's lock.
    pub fn note(&self, hash: u64, stamp: Stamp) {
        self.stamps.raise(hash, stamp);
    }
}

impl Default for Shared {
    fn default() -> Self {
        Self::new()
    }
}
