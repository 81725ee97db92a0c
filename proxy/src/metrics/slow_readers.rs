//! Clients that take what is sent to them more slowly than it comes.

use crate::micros::Micros;

/// Gauges about clients that have not taken all that was sent to them. They are looked at once a second, so that
/// one that takes it within a moment is seldom seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowReaders {
    /// The number of them.
    pub clients: u64,
    /// Bytes that their sockets have not taken.
    pub bytes: u64,
    /// For how long the first of them has been one.
    pub longest: Micros,
}

impl SlowReaders {
    /// Counts one for which so many bytes have waited for so long.
    pub fn count(&mut self, bytes: usize, since: Micros) {
        self.add(&Self {
            clients: 1,
            bytes: bytes as u64,
            longest: since,
        });
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.clients += other.clients;
        self.bytes += other.bytes;
        self.longest = self.longest.max(other.longest);
    }
}

#[cfg(test)]
mod tests {
    use super::SlowReaders;
    use crate::micros::Micros;

    #[test]
    fn of_all_workers_the_longest_time_counts_and_the_rest_is_a_sum() {
        let (mut all, mut other) = (SlowReaders::default(), SlowReaders::default());
        all.count(10, Micros(7));
        other.count(20, Micros(9));
        other.count(30, Micros(8));
        all.add(&other);
        assert_eq!((all.clients, all.bytes, all.longest), (3, 60, Micros(9)));
    }
}
