//! The proxies by address, as probes have found them.

use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::{
    alert::{clock_difference, unix_micros},
    message::{Introduction, MATRIX},
};

/// What is known of an address.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The peer that answers there; `None`: none has yet.
    pub(super) who: Option<Introduction>,
    /// When it last answered.
    pub(super) answered: Option<Instant>,
    /// The time from question to answer.
    pub(super) round_trip: Duration,
    /// Why it did not answer the last time.
    pub(super) failure: Option<String>,
    /// How its clock is too far off; `None`: it is right.
    pub(super) clock: Option<String>,
}

impl Entry {
    /// Does its last answer say something of now?
    pub(super) fn is_fresh(&self) -> bool {
        self.failure.is_none() && self.answered.is_some_and(|at| at.elapsed() < FRESH)
    }

    /// The times that it has told, in µs by the names of others.
    pub(super) fn round_trips(&self) -> BTreeMap<String, u64> {
        let who = self.who.as_ref().filter(|_| self.is_fresh());
        who.map(|who| who.round_trips.clone()).unwrap_or_default()
    }
}

/// The proxies by address.
#[derive(Default)]
pub(super) struct Book {
    entries: Mutex<HashMap<SocketAddr, Entry>>,
}

/// An answer that is older than this says nothing of now. Peers of a large fleet are asked seldom: the
/// longest time between two probes of one is below this while all answer. A peer that does not answer a probe
/// is not fresh, however recent its last answer.
const FRESH: Duration = Duration::from_secs(12);

impl Book {
    fn entries(&self) -> MutexGuard<'_, HashMap<SocketAddr, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An address has answered a probe.
    pub(super) fn answered(&self, address: SocketAddr, mut who: Introduction, round_trip: Duration) {
        if who.round_trips.len() > MATRIX {
            who.round_trips.clear();
        }
        let clock = (who.time != 0).then(|| clock_difference(who.time, unix_micros()));
        let entry = Entry {
            clock: clock.flatten(),
            who: Some(who),
            answered: Some(Instant::now()),
            round_trip,
            failure: None,
        };
        self.entries().insert(address, entry);
    }

    /// An address has not answered a probe.
    pub(super) fn failed(&self, address: SocketAddr, why: String) {
        let mut entries = self.entries();
        let entry = entries.entry(address).or_insert(Entry {
            who: None,
            answered: None,
            round_trip: Duration::ZERO,
            failure: None,
            clock: None,
        });
        entry.failure = Some(why);
    }

    /// Only these addresses matter from now on.
    pub(super) fn retain(&self, addresses: &[SocketAddr]) {
        self.entries().retain(|address, _| addresses.contains(address));
    }

    /// Everything.
    pub(super) fn all(&self) -> Vec<(SocketAddr, Entry)> {
        let entries = self.entries();
        entries
            .iter()
            .map(|(address, entry)| (*address, entry.clone()))
            .collect()
    }

    /// Those that have answered a moment ago.
    pub(super) fn present(&self) -> Vec<(SocketAddr, Introduction)> {
        self.pick(|address, entry, who| entry.is_fresh().then(|| (address, who.clone())))
    }

    /// What `of` picks of all who have ever answered. There may be hundreds of them: only what is picked is
    /// copied.
    pub(super) fn pick<T, C: FromIterator<T>>(
        &self,
        mut of: impl FnMut(SocketAddr, &Entry, &Introduction) -> Option<T>,
    ) -> C {
        let entries = self.entries();
        let all = entries.iter();
        all.filter_map(|(address, entry)| of(*address, entry, entry.who.as_ref()?))
            .collect()
    }

    /// The times in µs from questions to answers of those that have answered a moment ago, by name; empty: there
    /// are very many.
    pub(super) fn round_trips(&self) -> BTreeMap<String, u64> {
        let all: BTreeMap<String, u64> = self.pick(|_, entry, who| {
            let micros = || entry.round_trip.as_micros() as u64;
            entry.is_fresh().then(|| (who.name.clone(), micros()))
        });
        if all.len() > MATRIX { BTreeMap::new() } else { all }
    }

    /// The peer that last answered at this address.
    pub(super) fn at(&self, address: SocketAddr) -> Option<Introduction> {
        self.entries().get(&address)?.who.clone()
    }

    /// The address at which the node of this number last answered.
    pub(super) fn address_of(&self, node: u64) -> Option<SocketAddr> {
        let entries = self.entries();
        let mut of_node: Vec<_> = entries
            .iter()
            .filter(|(_, entry)| entry.who.as_ref().is_some_and(|who| who.identity as u64 == node))
            .collect();
        of_node.sort_by_key(|(_, entry)| entry.answered);
        of_node.last().map(|(address, _)| **address)
    }

    /// What is known of the peer of this name.
    pub(super) fn named(&self, name: &str) -> Option<(SocketAddr, Entry)> {
        let mut all: Vec<_> =
            self.pick(|address, entry, who| (who.name == name).then(|| (address, entry.clone())));
        all.sort_by_key(|(_, entry)| entry.answered);
        all.pop()
    }
}
