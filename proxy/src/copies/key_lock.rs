//! One worker at a time changes a key of a replicated pool.
//!
//! Connections of different workers to one server keep no order among each other. Two changes of a key that
//! overtake each other on the way to one copy, and not on the way to another, would leave copies that differ
//! for good, without any failure. Therefore a worker locks the key first, and unlocks it when every copy has
//! the change or is out: a client that reads a value at its home and changes it through another worker finds
//! that change behind this one, everywhere. Changes through one worker share its lock as far as its lanes
//! keep their order ([`LockMode`] says how far).
//!
//! A lock is a word in a table that all workers share, found by the key's hash: locking and unlocking are one
//! atomic operation each. Keys that share a word wait for each other without need, which is rare and short. A
//! worker that waits is next in line: no later one overtakes it.

use std::{
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire},
    },
};

use ahash::RandomState;

/// Words of the table, half a megabyte: with a hundred changes under way, one in 650 waits for a key that is
/// not its own.
const WORDS: usize = 1 << 16;
/// Words where there is one worker, whose changes wait for each other only when a home decides one of them or
/// one is streamed. These 32 KiB stay in the processor's cache; half a megabyte does not, which cost a `set`
/// 3 % more.
const WORDS_OF_ONE: usize = 1 << 12;

/// The way of a change to all copies. It shares the lock with changes of its worker that hold it already, if
/// their modes are not below its own in this list. The last mode shares with no change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    /// To all at once, on lanes that keep their order.
    #[default]
    AtOnce,
    /// To its home, and from there to the others, where what is sent to all meanwhile would be before it.
    ByHome,
    /// On lanes of its own. It needs the lock for its last byte only, before which no server stores anything:
    /// a client that pauses in the middle of a value delays no other change.
    Streamed,
}

/// The bit of a word at which the mode begins, above the number of changes.
const MODE: u32 = 30;

/// The table of locks that all workers of this process share.
pub struct KeyLocks {
    words: Box<[AtomicU64]>,
    hasher: RandomState,
}

/// The worker that holds a key, the next in line, and for how many changes it is held. Workers count from 1;
/// 0 stands for no worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Word {
    owner: u16,
    next: u16,
    /// The mode of the change that shares the lock with the fewest others.
    mode: LockMode,
    changes: u32,
}

impl Word {
    const fn of(bits: u64) -> Self {
        Self {
            owner: (bits >> 48) as u16,
            next: (bits >> 32) as u16,
            mode: match bits as u32 >> MODE {
                0 => LockMode::AtOnce,
                1 => LockMode::ByHome,
                _ => LockMode::Streamed,
            },
            changes: bits as u32 & ((1 << MODE) - 1),
        }
    }

    const fn bits(self) -> u64 {
        let changes = self.changes | (self.mode as u32) << MODE;
        (self.owner as u64) << 48 | (self.next as u64) << 32 | changes as u64
    }

    /// The word after `worker` has asked for the lock, and whether it got it.
    fn requested(self, worker: u16, mode: LockMode) -> (Self, bool) {
        let is_free = self.changes == 0;
        if is_free && (self.next == 0 || self.next == worker) {
            let taken = Self {
                owner: worker,
                next: 0,
                mode,
                changes: 1,
            };
            return (taken, true);
        }
        if self.next != 0 {
            return (self, false);
        }
        if self.owner == worker && self.mode <= mode && mode < LockMode::Streamed {
            let changes = self.changes + 1;
            return (
                Self {
                    mode,
                    changes,
                    ..self
                },
                true,
            );
        }
        (Self { next: worker, ..self }, false)
    }

    /// The word after one change of the owner has ended.
    fn unlocked(self) -> Self {
        let changes = self.changes.saturating_sub(1);
        if changes > 0 {
            return Self { changes, ..self };
        }
        let next = self.next;
        Self {
            next,
            ..Self::default()
        }
    }

    /// The word after the owner's streamed value has come to one more pool.
    const fn shared(self) -> Self {
        let changes = self.changes + 1;
        Self { changes, ..self }
    }

