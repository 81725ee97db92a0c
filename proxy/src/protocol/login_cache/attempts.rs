//! Attempts to log in that are under way, and those that were wrong.

use std::{collections::HashMap, net::IpAddr, sync::Arc};

use super::{Account, MINUTE};

/// Wrong attempts of one host as one user within [`MINUTE`].
pub(super) const MOST_WRONG: u32 = 10;
/// Attempts of one host that are under way, whatever their users.
pub(super) const MOST_AT_ONCE: usize = 16;
/// Attempts of all hosts that are under way. Their connections are not among those that clients may have.
pub(super) const MOST_OF_ALL: usize = 64;
/// Hosts and users of which wrong attempts are counted.
pub(super) const MOST_COUNTED: usize = 4096;

/// A host and an account.
pub(super) type Source = (Option<IpAddr>, Account);

/// The attempts of all hosts.
#[derive(Default)]
pub(super) struct Attempts {
    /// Those that are under way, by number, with the pool whose server has accepted the login.
    under_way: HashMap<u64, (Source, Option<Arc<str>>)>,
    wrong: HashMap<Source, Wrong>,
}

/// Wrong attempts.
struct Wrong {
    count: u32,
    until: u64,
}

/// May a client's login be tried at a server?
pub enum Turn<T> {
    /// It may.
    Now(T),
    /// Others are tried first.
    Later,
    /// Too many proofs were wrong.
    Never,
}

impl Attempts {
    pub(super) fn is_denied(&self, source: &Source, unix: u64) -> bool {
        let wrong = self.wrong.get(source);
        wrong.is_some_and(|wrong| wrong.count >= MOST_WRONG && unix < wrong.until)
    }

    pub(super) fn is_crowded(&self) -> bool {
        self.under_way.len() >= MOST_OF_ALL
    }

    pub(super) fn turn(&self, source: &Source, unix: u64) -> Turn<()> {
        if self.is_denied(source, unix) {
            return Turn::Never;
        }
        let of_host = self.under_way.values().filter(|((by, _), _)| *by == source.0);
        let is_full = self.is_crowded() || of_host.clone().count() >= MOST_AT_ONCE;
        match is_full || of_host.clone().any(|(by, _)| by == source) {
            true => Turn::Later,
            false => Turn::Now(()),
        }
    }

    pub(super) fn begin(&mut self, number: u64, source: Source) {
        self.under_way.insert(number, (source, None));
    }

    pub(super) fn note_accepted(&mut self, number: u64, pool: &Arc<str>) {
        if let Some((_, at)) = self.under_way.get_mut(&number) {
            *at = Some(Arc::clone(pool));
        }
    }

    pub(super) fn get(&self, number: u64) -> Option<(Source, Option<Arc<str>>)> {
        self.under_way.get(&number).cloned()
    }

    pub(super) fn end(&mut self, number: u64) {
        self.under_way.remove(&number);
    }

    pub(super) fn note_right(&mut self, source: &Source) {
        self.wrong.remove(source);
    }

    pub(super) fn note_wrong(&mut self, source: Source, unix: u64) {
        if self.wrong.len() >= MOST_COUNTED {
            self.wrong.retain(|_, wrong| unix < wrong.until);
        }
        if self.wrong.len() >= MOST_COUNTED {
            // The counts that forget the least go.
            let least = self.wrong.iter().min_by_key(|(_, wrong)| wrong.count);
            if let Some(least) = least.map(|(source, _)| source.clone()) {
                self.wrong.remove(&least);
            }
        }
        let until = unix + MINUTE;
        let wrong = self.wrong.entry(source).or_insert(Wrong { count: 0, until });
        if unix >= wrong.until {
            *wrong = Wrong { count: 0, until };
        }
        wrong.count += 1;
    }

    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.under_way.len(), self.wrong.len())
    }
}
