//! The replies that a shard keeps of each rule, and those that went, by reason.

use std::ops::AddAssign;

use super::entry::Entry;

/// Why a kept reply went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalReason {
    /// A request changed its key.
    Changed,
    /// A request changed everything.
    Flushed,
    /// An operator dropped it, or its rule was switched off or replaced.
    Dropped,
    /// Its time was over.
    Expired,
    /// It made room for others.
    Evicted,
}

impl RemovalReason {
    /// All reasons, each at the place of its count.
    pub const ALL: [Self; 5] = [
        Self::Changed,
        Self::Flushed,
        Self::Dropped,
        Self::Expired,
        Self::Evicted,
    ];

    /// Its name for operators.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Flushed => "flushed",
            Self::Dropped => "dropped",
            Self::Expired => "expired",
            Self::Evicted => "evicted",
        }
    }
}

/// The replies that are kept by one rule, and those that went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleUsage {
    /// Kept replies. Those that were dropped at once are among them until their memory is free.
    pub entries: u64,
    /// Their bytes, with keys and forms, without what finds them.
    pub bytes: u64,
    gone: [u64; RemovalReason::ALL.len()],
}

impl RuleUsage {
    /// How many replies went for this reason.
    pub const fn gone(&self, why: RemovalReason) -> u64 {
        self.gone[why as usize]
    }
}

impl AddAssign for RuleUsage {
    fn add_assign(&mut self, other: Self) {
        self.entries += other.entries;
        self.bytes += other.bytes;
        for (mine, theirs) in self.gone.iter_mut().zip(other.gone) {
            *mine += theirs;
        }
    }
}

/// The usage of each rule in one shard, by the numbers of their places.
#[derive(Debug, Default)]
pub(super) struct Tally(Vec<RuleUsage>);

impl Tally {
    fn of(&mut self, entry: &Entry) -> &mut RuleUsage {
        let slot = usize::from(entry.rule.slot);
        if slot >= self.0.len() {
            self.0.resize_with(slot + 1, RuleUsage::default);
        }
        &mut self.0[slot]
    }

    pub(super) fn get(&self, slot: u16) -> RuleUsage {
        self.0.get(usize::from(slot)).copied().unwrap_or_default()
    }

    /// A reply is kept from now on.
    pub(super) fn came(&mut self, entry: &Entry) {
        let usage = self.of(entry);
        usage.entries += 1;
        usage.bytes += entry.memory() as u64;
    }

    /// A reply is no longer kept. `None`: a newer one took its place.
    pub(super) fn went(&mut self, entry: &Entry, why: Option<RemovalReason>) {
        let usage = self.of(entry);
        usage.entries -= 1;
        usage.bytes -= entry.memory() as u64;
        if let Some(why) = why {
            usage.gone[why as usize] += 1;
        }
    }
}
