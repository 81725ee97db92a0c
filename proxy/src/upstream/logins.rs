//! The logins of lanes: a request goes on a lane that has logged in as its client asks.
//!
//! Invariant: a worker knows at most [`LOGINS`] logins at a time, however many names clients use. Lanes with
//! a login that no client uses any more are closed as soon as no request waits on them.

use std::sync::Arc;

use super::Servers;

/// The most logins of clients that one worker knows at a time. The pools' own login does not count.
pub const LOGINS: usize = 256;

/// The logins that a worker's clients have asked for, by number. Number 0 is the pool's own login.
#[derive(Debug)]
pub(super) struct Logins(Vec<Known>);

/// One login, and how many use it.
#[derive(Debug)]
struct Known {
    words: Arc<[u8]>,
    clients: u32,
    lanes: u32,
}

impl Default for Logins {
    fn default() -> Self {
        let pools = Known {
            words: Arc::default(),
            clients: 0,
            lanes: 0,
        };
        Self(vec![pools])
    }
}

impl Logins {
    /// Counts one more client with this login. Returns the login's number; `None`: there are too many logins.
    pub(super) fn join(&mut self, words: &[u8]) -> Option<u16> {
        let known = self.0.iter().position(|known| &*known.words == words);
        let number = match known.or_else(|| {
            self.0
                .iter()
                .skip(1)
                .position(Known::is_free)
                .map(|free| free + 1)
        }) {
            Some(number) => number,
            None if self.0.len() <= LOGINS => {
                self.0.push(Known {
                    words: Arc::default(),
                    clients: 0,
                    lanes: 0,
                });
                self.0.len() - 1
            }
            None => return None,
        };
        let found = &mut self.0[number];
        if &*found.words != words {
            found.words = words.into();
        }
        found.clients += 1;
        Some(number as u16)
    }

    /// Counts one client less with this login.
    pub(super) fn leave(&mut self, login: u16) {
        if let Some(known) = self.0.get_mut(usize::from(login)) {
            known.clients = known.clients.saturating_sub(1);
        }
    }

    /// Counts one more lane with this login.
    pub(super) fn lane_opened(&mut self, login: u16) {
        if let Some(known) = self.0.get_mut(usize::from(login)) {
            known.lanes += 1;
        }
    }

    /// Counts one lane less with this login.
    pub(super) fn lane_closed(&mut self, login: u16) {
        if let Some(known) = self.0.get_mut(usize::from(login)) {
            known.lanes = known.lanes.saturating_sub(1);
        }
    }

    /// Does any client need lanes with this login?
    pub(super) fn is_wanted(&self, login: u16) -> bool {
        login == 0
            || self
                .0
                .get(usize::from(login))
                .is_some_and(|known| known.clients > 0)
    }

    /// The login in the codec's words.
    pub(super) fn words(&self, login: u16) -> Arc<[u8]> {
        let known = self.0.get(usize::from(login));
        known.map(|known| Arc::clone(&known.words)).unwrap_or_default()
    }

    /// Does this login have these words?
    pub(super) fn is(&self, login: u16, words: &[u8]) -> bool {
        self.0
            .get(usize::from(login))
            .is_some_and(|known| &*known.words == words)
    }
}

impl Known {
    /// May the number be given to another login?
    fn is_free(&self) -> bool {
        self.clients == 0 && self.lanes == 0
    }
}

impl Servers {
    /// Changes a client's login from `known` to one with these words. Returns the new number; `None`: there
    /// are too many logins, and the client uses the pool's own.
    pub(crate) fn change_login(&mut self, known: u16, words: &[u8]) -> Option<u16> {
        self.logins.leave(known);
        let joined = self.logins.join(words);
        if joined.is_none() {
            self.logins.join(&[]);
        }
        joined
    }

    /// A client with this login has left.
    pub(crate) fn leave_login(&mut self, login: u16) {
        self.logins.leave(login);
    }

    /// Does this login have these words?
    pub(crate) fn is_login(&self, login: u16, words: &[u8]) -> bool {
        self.logins.is(login, words)
    }
}

#[cfg(test)]
mod tests {
    use super::{LOGINS, Logins};

    #[test]
    fn numbers_are_given_again_when_neither_client_nor_lane_has_them() {
        let mut logins = Logins::default();
        assert_eq!(logins.join(b""), Some(0));
        let all: Vec<_> = (0..LOGINS)
            .map(|n| logins.join(n.to_string().as_bytes()))
            .collect();
        assert!(all.iter().all(Option::is_some));
        assert_eq!((logins.join(b"7"), logins.join(b"one more")), (all[7], None));
        let seven = all[7].unwrap();
        logins.lane_opened(seven);
        logins.leave(seven);
        assert!(logins.is_wanted(seven));
        logins.leave(seven);
        assert!(!logins.is_wanted(seven) && logins.is(seven, b"7"));
        assert_eq!(logins.join(b"one more"), None, "a lane has it");
        logins.lane_closed(seven);
        assert_eq!(logins.join(b"one more"), Some(seven));
        assert_eq!(&*logins.words(seven), b"one more");
    }
}
