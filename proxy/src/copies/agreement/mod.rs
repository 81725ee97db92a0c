//! The agreement decides what a copy may be used for; no other module does. Every worker that reads and
//! writes copies is a participant: a change is proposed to all participants, and the next step follows only
//! when all have acknowledged it.
//!
//! It is pure: it takes events and returns [`Act`]s, which `execute` carries out. Its tests hold it to these
//! invariants:
//! * a write is acknowledged without a copy only once no participant reads that copy, and the state file says
//!   that it missed writes;
//! * a copy is read again only once every participant writes to it and what it missed is repaired;
//! * an acknowledgement counts only for the proposal that it answers (its epoch).

mod execute;
mod leave;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

pub use self::execute::Environment;
use super::{
    CopyState, MissedKeys, MissedWrites,
    repair::{RepairError, RepairReport},
};
use crate::{members::ServerIdentity, protocol::Incarnation};

/// An action of the caller.
#[derive(Clone, Debug)]
pub enum Act {
    /// Tell every participant; each answers with [`Agreement::acknowledged`].
    Propose(Proposal),
    /// Write the state file; then [`Agreement::saved`].
    Save {
        /// The copy whose step waits for it.
        server: ServerIdentity,
        /// The proposal that led to it.
        epoch: u64,
    },
    /// Probe the copy until it answers, and then call [`Agreement::reachable`].
    Watch {
        /// The copy.
        server: ServerIdentity,
        /// The proposal that led to it.
        epoch: u64,
        /// Recent failures: with each of them the next probe comes later.
        setbacks: u32,
    },
    /// Repair the copy; then [`Agreement::repaired`].
    Repair(RepairTask),
}

/// A new state of one copy, for every participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The copy.
    pub server: ServerIdentity,
    /// The number of the proposal, greater than that of any before it.
    pub epoch: u64,
    /// The state of the copy from now on.
    pub state: CopyState,
}

/// A repair that is due.
#[derive(Clone, Debug)]
pub struct RepairTask {
    /// The copy.
    pub server: ServerIdentity,
    /// The proposal that led to it.
    pub epoch: u64,
    /// The writes that it missed.
    pub missed: MissedWrites,
    /// The life in which its server was last met; `None`: it was never met.
    pub known: Option<Incarnation>,
}

/// The status of a copy that is not simply current, for operators.
#[derive(Clone, Debug)]
pub struct CopyStatus {
    /// Its state.
    pub state: CopyState,
    /// Since when it misses writes, or was last repaired in vain.
    pub since: Instant,
    /// Why.
    pub why: String,
    /// Keys that it missed; `None`: everything.
    pub missed: Option<usize>,
    /// It is no longer in the configuration.
    pub departed: bool,
}

#[derive(Debug)]
struct Copy {
    state: CopyState,
    epoch: u64,
    /// Participants that have not acknowledged the state.
    waiting: BTreeSet<usize>,
    missed: MissedWrites,
    reachable: bool,
    /// It is no longer in the configuration.
    departed: bool,
    setbacks: u32,
    since: Instant,
    why: String,
}

impl Copy {
    /// Is it out, for every participant, and may rejoin as soon as it answers?
    fn is_waited_for(&self) -> bool {
        self.state == CopyState::Out && self.waiting.is_empty() && !self.departed
    }

    fn watch(&self, server: &ServerIdentity) -> Vec<Act> {
        let act = Act::Watch {
            server: server.clone(),
            epoch: self.epoch,
            setbacks: self.setbacks,
        };
        self.is_waited_for().then_some(act).into_iter().collect()
    }
}

/// The copies that are not simply current, and the rules by which they change.
#[derive(Debug)]
pub struct Agreement {
    participants: usize,
    epoch: u64,
    /// It has only copies that missed writes; a current copy costs nothing.
    copies: BTreeMap<ServerIdentity, Copy>,
    pools: BTreeMap<Arc<str>, Pool>,
    /// Copies that became current again: when, and after how many setbacks.
    recovered: BTreeMap<ServerIdentity, (Instant, u32)>,
    /// The life in which each server was last met.
    lives: BTreeMap<ServerIdentity, Incarnation>,
}

/// A failure this soon after recovery counts as a setback and increases the back-off.
const SOON: Duration = Duration::from_secs(60);

