//! Events in a store, under the names that memcached's `stats` gives them.

/// A counted event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Counter {
    /// Keys read and found.
    GetHits,
    /// Keys read and not found.
    GetMisses,
    /// Keys read and found expired.
    GetExpired,
    /// Keys read and found flushed.
    GetFlushed,
    /// Values sent to be stored.
    Sets,
    /// Keys touched and found.
    TouchHits,
    /// Keys touched and not found.
    TouchMisses,
    /// Keys deleted.
    DeleteHits,
    /// Keys to be deleted and not found.
    DeleteMisses,
    /// Numbers increased.
    IncrHits,
    /// Numbers to be increased and not found.
    IncrMisses,
    /// Numbers decreased.
    DecrHits,
    /// Numbers to be decreased and not found.
    DecrMisses,
    /// Values stored because the cas id matched.
    CasHits,
    /// Values not stored because there was no item to compare with.
    CasMisses,
    /// Values not stored because the cas id differed.
    CasMismatches,
    /// `flush_all` commands.
    Flushes,
    /// `me` commands, which is what memcached counts as meta commands.
    Debugs,
    /// Items ever stored.
    TotalItems,
    /// Values rejected for their size.
    TooLarge,
    /// Live items that were evicted for a lack of memory.
    Evictions,
    /// Dead items dropped.
    Reclaimed,
}

const COUNT: usize = Counter::Reclaimed as usize + 1;

/// A number for each [`Counter`].
#[derive(Clone, Debug, Default)]
pub struct Counters([u64; COUNT]);

impl Counters {
    /// The number of times that the event happened.
    pub const fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }

    #[inline]
    pub(super) const fn add(&mut self, counter: Counter) {
        self.0[counter as usize] += 1;
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum += more;
        }
    }
}
