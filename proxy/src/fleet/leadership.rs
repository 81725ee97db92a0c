//! The leader's knowledge of the peers, and its decisions: which leases it takes for ended, which peers are
//! removed because others do not reach them, which peers join, and which decide. Times are those of the
//! leader's CLOCK_BOOTTIME, in microseconds.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::{Cause, Change, Peer, Stay, View};

/// The word of a peer that it lives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Its name.
    pub name: String,
    /// Its stay; 0: it has none.
    pub stay: Stay,
    /// The time of sending by the sender's clock. The grant repeats it.
    pub sent: u64,
    /// The newest view that all of its workers have installed.
    pub installed: u64,
    /// The newest view before which none of its workers has a decision under way.
    pub settled: u64,
    /// Peers that have left changes of this one unanswered.
    pub late: Vec<String>,
    /// Peers that have answered this one recently and are in no view that it knows: they may want to join.
    pub reaches: BTreeSet<String>,
    /// Its own copies may be read, so that it can decide.
    pub can_decide: bool,
    /// The number of the newest roster's view that it knows.
    pub knows: u64,
}

/// A peer's right to answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The time of the heartbeat, by the clock of the peer: the lease counts from it.
    pub sent: u64,
    /// Is it granted?
    pub granted: bool,
    /// The term of the leader.
    pub term: u64,
    /// At all peers, decisions that began before this view have ended.
    pub settled: u64,
    /// The roster, if the peer does not know it.
    pub roster: Option<super::Roster>,
    /// The candidates with their addresses, so that all peers check whether they reach them.
    pub candidates: Vec<(String, std::net::SocketAddr)>,
}

/// A proxy that wants to join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// The peer as it announces itself.
    pub peer: Peer,
    /// The peers that it reaches.
    pub reaches: BTreeSet<String>,
}

/// An action of the leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Take this peer's lease away, so that it may be removed before the lease ends.
    Stop {
        /// Its name.
        name: String,
        /// Its stay.
        stay: Stay,
    },
    /// Propose this change.
    Propose(Change),
}

#[derive(Clone, Debug, Default)]
struct PeerState {
    stay: Stay,
    /// The leader takes the lease for valid until then.
    alive: u64,
    last: u64,
    settled: u64,
    late: Vec<String>,
    /// The view that it knew when it sent its complaints.
    knew: u64,
    reaches: BTreeSet<String>,
    can_decide: bool,
    /// Since when it cannot.
    cannot_since: Option<u64>,
    /// It is to be removed as others do not reach it, for this reason.
    condemned: Option<Cause>,
    /// It has stopped answering.
    stopped: bool,
}

#[derive(Clone, Debug, Default)]
struct Pause {
    until: u64,
    length: u64,
}

/// The state of one term's leader.
#[derive(Clone, Debug)]
pub struct Leadership {
    /// When it was elected.
    since: u64,
    /// It has looked at the peers before: a peer that is new to it has joined just now.
    has_looked: bool,
    /// The length of a lease, in microseconds.
    lease: u64,
    states: HashMap<String, PeerState>,
    /// The number of the view, and the view up to which all of its peers have settled, as of the last news of
    /// a peer.
    settled: Option<(u64, u64)>,
    candidates: BTreeMap<String, (u64, Candidate)>,
    pauses: HashMap<String, Pause>,
}

/// The first and the longest pause before a peer that was removed may join again, in microseconds.
const PAUSES: (u64, u64) = (1_000_000, 30_000_000);
/// The time in µs after which a candidate that has not asked again no longer wants to join.
const CANDIDATE: u64 = 2_000_000;
/// The time in µs after which a peer whose copy may not be read no longer decides.
const ABSTAIN: u64 = 1_000_000;

impl Leadership {
    /// A leader that was elected at `now`. It counts every peer as if it had just been heard, as an earlier
    /// leader may have granted a lease until now.
    pub fn new(now: u64, lease: u64) -> Self {
        Self {
            since: now,
            has_looked: false,
            lease,
            states: HashMap::new(),
            settled: None,
            candidates: BTreeMap::new(),
            pauses: HashMap::new(),
        }
    }

    /// How long the leader waits for a lease of this peer: clocks may differ by 1 %, and a little more. A
    /// peer may be configured with a longer lease than the leader.
    fn wait(&self, peer: &Peer) -> u64 {
        let lease = self.lease.max(peer.lease);
        lease + lease / 100 + 20_000
    }

    /// Has every peer of this view been heard since this time?
    pub fn has_heard_all(&self, view: &View, since: u64) -> bool {
        let is_heard = |peer: &Peer| {
            let state = self.states.get(&peer.name);
            state.is_some_and(|state| state.stay == peer.stay && state.last >= since)
        };
        view.peers.iter().all(is_heard)
    }

