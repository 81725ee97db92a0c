//! One worker at a time changes a key of a pool of copies.
//!
//! Lanes of different workers to one server keep no order among each other. Two changes of a key that overtake each other on
//! the way to one copy, and not on the way to another, would leave copies that differ for good, without any failure. So a
//! worker claims the key first, and gives the claim back when every copy has the change or is out: who reads a value at its
//! home and changes it through another worker finds that change behind this one, everywhere. Changes through one worker
//! share its claim as far as its lanes keep their order ([`Way`] says how far).
//!
//! A claim is a word in a table that all workers share, found by the key's hash: taking and giving back are one atomic
//! operation each. Keys that share a word wait for each other for nothing, which is rare and short. Who waits is next in
//! line: nobody who comes later overtakes it.

use std::{
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire},
    },
};

use ahash::RandomState;

/// Words: half a megabyte; with a hundred changes under way one in 650 waits for a key that is not its own.
const WORDS: usize = 1 << 16;
/// Words where there is one worker, whose changes wait for each other only when a home decides one of them or one is
/// streamed: 32 KiB, which stay in the processor's cache, as half a megabyte does not: that cost a `set` 3 % more.
const WORDS_OF_ONE: usize = 1 << 12;

/// How a change comes to all copies. It shares its key with changes of its worker that are under way already, if their ways
/// stand no lower here than its own; the last shares with none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// To all at once, on lanes that keep their order.
    #[default]
    AtOnce,
    /// To its home, and from there to the others, where what is sent to all meanwhile would be before it.
    ByHome,
    /// On lanes of its own. It needs its key for its last byte only, before which no server stores anything: a client that
    /// dawdles in the middle of a value keeps nobody waiting.
    Streamed,
}

/// Where the way stands in a word: above the number of changes.
const WAY: u32 = 30;

/// The claims of all workers of this process.
pub struct Claims {
    words: Box<[AtomicU64]>,
    hasher: RandomState,
}

/// Who holds a key, who is next, and for how many changes it is held. Workers are numbered from 1; 0 is nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Word {
    owner: u16,
    next: u16,
    /// Of these changes, the one that shares it with the fewest.
    way: Way,
    changes: u32,
}

impl Word {
    const fn of(bits: u64) -> Self {
        Self {
            owner: (bits >> 48) as u16,
            next: (bits >> 32) as u16,
            way: match bits as u32 >> WAY {
                0 => Way::AtOnce,
                1 => Way::ByHome,
                _ => Way::Streamed,
            },
            changes: bits as u32 & ((1 << WAY) - 1),
        }
    }

    const fn bits(self) -> u64 {
        let changes = self.changes | (self.way as u32) << WAY;
        (self.owner as u64) << 48 | (self.next as u64) << 32 | changes as u64
    }

    /// After `worker` has asked for it, and whether it got it.
    fn asked(self, worker: u16, way: Way) -> (Self, bool) {
        let is_free = self.changes == 0;
        if is_free && (self.next == 0 || self.next == worker) {
            let taken = Self {
                owner: worker,
                next: 0,
                way,
                changes: 1,
            };
            return (taken, true);
        }
        if self.next != 0 {
            return (self, false);
        }
        if self.owner == worker && self.way <= way && way < Way::Streamed {
            let changes = self.changes + 1;
            return (Self { way, changes, ..self }, true);
        }
        (Self { next: worker, ..self }, false)
    }

    /// After one change of the owner has ended.
    fn given_back(self) -> Self {
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

    /// After its streamed value has come to one more pool.
    const fn joined(self) -> Self {
        let changes = self.changes + 1;
        Self { changes, ..self }
    }

    /// After `worker` has stopped waiting.
    const fn left(self, worker: u16) -> Self {
        let next = if self.next == worker { 0 } else { self.next };
        Self { next, ..self }
    }
}

impl Claims {
    /// For so many workers. `seed` keeps who knows this program from choosing keys that share a word: draw it at random.
    pub fn new(workers: usize, seed: [u64; 4]) -> Self {
        let words = if workers == 1 { WORDS_OF_ONE } else { WORDS };
        Self {
            words: std::iter::repeat_with(AtomicU64::default).take(words).collect(),
            hasher: RandomState::with_seeds(seed[0], seed[1], seed[2], seed[3]),
        }
    }
}

/// One worker, as far as the others see it.
pub struct Claimant {
    claims: Arc<Claims>,
    worker: u16,
}

impl Claimant {
    /// Worker number `worker`, counted from 0.
    pub fn new(claims: Arc<Claims>, worker: usize) -> Rc<Self> {
        let worker = worker as u16 + 1;
        Rc::new(Self { claims, worker })
    }

    /// A claim of `key`, to be [asked](Claim::ask) for.
    pub fn claim(self: &Rc<Self>, key: &[u8], way: Way) -> Claim {
        Claim {
            claimant: Rc::clone(self),
            place: self.claims.hasher.hash_one(key) as usize & (self.claims.words.len() - 1),
            way,
            held: false,
        }
    }

    fn change(&self, place: usize, mut change: impl FnMut(Word) -> Word) {
        let word = &self.claims.words[place];
        // The closure always has an answer.
        let _ = word.fetch_update(AcqRel, Acquire, |bits| Some(change(Word::of(bits)).bits()));
    }
}

/// A key that is claimed, or waited for. Dropped, it is given back.
pub struct Claim {
    claimant: Rc<Claimant>,
    place: usize,
    way: Way,
    held: bool,
}

impl Claim {
    /// Claims of one place wait for each other.
    pub fn place(&self) -> usize {
        self.place
    }