    /// The word after `worker` has stopped waiting.
    const fn abandoned(self, worker: u16) -> Self {
        let next = if self.next == worker { 0 } else { self.next };
        Self { next, ..self }
    }
}

impl KeyLocks {
    /// A table for this number of workers. `seed` keeps clients from choosing keys that share a word: draw it
    /// at random.
    pub fn new(workers: usize, seed: [u64; 4]) -> Self {
        let words = if workers == 1 { WORDS_OF_ONE } else { WORDS };
        Self {
            words: std::iter::repeat_with(AtomicU64::default).take(words).collect(),
            hasher: RandomState::with_seeds(seed[0], seed[1], seed[2], seed[3]),
        }
    }
}

/// One worker, as the other holders see it.
pub struct Holder {
    locks: Arc<KeyLocks>,
    worker: u16,
}

impl Holder {
    /// The holder of worker number `worker`, counted from 0.
    pub fn new(locks: Arc<KeyLocks>, worker: usize) -> Rc<Self> {
        let worker = worker as u16 + 1;
        Rc::new(Self { locks, worker })
    }

    /// The lock of `key`, not yet [tried](KeyLock::try_lock).
    pub fn lock(self: &Rc<Self>, key: &[u8], mode: LockMode) -> KeyLock {
        KeyLock {
            holder: Rc::clone(self),
            index: self.locks.hasher.hash_one(key) as usize & (self.locks.words.len() - 1),
            mode,
            held: false,
        }
    }

    fn change(&self, index: usize, mut change: impl FnMut(Word) -> Word) {
        let word = &self.locks.words[index];
        // The closure always has an answer.
        let _ = word.fetch_update(AcqRel, Acquire, |bits| Some(change(Word::of(bits)).bits()));
    }
}

/// A key that is locked, or waited for. Dropping it unlocks the key, or ends the wait.
pub struct KeyLock {
    holder: Rc<Holder>,
    index: usize,
    mode: LockMode,
    held: bool,
}

impl KeyLock {
    /// The index of the lock's word in the table: locks with the same word wait for each other.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Takes it together with another lock that is held, of the same index and the same streamed value.
    pub fn share(&mut self) {
        if !self.held {
            self.held = true;
            self.holder.change(self.index, Word::shared);
        }
    }

    /// Is the key locked?
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Locks the key, unless that is done; returns whether it is locked now.
    pub fn try_lock(&mut self) -> bool {
        if !self.held {
            let (worker, mode) = (self.holder.worker, self.mode);
            let held = &mut self.held;
            self.holder.change(self.index, |word| {
                let (after, got) = word.requested(worker, mode);
                *held = got;
                after
            });
        }
        self.held
    }
}

