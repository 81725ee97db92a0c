//! As whom lanes log in: a request goes on a lane that has logged in as its client wants it.
//!
//! Invariant: however many names clients think of, a worker knows [`LOGINS`] logins at a time, and lanes that log in as somebody whose
//! last client has left are closed as soon as nobody waits on them.

use std::sync::Arc;

use super::Servers;

/// Logins of one worker's clients at a time, that of the pools themselves besides.
pub const LOGINS: usize = 256;

/// The logins that a worker's clients have asked for, by their numbers. 0 is what the pool says.
#[derive(Debug)]
pub(super) struct Logins(Vec<Known>);

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
    /// A client wants this one; its number. `None`: there are too many.
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

    /// A client wants it no more.
    pub(super) fn leave(&mut self, login: u16) {
        if let Some(known) = self.0.get_mut(usize::from(login)) {
            known.clients = known.clients.saturating_sub(1);
        }
    }

    pub(super) fn lane_opened(&mut self, login: u16) {
        if let Some(known) = self.0.get_mut(usize::from(login)) {
            known.lanes += 1;
        }
    }

    pub(super) fn lane_closed(&mut self, login: u16) {
        if let Some(known) = self.0.get_mut(usize::from(login)) {
            known.lanes = known.lanes.saturating_sub(1);
        }
    }

    /// Does anybody want lanes that log in so?
    pub(super) fn is_wanted(&self, login: u16) -> bool {
        login == 0
            || self
                .0
                .get(usize::from(login))
                .is_some_and(|known| known.clients > 0)
    }

    /// What a codec has said of it.
    pub(super) fn words(&self, login: u16) -> Arc<[u8]> {
        let known = self.0.get(usize::from(login));
        known.map(|known| Arc::clone(&known.words)).unwrap_or_default()
    }

    /// Are these the words of this login?
    pub(super) fn is(&self, login: u16, words: &[u8]) -> bool {
        self.0
            .get(usize::from(login))
            .is_some_and(|known| &*known.words == words)
    }
}

impl Known {
    fn is_free(&self) -> bool {
        self.clients == 0 && self.lanes == 0
    }
}

impl Servers {
    /// A client whose login was `known` has named this one; its number. `None`: there are too many, and the client logs in as the
    /// pool says.
    pub(crate) fn change_login(&mut self, known: u16, words: &[u8]) -> Option<u16> {
        self.logins.leave(known);
        let joined = self.logins.join(words);
        if joined.is_none() {
            self.logins.join(&[]);
        }
        joined
    }

    /// A client leaves that wanted this login.
    pub(crate) fn leave_login(&mut self, login: u16) {
        self.logins.leave(login);
    }

    /// Are these the words of this login?
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