/// How many members a pool has, and how many of them must be in reach before any of it rejoins.
#[derive(Clone, Copy, Debug)]
struct Pool {
    members: usize,
    quorum: usize,
}

impl Agreement {
    /// An agreement of this number of participants, in which every copy is current.
    pub fn new(participants: usize) -> Self {
        Self {
            participants,
            epoch: 0,
            copies: BTreeMap::new(),
            pools: BTreeMap::new(),
            recovered: BTreeMap::new(),
            lives: BTreeMap::new(),
        }
    }

    /// Sets the number of members of a pool, of which `quorum` must be in reach for a copy to rejoin.
    pub fn set_pool(&mut self, name: &str, members: usize, quorum: usize) {
        self.pools.insert(name.into(), Pool { members, quorum });
    }

    /// This copy's server was met in this life.
    pub fn met(&mut self, server: &ServerIdentity, life: Incarnation) {
        self.lives.insert(server.clone(), life);
    }

    /// The life in which this copy's server was last met; `None`: it was never met.
    pub fn life(&self, server: &ServerIdentity) -> Option<Incarnation> {
        self.lives.get(server).copied()
    }

    /// The state of a copy as it was last proposed.
    pub fn state(&self, server: &ServerIdentity) -> CopyState {
        self.copies
            .get(server)
            .map_or(CopyState::Current, |copy| copy.state)
    }

    /// The status of a copy; `None` if it is simply current.
    pub fn status(&self, server: &ServerIdentity) -> Option<CopyStatus> {
        self.copies.get(server).map(|copy| CopyStatus {
            state: copy.state,
            since: copy.since,
            why: copy.why.clone(),
            missed: copy.missed.count(),
            departed: copy.departed,
        })
    }

    /// The reason of the state that was proposed last; `None` if the copy is simply current.
    pub fn reason(&self, server: &ServerIdentity) -> Option<String> {
        let copy = self.copies.get(server)?;
        Some(match copy.state {
            CopyState::Leaving | CopyState::Opening => copy.why.clone(),
            CopyState::Out => format!("no worker reads it any more; it missed {}", copy.missed),
            CopyState::Joining => format!("it answers; it missed {}", copy.missed),
            CopyState::Current => "every worker writes to it, and nothing is left to repair".to_owned(),
        })
    }

    /// Are all copies simply current?
    pub fn is_settled(&self) -> bool {
        self.copies.is_empty()
    }

    /// The configuration names this copy. If it did not until now, the copy may rejoin, and what it missed is
    /// repaired.
    pub fn returned(&mut self, server: &ServerIdentity) -> Vec<Act> {
        match self.copies.get_mut(server) {
            Some(copy) if copy.departed => {
                copy.departed = false;
                copy.watch(server)
            }
            _ => Vec::new(),
        }
    }

    /// A connection to this copy broke with unanswered requests. `end` is our end of it, if it is known.
    pub fn broken(&mut self, server: &ServerIdentity, end: Option<SocketAddr>) {
        if let Some(copy) = self.copies.get_mut(server) {
            copy.missed.add_connection(end);
        }
    }

    /// A participant follows the proposal of `epoch`, and saw the copy miss these keys until then.
    pub fn acknowledged(
        &mut self,
        participant: usize,
        server: &ServerIdentity,
        epoch: u64,
        missed: MissedKeys,
        now: Instant,
    ) -> Vec<Act> {
        let Some(copy) = self.copies.get_mut(server) else {
            return Vec::new();
        };
        if missed != MissedKeys::default() {
            copy.missed.add(missed);
            copy.missed.missed_at(now);
        }
        if epoch != copy.epoch || !copy.waiting.remove(&participant) || !copy.waiting.is_empty() {
            return Vec::new();
        }
        let server = server.clone();
        match copy.state {
            CopyState::Leaving => vec![Act::Save { server, epoch }],
            CopyState::Out => copy.watch(&server),
            CopyState::Joining => vec![Act::Repair(RepairTask {
                known: self.lives.get(&server).copied(),
                missed: copy.missed.clone(),
                server,
                epoch,
            })],
            CopyState::Opening => self.step(&server, CopyState::Current),
            CopyState::Current => {
                let setbacks = copy.setbacks;
                self.copies.remove(&server);
                self.recovered.insert(server.clone(), (now, setbacks));
                vec![Act::Save { server, epoch }]
            }
        }
    }

