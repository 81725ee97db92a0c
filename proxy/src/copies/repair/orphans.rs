//! Connections that the process before this one has left to its kernel, which goes on sending the bytes in
//! their buffers. Until they are gone, a copy is neither read nor written: they may bring writes that are
//! older than any write since, of unknown keys.

use std::{
    collections::{HashMap, HashSet},
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

use super::{Connections, UNPROVEN};
use crate::members::ServerIdentity;

/// A kernel pauses no longer than this between two attempts to send what a dead process has left. This long
/// after the server has answered, the kernel has sent all or given up
/// (docs/decisions/0017-what-a-dead-process-still-sends.md).
const LONGEST: Duration = Duration::from_secs(120);

/// Orphaned connections that may be left at each copy.
#[derive(Debug, Default)]
pub struct Orphans {
    copies: HashMap<ServerIdentity, OrphanState>,
    before: Predecessor,
}

/// The process before this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Predecessor {
    /// Its kernel runs on.
    #[default]
    Here,
    /// Its kernel no longer runs here.
    Rebooted,
    /// This process knows of none.
    Unknown,
}

#[derive(Debug)]
enum OrphanState {
    /// Its server has not answered yet.
    Unlisted,
    Listed {
        /// Our ends of what the server had when it was asked first: what came since is younger than this
        /// process. `None` if the server cannot list them, as it sees us at another address or at no address.
        ends: Option<HashSet<SocketAddr>>,
        /// After this nothing comes by them.
        until: Instant,
    },
    Nothing,
}

impl Orphans {
    /// No orphans are known yet of this process.
    pub fn of(before: Predecessor) -> Self {
        Self {
            before,
            ..Self::default()
        }
    }

    /// Some may be left at this copy, unless it is known that there are none.
    pub fn expect(&mut self, copy: &ServerIdentity) {
        self.copies.entry(copy.clone()).or_insert(OrphanState::Unlisted);
    }

    /// Is there nothing left anywhere?
    pub fn is_empty(&self) -> bool {
        self.copies
            .values()
            .all(|left| matches!(left, OrphanState::Nothing))
    }

    /// May something still come to this copy?
    pub fn threaten(&self, copy: &ServerIdentity) -> bool {
        self.copies
            .get(copy)
            .is_some_and(|left| !matches!(left, OrphanState::Nothing))
    }

    /// Has its server never answered?
    pub fn is_unlisted(&self, copy: &ServerIdentity) -> bool {
        matches!(self.copies.get(copy), Some(OrphanState::Unlisted))
    }

    /// The server was asked for its connections. Returns how many of them may still bring something (`None`
    /// if the number is unknown), and for how long. The result is `None` if no connection may bring anything.
    /// `then` is our address at the time of the process before this one.
    pub fn listed(
        &mut self,
        copy: &ServerIdentity,
        connections: Connections,
        then: Option<IpAddr>,
        now: Instant,
    ) -> Option<(Option<usize>, Duration)> {
        let left = self.copies.get_mut(copy)?;
        let Connections { mut ends, from } = connections;
        let until = match left {
            OrphanState::Nothing => return None,
            OrphanState::Unlisted => {
                now + match self.before {
                    Predecessor::Unknown => UNPROVEN,
                    // At another address this may be another host, and the earlier kernel may still run.
                    Predecessor::Rebooted if then == from => UNPROVEN,
                    Predecessor::Rebooted | Predecessor::Here => LONGEST,
                }
            }
            OrphanState::Listed { ends: first, until } => {
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
            *left = OrphanState::Nothing;
            return None;
        }
        *left = OrphanState::Listed { ends, until };
        Some((count, until - now))
    }

    /// This copy is no longer a member.
    pub fn forget(&mut self, copy: &ServerIdentity) {
        self.copies.remove(copy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy() -> ServerIdentity {
        ServerIdentity {
            pool: "cache".into(),
            name: "a:1".into(),
            address: "a:1".into(),
        }
    }

    fn connections(ports: Option<&[u16]>) -> Connections {
        let from = IpAddr::from([10, 0, 0, 1]);
        Connections {
            ends: ports.map(|ports| ports.iter().map(|&port| (from, port).into()).collect()),
            from: Some(from),
        }
    }

    fn orphans() -> Orphans {
        let mut orphans = Orphans::default();
        orphans.expect(&copy());
        orphans
    }

    #[test]
    fn only_connections_that_were_there_first_are_waited_for() {
        let (mut orphans, now) = (orphans(), Instant::now());
        let mut look = |ports: &[u16]| orphans.listed(&copy(), connections(Some(ports)), None, now);
        assert_eq!(look(&[1, 2]), Some((Some(2), LONGEST)));
        assert_eq!(look(&[2, 3]), Some((Some(1), LONGEST)));
        assert_eq!(look(&[3, 4]), None);
        assert!(orphans.is_empty());
    }

    #[test]
    fn copy_without_connections_is_not_waited_for() {
        let mut orphans = orphans();
        assert!(orphans.threaten(&copy()));
        assert_eq!(
            orphans.listed(&copy(), connections(Some(&[])), None, Instant::now()),
            None
        );
        assert!(!orphans.threaten(&copy()));
    }

    #[test]
    fn connections_that_stay_or_cannot_be_listed_are_waited_for_until_a_time() {
        let now = Instant::now();
        for ports in [Some(&[1][..]), None] {
            let mut orphans = orphans();
            let count = ports.map(<[u16]>::len);
            for (later, left) in [(0, 120), (119, 1)] {
                let now = now + Duration::from_secs(later);
                let waits = orphans.listed(&copy(), connections(ports), None, now);
                assert_eq!(waits, Some((count, Duration::from_secs(left))));
            }
            assert_eq!(
                orphans.listed(&copy(), connections(ports), None, now + LONGEST),
                None
            );
        }
    }

    #[test]
    fn connections_of_another_life_of_the_same_host_are_waited_for_less_long() {
        let now = Instant::now();
        let (same, other) = (connections(None).from, Some(IpAddr::from([10, 0, 0, 2])));
        use Predecessor::{Here, Rebooted, Unknown};
        for (then, before, time) in [
            (same, Rebooted, UNPROVEN),
            (same, Here, LONGEST),
            (other, Rebooted, LONGEST),
            (None, Rebooted, LONGEST),
            (None, Unknown, UNPROVEN),
        ] {
            let mut orphans = Orphans::of(before);
            orphans.expect(&copy());
            let waits = orphans.listed(&copy(), connections(Some(&[1])), then, now);
            assert_eq!(waits, Some((Some(1), time)));
        }
    }
}
