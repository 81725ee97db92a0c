//! Counters of clients' sessions by state.

use std::collections::BTreeMap;

/// The numbers of sessions by the name of their protocol and by a word of that for their state.
#[derive(Clone, Debug, Default)]
pub struct SessionCounts(BTreeMap<(&'static str, &'static str), u64>);

impl SessionCounts {
    /// Counts one more.
    pub fn count(&mut self, protocol: &'static str, state: &'static str) {
        *self.0.entry((protocol, state)).or_default() += 1;
    }

    /// Adds the counts of another worker.
    pub(super) fn add(&mut self, other: &Self) {
        for (&key, &count) in &other.0 {
            *self.0.entry(key).or_default() += count;
        }
    }

    /// Protocol, state and number.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        self.0
            .iter()
            .map(|(&(protocol, state), &count)| (protocol, state, count))
    }
}
