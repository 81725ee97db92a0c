//! Connections that the process before this one has left to its kernel, which goes on sending what they hold. Until they are
//! gone a copy is neither read nor written: what they bring may be older than any write since, and nobody knows of which key.

use std::{
    collections::{HashMap, HashSet},
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

use crate::members::{
    MemberId,
    copies::visit::{Listing, UNPROVEN},
};

/// A kernel pauses no longer than this between two attempts to send what a dead process has left. So long after the server
/// has answered, it has sent all or given up (docs/decisions/0017-what-a-dead-process-still-sends.md).
pub(super) const LONGEST: Duration = Duration::from_secs(120);

/// By copy: what may be left there.
#[derive(Debug, Default)]
pub(super) struct Orphans {
    copies: HashMap<MemberId, Left>,
    before: Predecessor,
}

/// The process before this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Predecessor {
    /// Its kernel runs on.
    #[default]
    Here,
    /// Its kernel does not run here any more.
    Rebooted,
    /// There was none that this one knows of.
    Unknown,
}

#[derive(Debug)]
enum Left {
    /// Its server has not answered yet.
    Unlisted,
    Listed {
        /// Our ends of what it had when it was asked first: what came since is younger than this process. `None`: it cannot
        /// list them, as it sees us at another address, or at none.
        ends: Option<HashSet<SocketAddr>>,
        /// After this nothing comes by them any more.
        until: Instant,
    },
    Nothing,
}

impl Orphans {
    pub(super) fn of(before: Predecessor) -> Self {
        Self {
            before,
            ..Self::default()
        }
    }

    /// Some may be left at this copy, unless it is known that there are none.
    pub(super) fn expect(&mut self, copy: MemberId) {
        self.copies.entry(copy).or_insert(Left::Unlisted);
    }

    /// Is there nothing left anywhere?
    pub(super) fn is_empty(&self) -> bool {
        self.copies.values().all(|left| matches!(left, Left::Nothing))
    }

    /// May something still come to this copy?
    pub(super) fn threaten(&self, copy: MemberId) -> bool {
        self.copies
            .get(&copy)
            .is_some_and(|left| !matches!(left, Left::Nothing))
    }

    /// Has its server never answered?
    pub(super) fn is_unlisted(&self, copy: MemberId) -> bool {
        matches!(self.copies.get(&copy), Some(Left::Unlisted))
    }

    /// Its server was asked: how many connections may still bring something (`None`: nobody knows how many), and for how long.
    /// `then` is our address at the time of the process before this one.
    pub(super) fn listed(
        &mut self,
        copy: MemberId,
        listing: Listing,
        then: Option<IpAddr>,
        now: Instant,
    ) -> Option<(Option<usize>, Duration)> {
        let left = self.copies.get_mut(&copy)?;
        let Listing { mut ends, from } = listing;
        let until = match left {
            Left::Nothing => return None,
            Left::Unlisted => {
                now + match self.before {
                    Predecessor::Unknown => UNPROVEN,
                    // At another address this may be another host, and the kernel of then may run on.
                    Predecessor::Rebooted if then == from => UNPROVEN,
                    Predecessor::Rebooted | Predecessor::Here => LONGEST,
                }
            }
            Left::Listed { ends: first, until } => {
                ends = match (first.take(), ends) {
                    (Some(first), Some(now)) => Some(&first & &now),
                    // One look in vain proves nothing.
                    (first, _) => first,
                };
                *until
            }
        };
        let count = ends.as_ref().map(HashSet::len);
        if count == Some(0) || now >= until {
            *left = Left::Nothing;
            return None;
        }
        *left = Left::Listed { ends, until };
        Some((count, until - now))
    }

    /// It is no member any more.
    pub(super) fn forget(&mut self, copy: MemberId) {
        self.copies.remove(&copy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COPY: MemberId = MemberId(1);

    fn listing(ports: Option<&[u16]>) -> Listing {
        let from = IpAddr::from([10, 0, 0, 1]);
        Listing {
            ends: ports.map(|ports| ports.iter().map(|&port| (from, port).into()).collect()),
            from: Some(from),
        }
    }

    fn orphans() -> Orphans {
        let mut orphans = Orphans::default();
        orphans.expect(COPY);
        orphans
    }

    #[test]
    fn what_was_there_first_is_waited_for_and_nothing_else() {
        let (mut orphans, now) = (orphans(), Instant::now());
        let mut look = |ports: &[u16]| orphans.listed(COPY, listing(Some(ports)), None, now);
        assert_eq!(look(&[1, 2]), Some((Some(2), LONGEST)));
        assert_eq!(look(&[2, 3]), Some((Some(1), LONGEST)));
        assert_eq!(look(&[3, 4]), None);
        assert!(orphans.is_empty());
    }

    #[test]
    fn nothing_there_is_nothing_to_wait_for() {
        let mut orphans = orphans();
        assert!(orphans.threaten(COPY));
        assert_eq!(
            orphans.listed(COPY, listing(Some(&[])), None, Instant::now()),
            None
        );
        assert!(!orphans.threaten(COPY));
    }

    #[test]
    fn time_alone_ends_it_where_they_stay_or_cannot_be_listed() {
        let now = Instant::now();
        for ports in [Some(&[1][..]), None] {
            let mut orphans = orphans();
            let count = ports.map(<[u16]>::len);
            for (later, left) in [(0, 120), (119, 1)] {
                let now = now + Duration::from_secs(later);
                let waits = orphans.listed(COPY, listing(ports), None, now);
                assert_eq!(waits, Some((count, Duration::from_secs(left))));
            }
            assert_eq!(orphans.listed(COPY, listing(ports), None, now + LONGEST), None);
        }
    }

    #[test]
    fn another_life_of_the_same_host_ends_it_sooner() {
        let now = Instant::now();
        let (same, other) = (listing(None).from, Some(IpAddr::from([10, 0, 0, 2])));
        use Predecessor::{Here, Rebooted, Unknown};
        for (then, before, time) in [
            (same, Rebooted, UNPROVEN),
            (same, Here, LONGEST),
            (other, Rebooted, LONGEST),
            (None, Rebooted, LONGEST),
            (None, Unknown, UNPROVEN),
        ] {
            let mut orphans = Orphans::of(before);
            orphans.expect(COPY);
            let waits = orphans.listed(COPY, listing(Some(&[1])), then, now);
            assert_eq!(waits, Some((Some(1), time)));
        }
    }
}
