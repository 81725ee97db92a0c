//! Counts by names that clients or servers choose.

use std::collections::BTreeMap;

/// The most names that are counted; all others together are counted as [`OTHER`].
const MOST: usize = 64;
/// The longest name, in bytes; a longer one is cut.
const LONGEST: usize = 48;
const OTHER: &str = "other";

/// Counts by name. There is a limit to their number, because strangers choose the names.
#[derive(Clone, Debug, Default)]
pub struct NamedCounts(BTreeMap<String, u64>);

impl NamedCounts {
    /// Counts one more of this name.
    pub fn count(&mut self, name: &[u8]) {
        let cut = &name[..name.len().min(LONGEST)];
        self.add_to(&String::from_utf8_lossy(cut), 1);
    }

    fn add_to(&mut self, name: &str, count: u64) {
        if let Some(counted) = self.0.get_mut(name) {
            *counted += count;
            return;
        }
        let name = if self.0.len() < MOST { name } else { OTHER };
        *self.0.entry(name.to_owned()).or_insert(0) += count;
    }

    /// Adds the counts of another worker.
    pub(super) fn add(&mut self, other: &Self) {
        other.0.iter().for_each(|(name, &count)| self.add_to(name, count));
    }

    /// Each name with its count.
    pub fn all(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, &count)| (name.as_str(), count))
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, MOST, NamedCounts, OTHER};

    #[test]
    fn names_without_end_take_bounded_memory() {
        let (mut counts, mut sum) = (NamedCounts::default(), NamedCounts::default());
        for n in 0..1000 {
            counts.count(format!("{n}{}", "x".repeat(1000)).as_bytes());
        }
        sum.add(&counts);
        sum.add(&counts);
        assert!(sum.all().count() == MOST + 1 && sum.all().all(|(name, _)| name.len() <= LONGEST));
        assert_eq!(sum.all().map(|(_, count)| count).sum::<u64>(), 2000);
        assert!(sum.all().any(|(name, count)| name == OTHER && count > 1000));
    }
}
