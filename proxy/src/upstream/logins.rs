//! The logins of lanes: a request goes on a lane that has logged in as its client asks.
//!
//! Invariant: a worker knows at most `limits.logins` logins at a time, however many names clients use. Lanes
//! with a login that no client uses any more are closed as soon as no request waits on them.
//!
//! Invariant: the last quarter of them is for hosts that have brought less than half of all. One host
//! therefore leaves room for others, whatever its clients say.

use std::{fmt, net::IpAddr, sync::Arc};

use crate::config::schema::Limits;

/// The logins that a worker's clients have asked for.
#[derive(Debug)]
pub(super) struct Logins {
    /// The logins by their numbers. Number 0 is the pool's own login.
    entries: Vec<LoginEntry>,
    /// The most logins of clients at a time.
    pub(super) most: usize,
}

/// One login, and how many use it.
struct LoginEntry {
    words: Arc<[u8]>,
    /// The host of the client that has brought it; `None` if the host is not known.
    by: Option<IpAddr>,
    clients: u32,
    lanes: u32,
    /// A server has accepted it.
    is_proven: bool,
}

impl Default for Logins {
    fn default() -> Self {
        let pools = LoginEntry {
            words: Arc::default(),
            by: None,
            clients: 0,
            lanes: 0,
            is_proven: true,
        };
        Self {
            entries: vec![pools],
            most: Limits::DEFAULT.logins,
        }
    }
}

impl Logins {
    /// Counts one more client with this login, from this host. Returns the login's number; `None`: there are
    /// too many logins.
    pub(super) fn join(&mut self, words: &[u8], by: Option<IpAddr>) -> Option<u16> {
        let number = match self.find(words) {
            Some(number) => number,
            None if !self.has_room(by) => return None,
            None => self.add(words, by),
        };
        self.entries[number].clients += 1;
        Some(number as u16)
    }

    /// The number of this login, if it is known.
    pub(super) fn find(&self, words: &[u8]) -> Option<usize> {
        self.entries.iter().position(|entry| &*entry.words == words)
    }

    /// May this host bring one more login?
    pub(super) fn has_room(&self, by: Option<IpAddr>) -> bool {
        let taken = || self.entries.iter().skip(1).filter(|entry| !entry.is_free());
        let left = self.most.saturating_sub(taken().count());
        left > self.most / 4 || left > 0 && taken().filter(|entry| entry.by == by).count() < self.most / 2
    }

    /// Adds a login, for which there is room.
    fn add(&mut self, words: &[u8], by: Option<IpAddr>) -> usize {
        let entry = LoginEntry {
            words: words.into(),
            by,
            clients: 0,
            lanes: 0,
            is_proven: false,
        };
        let free = self.entries.iter().skip(1).position(LoginEntry::is_free);
        match free {
            Some(free) => self.entries[free + 1] = entry,
            None => self.entries.push(entry),
        }
        free.map_or(self.entries.len() - 1, |free| free + 1)
    }

    /// Counts one client less with this login.
    pub(super) fn leave(&mut self, login: u16) {
        if let Some(entry) = self.entries.get_mut(usize::from(login)) {
            entry.clients = entry.clients.saturating_sub(1);
        }
    }

    /// Counts one more lane with this login.
    pub(super) fn lane_opened(&mut self, login: u16) {
        if let Some(entry) = self.entries.get_mut(usize::from(login)) {
            entry.lanes += 1;
        }
    }

    /// Counts one lane less with this login.
    pub(super) fn lane_closed(&mut self, login: u16) {
        if let Some(entry) = self.entries.get_mut(usize::from(login)) {
            entry.lanes = entry.lanes.saturating_sub(1);
        }
    }

    /// A server has accepted this login.
    pub(super) fn prove(&mut self, login: u16) {
        if let Some(entry) = self.entries.get_mut(usize::from(login)) {
            entry.is_proven = true;
        }
    }

    /// Has a server accepted this login?
    pub(super) fn is_proven(&self, login: u16) -> bool {
        self.entries
            .get(usize::from(login))
            .is_some_and(|entry| entry.is_proven)
    }

    /// Does any client need lanes with this login?
    pub(super) fn is_wanted(&self, login: u16) -> bool {
        login == 0
            || self
                .entries
                .get(usize::from(login))
                .is_some_and(|entry| entry.clients > 0)
    }

    /// The login in the codec's words.
    pub(super) fn words(&self, login: u16) -> Arc<[u8]> {
        let entry = self.entries.get(usize::from(login));
        entry.map(|entry| Arc::clone(&entry.words)).unwrap_or_default()
    }

    /// Does this login have these words?
    pub(super) fn is(&self, login: u16, words: &[u8]) -> bool {
        self.entries
            .get(usize::from(login))
            .is_some_and(|entry| &*entry.words == words)
    }
}

/// The words may hold a password.
impl fmt::Debug for LoginEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a login of {} clients and {} lanes", self.clients, self.lanes)
    }
}

impl LoginEntry {
    /// May the number be given to another login?
    fn is_free(&self) -> bool {
        self.clients == 0 && self.lanes == 0
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::Logins;
    use crate::config::schema::Limits;

    const LOGINS: usize = Limits::DEFAULT.logins;
    const RESERVED: usize = LOGINS / 4;

    fn host(number: usize) -> Option<IpAddr> {
        Some(Ipv4Addr::new(10, 0, 0, number as u8).into())
    }

    /// Brings this many logins of a host. Returns how many are taken.
    fn bring(logins: &mut Logins, by: Option<IpAddr>, count: usize) -> usize {
        let words = |number| format!("{number} of {by:?}");
        (0..count)
            .filter(|&number| logins.join(words(number).as_bytes(), by).is_some())
            .count()
    }

    #[test]
    fn numbers_are_given_again_when_neither_client_nor_lane_has_them() {
        let mut logins = Logins::default();
        assert_eq!(logins.join(b"", None), Some(0));
        let all: Vec<_> = (0..LOGINS)
            .map(|n| logins.join(n.to_string().as_bytes(), host(n % 4)))
            .collect();
        assert!(all.iter().all(Option::is_some));
        let late = host(9);
        assert_eq!(
            (logins.join(b"7", late), logins.join(b"one more", late)),
            (all[7], None)
        );
        let seven = all[7].unwrap();
        logins.lane_opened(seven);
        logins.leave(seven);
        assert!(logins.is_wanted(seven));
        logins.leave(seven);
        assert!(!logins.is_wanted(seven) && logins.is(seven, b"7"));
        assert_eq!(logins.join(b"one more", late), None, "a lane has it");
        logins.lane_closed(seven);
        assert_eq!(logins.join(b"one more", late), Some(seven));
        assert_eq!(&*logins.words(seven), b"one more");
    }

    #[test]
    fn no_host_takes_the_logins_that_are_left_for_others() {
        for greedy in [host(1), None] {
            let mut logins = Logins::default();
            assert_eq!(bring(&mut logins, greedy, 2 * LOGINS), LOGINS - RESERVED);
            assert!(
                logins
                    .join(format!("0 of {greedy:?}").as_bytes(), greedy)
                    .is_some(),
                "it is known"
            );
            assert_eq!(bring(&mut logins, host(2), 2 * LOGINS), RESERVED);
            assert_eq!(bring(&mut logins, host(3), 1), 0);
        }
    }

    #[test]
    fn hosts_that_share_the_logins_take_all_of_them() {
        let mut logins = Logins::default();
        let taken: usize = (0..8).map(|n| bring(&mut logins, host(n), LOGINS / 8)).sum();
        assert_eq!(taken, LOGINS);
    }
}