    /// A heartbeat has come. Returns whether a lease may be granted to it after the next proof of leadership.
    pub fn heartbeat(&mut self, now: u64, view: &View, beat: &Heartbeat) -> bool {
        let Some(peer) = view.named(&beat.name).filter(|peer| peer.stay == beat.stay) else {
            return false;
        };
        let wait = self.wait(peer);
        let state = self.states.entry(beat.name.clone()).or_default();
        let is_new = state.stay != beat.stay;
        if is_new {
            *state = PeerState {
                stay: beat.stay,
                ..PeerState::default()
            };
        }
        state.last = now;
        if (is_new, state.settled) != (false, beat.settled) {
            self.settled = None;
        }
        state.settled = beat.settled;
        state.late.clone_from(&beat.late);
        state.knew = beat.knows;
        state.reaches.clone_from(&beat.reaches);
        state.can_decide = beat.can_decide;
        match beat.can_decide {
            true => state.cannot_since = None,
            false => {
                state.cannot_since.get_or_insert(now);
            }
        }
        if state.condemned.is_some() {
            return false;
        }
        state.alive = now + wait;
        true
    }

    /// A peer has stopped answering, as it was told.
    pub fn stopped(&mut self, name: &str, stay: Stay) {
        if let Some(state) = self.states.get_mut(name).filter(|state| state.stay == stay) {
            state.stopped = true;
        }
    }

    /// A proxy wants to join.
    pub fn candidate(&mut self, now: u64, candidate: Candidate) {
        self.candidates
            .insert(candidate.peer.name.clone(), (now, candidate));
    }

    /// A peer leaves: its earlier requests no longer count.
    pub fn forget_candidate(&mut self, name: &str) {
        self.candidates.remove(name);
    }

    /// Those who want to join, with their addresses.
    pub fn candidates(&self) -> Vec<(String, std::net::SocketAddr)> {
        let all = self.candidates.values();
        all.map(|(_, one)| (one.peer.name.clone(), one.peer.address))
            .collect()
    }

    /// At all peers of the view, decisions that began before this view have ended.
    pub fn settled(&mut self, view: &View) -> u64 {
        if let Some((number, settled)) = self.settled
            && number == view.number
        {
            return settled;
        }
        let of = |peer: &Peer| {
            let state = self
                .states
                .get(&peer.name)
                .filter(|state| state.stay == peer.stay);
            state.map_or(0, |state| state.settled)
        };
        let settled = view.peers.iter().map(of).min().unwrap_or(0);
        self.settled = Some((view.number, settled));
        settled
    }

    /// The status of a peer for operators: the time of its last heartbeat, and the peers that it complains
    /// of.
    pub fn status(&self, name: &str) -> Option<(u64, &[String])> {
        let state = self.states.get(name)?;
        Some((state.last, &state.late))
    }

    /// The actions that are due now. `voters`: the names of the peers that vote.
    pub fn decide(&mut self, now: u64, view: &View, voters: &BTreeSet<String>) -> Vec<Act> {
        let stays: HashMap<&str, Stay> = view
            .peers
            .iter()
            .map(|peer| (peer.name.as_str(), peer.stay))
            .collect();
        self.states
            .retain(|name, state| stays.get(name.as_str()) == Some(&state.stay));
        self.candidates.retain(|_, (asked, _)| now < *asked + CANDIDATE);
        let since = if self.has_looked { now } else { self.since };
        self.has_looked = true;
        for peer in &view.peers {
            let wait = self.wait(peer);
            self.states.entry(peer.name.clone()).or_insert_with(|| PeerState {
                stay: peer.stay,
                alive: since + wait,
                last: since,
                can_decide: peer.decides,
                ..PeerState::default()
            });
        }
        let mut acts = self.condemn(now, view, voters);
        let gone: Vec<(String, Stay, Cause)> = view
            .peers
            .iter()
            .filter_map(|peer| {
                let state = self.states.get(&peer.name)?;
                let why = match &state.condemned {
                    Some(why) if state.stopped || now >= state.alive => why.clone(),
                    None if now >= state.alive => Cause::LeaseEnded,
                    _ => return None,
                };
                Some((peer.name.clone(), peer.stay, why))
            })
            .collect();
        if let Some((_, _, why)) = gone.first() {
            let why = why.clone();
            gone.iter().for_each(|(name, ..)| self.pause(name, now));
            let peers = gone.into_iter().map(|(name, stay, _)| (name, stay)).collect();
            acts.push(Act::Propose(Change::Remove { peers, why }));
            return acts;
        }
        if let Some(change) = self.restarted(view) {
            acts.push(Act::Propose(change));
            return acts;
        }
        if let Some(change) = self.decider(now, view).or_else(|| self.join(now, view)) {
            acts.push(Act::Propose(change));
        }
        acts
    }

    fn pause(&mut self, name: &str, now: u64) {
        let pause = self.pauses.entry(name.to_owned()).or_default();
        // The pauses of a peer that stayed for long begin anew.
        let has_stayed = now > pause.until + 2 * PAUSES.1;
        pause.length = match pause.length {
            0 => PAUSES.0,
            _ if has_stayed => PAUSES.0,
            length => (length * 2).min(PAUSES.1),
        };
        pause.until = now + pause.length;
    }

