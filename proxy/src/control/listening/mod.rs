//! Clients: where they are accepted, what they are told, and how they are led away.
//!
//! * `announce`: the proxies of which clients are told
//! * `consult`, `logins`: what clients ask of the process, and the logins that they have brought
//! * `descriptors`: how many clients there is room for
//! * `drain`, `readiness`: whether clients are to come here

pub(in crate::control) mod announce;
pub(in crate::control) mod consult;
pub(in crate::control) mod descriptors;
pub(in crate::control) mod drain;
pub(in crate::control) mod logins;
pub(in crate::control) mod readiness;

use std::{collections::BTreeMap, iter::repeat};

use self::{announce::AnnouncementStatus, descriptors::Descriptors};
use crate::config::schema::Listener;

/// The listeners and what their clients are told.
pub(super) struct Listening {
    /// Addresses as configured, by the number of the listener. A number is never given to another address.
    addresses: Vec<String>,
    /// Addresses as bound, by number. `None`: the listener is closed.
    bound: Vec<Option<String>>,
    /// Clients are accepted: no drain has got so far that they are not.
    accepts: bool,
    /// What clients are told of the proxies, as of the last round.
    told: Vec<AnnouncementStatus>,
    descriptors: Descriptors,
}

impl Listening {
    /// No listener yet.
    pub(super) fn new() -> Self {
        Self {
            addresses: Vec::new(),
            bound: Vec::new(),
            accepts: true,
            told: Vec::new(),
            descriptors: Descriptors::default(),
        }
    }

    /// Addresses as configured, by number.
    pub(super) fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Addresses as bound, by number. `None`: the listener is closed.
    pub(super) fn bound(&self) -> &[Option<String>] {
        &self.bound
    }

    /// Whether clients are accepted.
    pub(super) fn accepts(&self) -> bool {
        self.accepts
    }

    /// The open files of the process.
    pub(super) fn descriptors(&mut self) -> &mut Descriptors {
        &mut self.descriptors
    }

    /// What clients are told of the proxies by those of these listeners that tell of them.
    pub(super) fn announced_by(&self, listeners: &[Listener]) -> Vec<AnnouncementStatus> {
        let tells = |told: &&AnnouncementStatus| {
            let own = listeners
                .iter()
                .find(|listener| listener.address == told.listener);
            own.is_some_and(|listener| listener.discovery.is_some())
        };
        self.told.iter().filter(tells).cloned().collect()
    }

    /// The pools that the routes of these listeners name, each with the number of the first listener.
    pub(super) fn entered_by(&self, listeners: &[Listener]) -> BTreeMap<String, usize> {
        let mut pools = BTreeMap::new();
        for listener in listeners {
            let mut known = self.addresses.iter();
            if let Some(pool) = listener.route.pool()
                && let Some(number) = known.position(|address| *address == listener.address)
            {
                pools.entry(pool.to_owned()).or_insert(number);
            }
        }
        pools
    }

    /// Notes the listeners of a change that every worker has made: all `addresses` by number, of which those
    /// stay open for which `is_wanted` holds, and the numbers that were `opened` with the addresses bound.
    pub(super) fn record(
        &mut self,
        addresses: Vec<String>,
        is_wanted: impl Fn(&str) -> bool,
        opened: impl Iterator<Item = (u16, String)>,
    ) {
        let before = std::mem::take(&mut self.bound).into_iter();
        self.bound = before
            .chain(repeat(None))
            .zip(&addresses)
            .map(|(bound, address)| bound.filter(|_| is_wanted(address)))
            .collect();
        for (number, address) in opened {
            self.bound[usize::from(number)] = Some(address);
        }
        self.addresses = addresses;
    }
}
