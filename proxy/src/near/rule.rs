//! A rule of the near cache: how long replies are kept. Its settings change while the process runs.

use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

use crate::micros::Micros;

/// The settings of a rule. Times are spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleSettings {
    /// A reply is fresh for so long; zero: nothing is kept.
    pub ttl: Micros,
    /// The part of `ttl` by which the time of a single reply may be shorter, in per cent.
    pub jitter: u8,
    /// The time after `ttl` for which the old reply is given while one request renews it.
    pub stale: Micros,
    /// After `ttl`, the old reply stands for an error for so long.
    pub stale_on_error: Micros,
    /// A miss is kept for so long; zero: it is not.
    pub negative: Micros,
    /// The largest reply that is kept, in bytes.
    pub largest: u64,
}

/// A rule, with the identity by which its entries are found.
#[derive(Debug)]
pub struct Rule {
    /// Its name, which no other rule of the configuration has.
    pub name: Box<str>,
    /// The number of its place among the counts.
    pub slot: u16,
    /// The number that its entries carry. Entries with another number are no longer found, so a new number
    /// drops all of them at once.
    number: AtomicU32,
    /// How often some of its entries were dropped. A fill that began before is not kept.
    drops: AtomicU32,
    ttl: AtomicU64,
    jitter: AtomicU32,
    stale: AtomicU64,
    stale_on_error: AtomicU64,
    negative: AtomicU64,
    largest: AtomicU64,
}

/// The numbers of rules that were given out. No two rules of the process have the same.
static NUMBERS: AtomicU32 = AtomicU32::new(1);

impl Rule {
    /// A rule without entries.
    pub fn new(name: &str, slot: u16, settings: &RuleSettings) -> Self {
        let rule = Self {
            name: name.into(),
            slot,
            number: AtomicU32::new(NUMBERS.fetch_add(1, Relaxed)),
            drops: AtomicU32::new(0),
            ttl: AtomicU64::new(0),
            jitter: AtomicU32::new(0),
            stale: AtomicU64::new(0),
            stale_on_error: AtomicU64::new(0),
            negative: AtomicU64::new(0),
            largest: AtomicU64::new(0),
        };
        rule.set(settings);
        rule
    }

    /// The number of its entries.
    #[inline]
    pub fn number(&self) -> u32 {
        self.number.load(SeqCst)
    }

    /// Is anything kept by this rule?
    #[inline]
    pub fn is_on(&self) -> bool {
        self.ttl.load(Relaxed) > 0
    }

    /// The settings in force.
    pub fn settings(&self) -> RuleSettings {
        let span = |of: &AtomicU64| Micros(of.load(Relaxed));
        RuleSettings {
            ttl: span(&self.ttl),
            jitter: self.jitter.load(Relaxed) as u8,
            stale: span(&self.stale),
            stale_on_error: span(&self.stale_on_error),
            negative: span(&self.negative),
            largest: self.largest.load(Relaxed),
        }
    }

    /// Puts other settings in force, for what is kept already, too.
    pub fn set(&self, settings: &RuleSettings) {
        self.ttl.store(settings.ttl.0, Relaxed);
        self.jitter.store(u32::from(settings.jitter), Relaxed);
        self.stale.store(settings.stale.0, Relaxed);
        self.stale_on_error.store(settings.stale_on_error.0, Relaxed);
        self.negative.store(settings.negative.0, Relaxed);
        self.largest.store(settings.largest, Relaxed);
    }

    /// How often some of its entries were dropped.
    pub(super) fn drops(&self) -> u32 {
        self.drops.load(SeqCst)
    }

    /// Some of its entries are about to be dropped.
    pub(super) fn begin_drop(&self) {
        self.drops.fetch_add(1, SeqCst);
    }

    /// Drops all its entries: none of them is found from now on, and no fill that is under way is kept. Their
    /// memory is freed by [`Entries::sweep`](super::Entries::sweep), or as others need it.
    pub fn drop_all(&self) {
        self.number.store(NUMBERS.fetch_add(1, Relaxed), SeqCst);
    }
}

impl RuleSettings {
    /// These settings, with those that a configuration says otherwise than the one before it. What was
    /// changed while the process runs stays as long as the configuration says the same.
    pub fn following(&self, before: &Self, after: &Self) -> Self {
        fn follow<T: PartialEq>(now: T, before: T, after: T) -> T {
            if before == after { now } else { after }
        }
        Self {
            ttl: follow(self.ttl, before.ttl, after.ttl),
            jitter: follow(self.jitter, before.jitter, after.jitter),
            stale: follow(self.stale, before.stale, after.stale),
            stale_on_error: follow(self.stale_on_error, before.stale_on_error, after.stale_on_error),
            negative: follow(self.negative, before.negative, after.negative),
            largest: follow(self.largest, before.largest, after.largest),
        }
    }

    /// The time for which an entry is fresh. `chance`: the entry's own, from 0 to 255.
    #[inline]
    pub(super) fn fresh(&self, is_miss: bool, chance: u8) -> Micros {
        let span = if is_miss { self.negative } else { self.ttl };
        let part = u64::from(self.jitter) * u64::from(chance);
        // Above 22 years it is a smaller part.
        let less = span.0.saturating_mul(part) / (100 * 255);
        span - Micros(less)
    }

    /// The time after which an entry is useless, with the same chance.
    #[inline]
    pub(super) fn useful(&self, is_miss: bool, chance: u8) -> Micros {
        let more = match is_miss {
            true => Micros::ZERO,
            false => self.stale.max(self.stale_on_error),
        };
        self.fresh(is_miss, chance) + more
    }
}