impl Drop for KeyLock {
    fn drop(&mut self) {
        let worker = self.holder.worker;
        match self.held {
            true => self.holder.change(self.index, Word::unlocked),
            false => self.holder.change(self.index, |word| word.abandoned(worker)),
        };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods)]

    use std::{
        sync::atomic::{AtomicUsize, Ordering::SeqCst},
        thread,
    };

    use super::*;

    fn holders(count: usize) -> Vec<Rc<Holder>> {
        let locks = Arc::new(KeyLocks::new(count, [1, 2, 3, 4]));
        (0..count)
            .map(|worker| Holder::new(Arc::clone(&locks), worker))
            .collect()
    }

    #[test]
    fn one_worker_at_a_time_locks_a_key_as_often_as_it_likes() {
        let [one, two] = &holders(2)[..] else { panic!() };
        let (mut first, mut second) = (one.lock(b"k", LockMode::AtOnce), one.lock(b"k", LockMode::AtOnce));
        assert!(first.try_lock() && second.try_lock());
        let mut other = two.lock(b"k", LockMode::AtOnce);
        assert!(!other.try_lock());
        drop(first);
        assert!(!other.try_lock());
        drop(second);
        assert!(other.try_lock());
        assert!(!one.lock(b"k", LockMode::AtOnce).try_lock());
    }

    #[test]
    fn waiting_worker_is_overtaken_by_nobody() {
        let [one, two, three] = &holders(3)[..] else {
            panic!()
        };
        let mut first = one.lock(b"k", LockMode::AtOnce);
        assert!(first.try_lock());
        let mut waits = two.lock(b"k", LockMode::AtOnce);
        assert!(!waits.try_lock());
        assert!(
            !one.lock(b"k", LockMode::AtOnce).try_lock(),
            "the owner gets no more of it"
        );
        drop(first);
        assert!(
            !one.lock(b"k", LockMode::AtOnce).try_lock() && !three.lock(b"k", LockMode::AtOnce).try_lock()
        );
        assert!(waits.try_lock());
    }

    #[test]
    fn worker_that_stops_waiting_blocks_nobody() {
        let [one, two] = &holders(2)[..] else { panic!() };
        let mut first = one.lock(b"k", LockMode::AtOnce);
        assert!(first.try_lock());
        let mut waits = two.lock(b"k", LockMode::AtOnce);
        assert!(!waits.try_lock());
        drop(first);
        drop(waits);
        assert!(one.lock(b"k", LockMode::AtOnce).try_lock());
        let words = one.locks.words.iter();
        assert!(words.map(|word| word.load(SeqCst)).all(|bits| bits == 0));
    }

    #[test]
    fn what_is_sent_to_all_does_not_overtake_what_a_home_decides() {
        let [one] = &holders(1)[..] else { panic!() };
        let mut sent = one.lock(b"k", LockMode::AtOnce);
        let mut decided = [one.lock(b"k", LockMode::ByHome), one.lock(b"k", LockMode::ByHome)];
        assert!(sent.try_lock() && decided[0].try_lock() && decided[1].try_lock());
        let mut next = one.lock(b"k", LockMode::AtOnce);
        assert!(!next.try_lock());
        assert!(
            !one.lock(b"k", LockMode::ByHome).try_lock(),
            "nor is it overtaken for ever"
        );
        drop(sent);
        assert!(!next.try_lock());
        drop(decided);
        assert!(next.try_lock());
    }

    #[test]
    fn a_streamed_value_has_its_key_alone() {
        let [one, two] = &holders(2)[..] else { panic!() };
        let mut small = one.lock(b"k", LockMode::AtOnce);
        assert!(small.try_lock());
        let mut streamed = one.lock(b"k", LockMode::Streamed);
        assert!(!streamed.try_lock());
        assert!(!one.lock(b"k", LockMode::AtOnce).try_lock(), "it is next");
        drop(small);
        assert!(streamed.try_lock());
        assert!(
            !one.lock(b"k", LockMode::Streamed).try_lock() && !one.lock(b"k", LockMode::AtOnce).try_lock()
        );
        assert!(!two.lock(b"k", LockMode::AtOnce).try_lock());
        let mut elsewhere = one.lock(b"k", LockMode::Streamed);
        elsewhere.share();
        drop(streamed);
        assert!(
            !two.lock(b"k", LockMode::AtOnce).try_lock(),
            "the value is on its mode to another pool, too"
        );
        drop(elsewhere);
        assert!(two.lock(b"k", LockMode::AtOnce).try_lock());
    }

    #[test]
    fn threads_exclude_each_other_and_none_starves() {
        const TIMES: usize = 2_000;
        let locks = Arc::new(KeyLocks::new(4, [5, 6, 7, 8]));
        let inside = AtomicUsize::new(0);
        thread::scope(|scope| {
            for worker in 0..4 {
                let (locks, inside) = (Arc::clone(&locks), &inside);
                scope.spawn(move || {
                    let me = Holder::new(locks, worker);
                    for _ in 0..TIMES {
                        let mut lock = me.lock(b"k", LockMode::AtOnce);
                        while !lock.try_lock() {
                            thread::yield_now();
                        }
                        assert_eq!(inside.swap(worker + 1, SeqCst), 0);
                        assert_eq!(inside.swap(0, SeqCst), worker + 1);
                    }
                });
            }
        });
        assert!(locks.words.iter().all(|word| word.load(SeqCst) == 0));
    }
}