    /// Condemns peers until they cover all pairs of which one has complained of the other, those with the
    /// most pairs first. Where one peer or one side of a cut is at fault, these are the fewest.
    fn condemn(&mut self, now: u64, view: &View, voters: &BTreeSet<String>) -> Vec<Act> {
        let mut pairs: BTreeSet<(String, String)> = BTreeSet::new();
        for (accuser, state) in &self.states {
            let is_fresh = now < state.last + self.lease;
            // A peer does not complain of a stay that it does not know: a peer that has joined again starts
            // clean.
            let is_known = |accused: &&String| {
                let peer = view.named(accused);
                peer.is_some_and(|peer| peer.stay.0 <= state.knew)
            };
            let accused = state.late.iter().filter(is_known);
            if is_fresh && state.condemned.is_none() {
                pairs.extend(accused.map(|accused| (accuser.clone(), accused.clone())));
            }
        }
        pairs.retain(|(_, accused)| {
            let state = self.states.get(accused);
            state.is_some_and(|state| state.condemned.is_none())
        });
        let mut acts = Vec::new();
        while !pairs.is_empty() {
            let mut count: BTreeMap<&String, usize> = BTreeMap::new();
            // Two that complain of each other are one pair.
            let is_told_before = |accuser: &String, accused: &String| {
                accused < accuser && pairs.contains(&(accused.clone(), accuser.clone()))
            };
            for (accuser, accused) in &pairs {
                if is_told_before(accuser, accused) {
                    continue;
                }
                *count.entry(accuser).or_default() += 1;
                *count.entry(accused).or_default() += 1;
            }
            let is_heard = |name: &str| {
                let last = self.states.get(name).map_or(0, |state| state.last);
                now < last + self.lease / 2
            };
            let is_accused = |name: &String| pairs.iter().any(|(_, accused)| accused == name);
            let worst = count.iter().max_by_key(|(name, pairs)| {
                (
                    **pairs,
                    !is_heard(name),
                    !voters.contains(**name),
                    is_accused(name),
                    std::cmp::Reverse(name.as_str()),
                )
            });
            let Some(name) = worst.map(|(name, _)| (*name).clone()) else {
                break;
            };
            let others: BTreeSet<&str> = pairs
                .iter()
                .filter(|(accuser, accused)| *accuser == name || *accused == name)
                .map(|(accuser, accused)| if *accuser == name { accused } else { accuser })
                .map(String::as_str)
                .collect();
            let why = Cause::Unanswered(others.into_iter().map(str::to_owned).collect());
            pairs.retain(|(accuser, accused)| *accuser != name && *accused != name);
            if let Some(state) = self.states.get_mut(&name) {
                state.condemned = Some(why);
                acts.push(Act::Stop {
                    name,
                    stay: state.stay,
                });
            }
        }
        acts
    }

    /// A peer that begins to decide, or stops.
    fn decider(&self, now: u64, view: &View) -> Option<Change> {
        let decide = |peer: &Peer, decides| Change::Decide {
            name: peer.name.clone(),
            stay: peer.stay,
            decides,
        };
        view.peers.iter().find_map(|peer| {
            let state = self.states.get(&peer.name)?;
            let cannot = state.cannot_since.is_some_and(|since| now >= since + ABSTAIN);
            match peer.decides {
                false if state.can_decide => Some(decide(peer, true)),
                true if cannot => Some(decide(peer, false)),
                _ => None,
            }
        })
    }

    /// A peer of the view whose process has ended: another one of the same directory asks to join, and only
    /// one process at a time has a directory.
    fn restarted(&self, view: &View) -> Option<Change> {
        let gone = self.candidates.values().find_map(|(_, candidate)| {
            let peer = view.named(&candidate.peer.name)?;
            let other = (peer.identity, peer.process) == (candidate.peer.identity, candidate.peer.process);
            (!other && peer.identity == candidate.peer.identity).then(|| (peer.name.clone(), peer.stay))
        })?;
        Some(Change::Remove {
            peers: vec![gone],
            why: Cause::Restarted,
        })
    }

    /// The candidate that all peers reach, and that reaches all of them.
    fn join(&mut self, now: u64, view: &View) -> Option<Change> {
        let is_free = |candidate: &Candidate| {
            let pause = self.pauses.get(&candidate.peer.name);
            pause.is_none_or(|pause| now >= pause.until)
        };
        let is_linked = |candidate: &Candidate| {
            let name = &candidate.peer.name;
            view.peers.iter().filter(|peer| peer.name != *name).all(|peer| {
                let state = self.states.get(&peer.name);
                candidate.reaches.contains(&peer.name)
                    && state.is_some_and(|state| state.reaches.contains(name))
            })
        };
        // A peer of this name must leave the view first: its process has ended, or its lease ends.
        let ready = self.candidates.values().find(|(_, candidate)| {
            view.named(&candidate.peer.name).is_none() && is_free(candidate) && is_linked(candidate)
        })?;
        let peer = ready.1.peer.clone();
        self.candidates.remove(&peer.name);
        Some(Change::Join { peers: vec![peer] })
    }
}

#[cfg(test)]
mod tests;
