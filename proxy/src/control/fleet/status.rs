//! The fleet as this proxy sees it, for operators.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::{Fleet, book::Entry, guard, now};
use crate::fleet::{Cause, Peer};

/// The fleet as one of its proxies sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// The name of this peer.
    pub name: String,
    /// The fleet's identity; `None`: this proxy has found none yet.
    pub fleet: Option<String>,
    /// The number of the newest view.
    pub view: u64,
    /// Why it is not the one before it.
    pub why: String,
    /// The term of the voters.
    pub term: u64,
    /// The name of the leader of the voters; `None`: nobody leads, or this peer does not know who does.
    pub leader: Option<String>,
    /// Whether this proxy leads.
    pub is_leader: bool,
    /// The voters by the numbers of their nodes, with their addresses.
    pub voters: BTreeMap<String, String>,
    /// Seconds that this proxy's lease has left; 0: it has none.
    pub lease_seconds: f64,
    /// Why this proxy has not joined; empty: it has.
    pub waits_for: String,
    /// The peers of the view.
    pub peers: Vec<PeerStatus>,
    /// What an operator has to mend among the peers.
    #[serde(default)]
    pub alerts: Vec<String>,
    /// Proxies that want to join.
    pub candidates: Vec<String>,
    /// Peers that were removed, the last one last, with the reason.
    pub removed: Vec<(String, String)>,
    /// How many changes of the view this proxy has proposed, and how long their commits took in the mean.
    pub commits: u64,
    /// Seconds from a proposal to its commit, in the mean.
    pub commit_seconds: f64,
}

/// A peer of the view.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PeerStatus {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub address: String,
    /// The view that it joined with.
    pub since_view: u64,
    /// Whether it decides computed changes.
    pub decides: bool,
    /// The pools that it has a copy of.
    pub copies: Vec<String>,
    /// Milliseconds from a question of this proxy to its answer; `None`: it is this proxy, or does not
    /// answer.
    pub round_trip_ms: Option<f64>,
    /// Milliseconds from its questions to the answers of the other peers, by their names, as it told last. It
    /// tells nothing in a fleet of more than 64, or if its program does not know this.
    #[serde(default)]
    pub round_trips_ms: BTreeMap<String, f64>,
    /// Why this proxy does not reach it; `None`: it does.
    pub unreachable: Option<String>,
    /// Peers that it complains of, as the leader knows it; empty at other peers.
    pub complains_of: Vec<String>,
    /// Seconds since the leader has heard it; `None`: this proxy does not lead.
    pub heard_seconds_ago: Option<f64>,
}

