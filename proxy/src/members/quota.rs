//! The quota of dedicated connections that all workers together may have to one server.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The connections to one server that workers share. Each worker takes one before it opens a connection, and
/// gives it back when the connection has ended.
#[derive(Debug, Default)]
pub struct Quota {
    taken: AtomicU32,
    /// The most connections that the server takes from everybody, as it has told last; 0 if it has told
    /// nothing.
    told: AtomicU32,
    /// Workers that want one and have found none.
    wanting: AtomicU32,
    /// Those of them that have fewer than their share.
    short: AtomicU32,
}

/// The wish of one worker for more of a quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuotaWish {
    /// It needs no more.
    #[default]
    Nothing,
    /// It needs more than its share.
    More,
    /// It has fewer than its share, and needs more.
    Share,
}

impl Quota {
    /// Takes one, if there are fewer than `most`. Returns `false` if all are taken.
    #[must_use]
    pub fn take(&self, most: u32) -> bool {
        let one_more = |taken: u32| (taken < most).then_some(taken + 1);
        self.taken.fetch_update(Relaxed, Relaxed, one_more).is_ok()
    }

    /// Gives one back.
    pub fn give_back(&self) {
        subtract(&self.taken);
    }

    /// Are this many taken?
    pub fn is_exhausted(&self, most: u32) -> bool {
        self.taken.load(Relaxed) >= most
    }

    /// The server has told that it takes this many connections from everybody; 0 if it has told nothing.
    pub fn learn(&self, connections: u32) {
        if connections > 0 {
            self.told.store(connections, Relaxed);
        }
    }

    /// The most connections that the proxy may have where no operator has said so: four fifths of what the
    /// server takes, and at least one, so that it has room for its administrators and for other clients.
    /// `None` if the server has told nothing.
    pub fn offered(&self) -> Option<u32> {
        let told = self.told.load(Relaxed);
        (told > 0).then_some((told / 5 * 4 + told % 5 * 4 / 5).max(1))
    }

    /// A worker has another wish from now on.
    pub fn wish(&self, before: QuotaWish, now: QuotaWish) {
        let counts = |wish: QuotaWish| (wish != QuotaWish::Nothing, wish == QuotaWish::Share);
        let ((wanted, was_short), (wants, is_short)) = (counts(before), counts(now));
        for (count, before, now) in [(&self.wanting, wanted, wants), (&self.short, was_short, is_short)] {
            match (before, now) {
                (false, true) => drop(count.fetch_add(1, Relaxed)),
                (true, false) => subtract(count),
                _ => {}
            }
        }
    }

    /// Does another worker than the one with this wish want one?
    pub fn is_wanted(&self, own: QuotaWish) -> bool {
        self.wanting.load(Relaxed) > u32::from(own != QuotaWish::Nothing)
    }

    /// Does another worker than the one with this wish have fewer than its share?
    pub fn is_short(&self, own: QuotaWish) -> bool {
        self.short.load(Relaxed) > u32::from(own == QuotaWish::Share)
    }
}

fn subtract(count: &AtomicU32) {
    let _ = count.fetch_update(Relaxed, Relaxed, |count| count.checked_sub(1));
}

#[cfg(test)]
mod tests {
    use super::{Quota, QuotaWish};

    #[test]
    fn no_more_are_taken_than_there_are() {
        let quota = Quota::default();
        assert!(quota.take(2) && !quota.is_exhausted(2) && quota.take(2) && !quota.take(2));
        quota.give_back();
        assert!(quota.take(2) && quota.is_exhausted(2) && !quota.take(2));
        assert!(quota.take(3), "the limit was raised");
        (0..5).for_each(|_| quota.give_back());
        assert!(quota.take(1) && !quota.take(1));
    }

    #[test]
    fn a_fifth_of_what_a_server_takes_is_left_to_others() {
        let quota = Quota::default();
        assert_eq!(quota.offered(), None);
        for (told, offered) in [(151, 120), (1, 1), (10, 8), (u32::MAX, 3_435_973_836)] {
            quota.learn(told);
            assert_eq!(quota.offered(), Some(offered), "{told}");
        }
    }

    #[test]
    fn wishes_are_those_of_others() {
        use QuotaWish::{More, Nothing, Share};
        let quota = Quota::default();
        quota.wish(Nothing, More);
        assert!(!quota.is_wanted(More) && quota.is_wanted(Nothing) && !quota.is_short(Nothing));
        quota.wish(More, Share);
        assert!(!quota.is_short(Share) && quota.is_short(Nothing));
        quota.wish(Nothing, Share);
        assert!(quota.is_wanted(Share) && quota.is_short(Share));
        for wish in [Share, Share, Share] {
            quota.wish(wish, Nothing);
        }
        assert!(!quota.is_wanted(Nothing) && !quota.is_short(Nothing));
    }
}