    /// The write of [`Act::Save`] is on disk: clients' writes may go on without this copy.
    pub fn saved(&mut self, server: &ServerIdentity, epoch: u64) -> Vec<Act> {
        let leaves = |copy: &Copy| copy.state == CopyState::Leaving && copy.waiting.is_empty();
        match self.copies.get(server) {
            Some(copy) if copy.epoch == epoch && leaves(copy) => self.step(server, CopyState::Out),
            _ => Vec::new(),
        }
    }

    /// The copy of [`Act::Watch`] was probed. If it answers, and enough others are in reach, it may rejoin.
    pub fn reachable(&mut self, server: &ServerIdentity, epoch: u64, answers: bool) -> Vec<Act> {
        let Some(copy) = self.copies.get_mut(server).filter(|copy| copy.epoch == epoch) else {
            return Vec::new();
        };
        if !copy.is_waited_for() {
            return Vec::new();
        }
        copy.reachable = answers;
        if !answers || !self.has_quorum(&server.pool) {
            return Vec::new();
        }
        // It rejoins together with all others that answer: a single copy may be too few to take a write, and
        // would be out again.
        let joining: Vec<ServerIdentity> = self
            .copies
            .iter()
            .filter(|(other, copy)| other.pool == server.pool && copy.is_waited_for() && copy.reachable)
            .map(|(other, _)| other.clone())
            .collect();
        joining
            .iter()
            .flat_map(|server| self.step(server, CopyState::Joining))
            .collect()
    }

    /// Why this copy, which answers, may not rejoin yet.
    pub fn held_up(&mut self, server: &ServerIdentity, why: String) {
        if let Some(copy) = self.copies.get_mut(server) {
            copy.why = why;
        }
    }

    /// Is a copy in this step still being watched?
    pub fn is_watched(&self, server: &ServerIdentity, epoch: u64) -> bool {
        self.copies
            .get(server)
            .is_some_and(|copy| copy.epoch == epoch && copy.state == CopyState::Out && !copy.departed)
    }

    fn has_quorum(&self, name: &str) -> bool {
        let Some(pool) = self.pools.get(name) else {
            return true;
        };
        let away = self
            .copies
            .iter()
            .filter(|(server, copy)| *server.pool == *name && !copy.departed)
            .filter(|(_, copy)| !copy.state.is_written() && !copy.reachable)
            .count();
        pool.members.saturating_sub(away) >= pool.quorum
    }

    /// The repair of [`Act::Repair`] has ended.
    pub fn repaired(
        &mut self,
        server: &ServerIdentity,
        epoch: u64,
        result: Result<RepairReport, RepairError>,
        now: Instant,
    ) -> Vec<Act> {
        let Some(copy) = self.copies.get_mut(server).filter(|copy| copy.epoch == epoch) else {
            return Vec::new();
        };
        match result {
            Ok(RepairReport { life, remedy }) => {
                self.lives.insert(server.clone(), life);
                copy.missed = MissedWrites::default();
                copy.why = format!("repaired: {remedy}");
                self.step(server, CopyState::Opening)
            }
            Err(error) => {
                copy.why = error.to_string();
                copy.setbacks += 1;
                copy.since = now;
                copy.reachable = false;
                self.step(server, CopyState::Leaving)
            }
        }
    }

    /// The member is gone from the configuration; returns what it missed.
    pub fn removed(&mut self, server: &ServerIdentity) -> MissedWrites {
        self.recovered.remove(server);
        self.lives.remove(server);
        self.copies
            .remove(server)
            .map_or_else(MissedWrites::default, |copy| copy.missed)
    }

    fn step(&mut self, server: &ServerIdentity, state: CopyState) -> Vec<Act> {
        self.propose(server, state, (0..self.participants).collect())
    }

    fn propose(&mut self, server: &ServerIdentity, state: CopyState, waiting: BTreeSet<usize>) -> Vec<Act> {
        self.epoch += 1;
        let epoch = self.epoch;
        if let Some(copy) = self.copies.get_mut(server) {
            copy.state = state;
            copy.epoch = epoch;
            copy.waiting = waiting;
        }
        vec![Act::Propose(Proposal {
            server: server.clone(),
            epoch,
            state,
        })]
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;