    /// Takes it beside another of the same place and the same streamed value, which is held.
    pub fn join(&mut self) {
        if !self.held {
            self.held = true;
            self.claimant.change(self.place, Word::joined);
        }
    }

    /// Has it been got?
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Asks for it, if it has not been got before; whether it has now.
    pub fn ask(&mut self) -> bool {
        if !self.held {
            let (worker, way) = (self.claimant.worker, self.way);
            let held = &mut self.held;
            self.claimant.change(self.place, |word| {
                let (after, got) = word.asked(worker, way);
                *held = got;
                after
            });
        }
        self.held
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let worker = self.claimant.worker;
        match self.held {
            true => self.claimant.change(self.place, Word::given_back),
            false => self.claimant.change(self.place, |word| word.left(worker)),
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

    fn claimants(count: usize) -> Vec<Rc<Claimant>> {
        let claims = Arc::new(Claims::new(count, [1, 2, 3, 4]));
        (0..count)
            .map(|worker| Claimant::new(Arc::clone(&claims), worker))
            .collect()
    }

    #[test]
    fn one_worker_at_a_time_and_as_often_as_it_likes() {
        let [one, two] = &claimants(2)[..] else { panic!() };
        let (mut first, mut second) = (one.claim(b"k", Way::AtOnce), one.claim(b"k", Way::AtOnce));
        assert!(first.ask() && second.ask());
        let mut other = two.claim(b"k", Way::AtOnce);
        assert!(!other.ask());
        drop(first);
        assert!(!other.ask());
        drop(second);
        assert!(other.ask());
        assert!(!one.claim(b"k", Way::AtOnce).ask());
    }

    #[test]
    fn who_waits_is_overtaken_by_nobody() {
        let [one, two, three] = &claimants(3)[..] else {
            panic!()
        };
        let mut first = one.claim(b"k", Way::AtOnce);
        assert!(first.ask());
        let mut waits = two.claim(b"k", Way::AtOnce);
        assert!(!waits.ask());
        assert!(
            !one.claim(b"k", Way::AtOnce).ask(),
            "the owner gets no more of it"
        );
        drop(first);
        assert!(!one.claim(b"k", Way::AtOnce).ask() && !three.claim(b"k", Way::AtOnce).ask());
        assert!(waits.ask());
    }

    #[test]
    fn who_stops_waiting_stands_in_nobodys_way() {
        let [one, two] = &claimants(2)[..] else { panic!() };
        let mut first = one.claim(b"k", Way::AtOnce);
        assert!(first.ask());
        let mut waits = two.claim(b"k", Way::AtOnce);
        assert!(!waits.ask());
        drop(first);
        drop(waits);
        assert!(one.claim(b"k", Way::AtOnce).ask());
        let words = one.claims.words.iter();
        assert!(words.map(|word| word.load(SeqCst)).all(|bits| bits == 0));
    }

    #[test]
    fn what_is_sent_to_all_does_not_overtake_what_a_home_decides() {
        let [one] = &claimants(1)[..] else { panic!() };
        let mut sent = one.claim(b"k", Way::AtOnce);
        let mut decided = [one.claim(b"k", Way::ByHome), one.claim(b"k", Way::ByHome)];
        assert!(sent.ask() && decided[0].ask() && decided[1].ask());
        let mut next = one.claim(b"k", Way::AtOnce);
        assert!(!next.ask());
        assert!(
            !one.claim(b"k", Way::ByHome).ask(),
            "nor is it overtaken for ever"
        );
        drop(sent);
        assert!(!next.ask());
        drop(decided);
        assert!(next.ask());
    }

    #[test]
    fn a_streamed_value_has_its_key_alone() {
        let [one, two] = &claimants(2)[..] else { panic!() };
        let mut small = one.claim(b"k", Way::AtOnce);
        assert!(small.ask());
        let mut streamed = one.claim(b"k", Way::Streamed);
        assert!(!streamed.ask());
        assert!(!one.claim(b"k", Way::AtOnce).ask(), "it is next");
        drop(small);
        assert!(streamed.ask());
        assert!(!one.claim(b"k", Way::Streamed).ask() && !one.claim(b"k", Way::AtOnce).ask());
        assert!(!two.claim(b"k", Way::AtOnce).ask());
        let mut elsewhere = one.claim(b"k", Way::Streamed);
        elsewhere.join();
        drop(streamed);
        assert!(
            !two.claim(b"k", Way::AtOnce).ask(),
            "the value is on its way to another pool, too"
        );
        drop(elsewhere);
        assert!(two.claim(b"k", Way::AtOnce).ask());
    }

    #[test]
    fn threads_exclude_each_other_and_none_starves() {
        const TIMES: usize = 2_000;
        let claims = Arc::new(Claims::new(4, [5, 6, 7, 8]));
        let inside = AtomicUsize::new(0);
        thread::scope(|scope| {
            for worker in 0..4 {
                let (claims, inside) = (Arc::clone(&claims), &inside);
                scope.spawn(move || {
                    let me = Claimant::new(claims, worker);
                    for _ in 0..TIMES {
                        let mut claim = me.claim(b"k", Way::AtOnce);
                        while !claim.ask() {
                            thread::yield_now();
                        }
                        assert_eq!(inside.swap(worker + 1, SeqCst), 0);
                        assert_eq!(inside.swap(0, SeqCst), worker + 1);
                    }
                });
            }
        });
        assert!(claims.words.iter().all(|word| word.load(SeqCst) == 0));
    }
}
