//! Counts about the near cache, by rule.

use crate::{micros::Micros, near::Refusal};

/// The counts of one rule.
#[derive(Clone, Debug, Default)]
pub struct NearRuleCounts {
    /// Requests that were answered from what is kept.
    pub hits: u64,
    /// Hits on replies whose time was over.
    pub stale: u64,
    /// Hits on replies that say that there is nothing.
    pub negative: u64,
    /// The time for which replies had been kept at hits, in µs, of all hits together.
    pub age: u64,
    /// Requests for which nothing was kept, and which were the first to ask.
    pub misses: u64,
    /// Requests that waited for a reply that was under way for another one.
    pub joined: u64,
    /// Requests that were sent to fetch a reply.
    pub fills: u64,
    /// The time that fetching took, in µs, of all replies that came together.
    pub fetching: u64,
    /// Replies that were fetched and kept.
    pub kept: u64,
    /// Replies that were not kept because the key, or everything, had changed meanwhile.
    pub refused_changed: u64,
    /// Replies that were not kept because the rule had been emptied meanwhile.
    pub refused_off: u64,
    /// Replies that were not kept because they are too large.
    pub refused_large: u64,
    /// Replies that were not kept because the kept ones are not asked for again.
    pub refused_unasked: u64,
    /// Replies that were not kept because they were errors.
    pub refused_error: u64,
    /// Replies that were not kept because they are for one client alone.
    pub refused_unfit: u64,
    /// Requests that passed because a change of their key was under way.
    pub passed_changing: u64,
    /// Requests that passed because their reply is known not to be kept.
    pub passed_unkept: u64,
    /// Requests that passed because their reply would not have been kept: the kept ones are not asked for again.
    pub passed_unasked: u64,
    /// Requests that were answered with an old reply in place of an error.
    pub stood_for_errors: u64,
}

impl NearRuleCounts {
    fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.all_mut().into_iter().zip(other.clone().all_mut()) {
            *mine += *theirs;
        }
    }

    fn all_mut(&mut self) -> [&mut u64; 19] {
        [
            &mut self.hits,
            &mut self.stale,
            &mut self.negative,
            &mut self.age,
            &mut self.misses,
            &mut self.joined,
            &mut self.fills,
            &mut self.fetching,
            &mut self.kept,
            &mut self.refused_changed,
            &mut self.refused_off,
            &mut self.refused_large,
            &mut self.refused_unasked,
            &mut self.refused_error,
            &mut self.refused_unfit,
            &mut self.passed_changing,
            &mut self.passed_unkept,
            &mut self.passed_unasked,
            &mut self.stood_for_errors,
        ]
    }

    /// The time that hits have saved, in µs: each hit saves the average time of a fetch.
    pub fn saved(&self) -> u64 {
        let fetched = self.kept.max(1);
        (u128::from(self.fetching) * u128::from(self.hits) / u128::from(fetched)) as u64
    }
}

/// The counts of all rules, by the numbers of their places.
#[derive(Clone, Debug, Default)]
pub struct NearCounts(Vec<NearRuleCounts>);

impl NearCounts {
    /// The counts of the rule at this place.
    pub fn get(&self, slot: u16) -> NearRuleCounts {
        self.0.get(usize::from(slot)).cloned().unwrap_or_default()
    }

    pub(crate) fn of(&mut self, slot: u16) -> &mut NearRuleCounts {
        let slot = usize::from(slot);
        if slot >= self.0.len() {
            self.0.resize_with(slot + 1, NearRuleCounts::default);
        }
        &mut self.0[slot]
    }

    /// Counts a hit.
    #[inline]
    pub(crate) fn hit(&mut self, slot: u16, age: Micros, is_stale: bool, is_miss: bool) {
        let counts = self.of(slot);
        counts.hits += 1;
        counts.age += age.0;
        counts.stale += u64::from(is_stale);
        counts.negative += u64::from(is_miss);
    }

    /// Counts what has become of a reply that was fetched, in this time.
    pub(crate) fn fetched(&mut self, slot: u16, result: Result<(), Refusal>, took: Micros) {
        let counts = self.of(slot);
        match result {
            Ok(()) => {
                counts.kept += 1;
                counts.fetching += took.0;
            }
            Err(Refusal::Changed) => counts.refused_changed += 1,
            Err(Refusal::Off) => counts.refused_off += 1,
            Err(Refusal::TooLarge) => counts.refused_large += 1,
            Err(Refusal::Unasked) => counts.refused_unasked += 1,
        }
    }

    /// Adds the counts of another worker.
    pub(super) fn add(&mut self, other: &Self) {
        for (slot, counts) in other.0.iter().enumerate() {
            self.of(slot as u16).add(counts);
        }
    }
}