impl Fleet {
    /// The fleet as this proxy sees it.
    pub fn status(&self) -> Status {
        let roster = self.roster.borrow().clone();
        let (leader, term) = self.node.leader();
        let leads = self.node.leads();
        let leadership = guard(&self.leadership);
        let now = now();
        let mut entries: Vec<(String, Entry)> = self
            .book
            .pick(|_, entry, who| Some((who.name.clone(), entry.clone())));
        // The last answer of a name counts.
        entries.sort_by_key(|(_, entry)| entry.answered);
        let entries: HashMap<String, Entry> = entries.into_iter().collect();
        // To peers of the view, in hundredths of a millisecond.
        let to_peers = |round_trips: BTreeMap<String, u64>| -> BTreeMap<String, f64> {
            let to = round_trips
                .into_iter()
                .filter(|(name, _)| roster.view.named(name).is_some());
            to.map(|(name, micros)| (name, (micros as f64 / 10.0).round() / 100.0))
                .collect()
        };
        let peers = roster.view.peers.iter().map(|peer| {
            let entry = entries.get(&peer.name);
            let known = leadership
                .as_ref()
                .and_then(|(_, known)| known.status(&peer.name));
            PeerStatus {
                name: peer.name.clone(),
                address: peer.address.to_string(),
                since_view: peer.stay.0,
                decides: peer.decides,
                copies: peer.copies.iter().map(|(pool, _)| pool.clone()).collect(),
                round_trip_ms: entry
                    .filter(|entry| entry.failure.is_none())
                    .map(|entry| entry.round_trip.as_secs_f64() * 1e3),
                round_trips_ms: to_peers(match peer.name == self.announced.name {
                    true => self.book.round_trips(),
                    false => entry.map(Entry::round_trips).unwrap_or_default(),
                }),
                unreachable: entry.and_then(|entry| entry.failure.clone()),
                complains_of: known.map(|(_, late)| late.to_vec()).unwrap_or_default(),
                heard_seconds_ago: known.map(|(last, _)| now.saturating_sub(last) as f64 / 1e6),
            }
        });
        let name_of = |node: u64| match node == self.node.id() {
            true => Some(self.announced.name.clone()),
            false => {
                let peer = roster.view.peers.iter().find(|peer| peer.identity as u64 == node);
                let name = peer.map(|peer| peer.name.clone());
                name.or_else(|| {
                    let found: Vec<String> = self.book.pick(|_, entry, who| {
                        let is_it = entry.is_fresh() && who.identity as u64 == node;
                        is_it.then(|| who.name.clone())
                    });
                    found.into_iter().next()
                })
            }
        };
        let commits = *guard(&self.commits);
        let me = self.me();
        Status {
            name: self.announced.name.clone(),
            fleet: self.who.facts().fleet.map(|fleet| format!("{fleet:032x}")),
            view: roster.view.number,
            why: roster.why.clone(),
            term,
            leader: leader.and_then(name_of),
            is_leader: leads.is_some(),
            voters: self
                .node
                .voters()
                .into_iter()
                .map(|(node, at)| (name_of(node).unwrap_or_else(|| format!("{node:016x}")), at.addr))
                .collect(),
            lease_seconds: self.lease.until().saturating_sub(now) as f64 / 1e6,
            waits_for: match me {
                Some(_) => String::new(),
                None => guard(&self.mine).waits_for.clone(),
            },
            peers: peers.collect(),
            alerts: self.alerts().into_iter().collect(),
            candidates: guard(&self.candidates)
                .iter()
                .map(|(name, _)| name.clone())
                .collect(),
            removed: roster
                .removed
                .into_iter()
                .map(|(name, why)| (name, why.to_string()))
                .collect(),
            commits: commits.0,
            commit_seconds: commits.1 as f64 / 1e6 / commits.0.max(1) as f64,
        }
    }

    /// The number of copies of this pool at other peers, and of those that are read there.
    pub fn copies_at_others(&self, pool: &str) -> (usize, usize) {
        let roster = self.roster.borrow();
        let is_other = |peer: &&Peer| {
            peer.name != self.announced.name && peer.copies.iter().any(|(name, _)| name == pool)
        };
        let others = roster.view.peers.iter().filter(is_other);
        others.fold((0, 0), |(copies, read), peer| {
            (copies + 1, read + usize::from(peer.decides))
        })
    }

    /// Why clients are not to be sent here; `None`: this proxy has a lease.
    pub fn unready(&self) -> Option<String> {
        if self.lease.is_valid(now()) {
            return None;
        }
        let waits_for = guard(&self.mine).waits_for.clone();
        Some(match (self.me(), waits_for.is_empty()) {
            (None, false) => waits_for,
            (None, true) => "this proxy has not joined its fleet yet".to_owned(),
            (Some(_), _) => "the lease has ended: no majority of the voters is in reach".to_owned(),
        })
    }

    /// How often peers have left, by the label of the cause.
    pub fn removals(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.roster.borrow().removals;
        Cause::LABELS.into_iter().zip(counts)
    }

    /// How often this proxy has joined, by how its own copies were repaired.
    pub fn repairs(&self) -> [(&'static str, u64); 2] {
        let mine = guard(&self.mine);
        [("keys", mine.repaired_keys), ("flush", mine.flushed)]
    }

    /// Removes a peer, as an operator asks for it.
    ///
    /// # Errors
    /// There is no such peer, or no leader; the text says which.
    pub async fn remove_peer(&self, name: &str) -> Result<(), RemoveError> {
        match self.remove_by_hand(name).await {
            super::message::Reply::Done => Ok(()),
            super::message::Reply::Refused(why) => Err(RemoveError(why)),
            _ => Err(RemoveError("the voters have no leader now".to_owned())),
        }
    }
}

/// A peer is not removed, for this reason.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RemoveError(String);
