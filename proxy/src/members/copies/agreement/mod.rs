//! The one place that decides what a copy may be used for. Whoever reads and writes copies is a participant: a change is
//! proposed to all of them, and only when all have acknowledged it the next step follows. The workers of this process are
//! the participants today; other proxies can be.
//!
//! Pure: events in, [`Act`]s out. Invariants that the tests below hold it to:
//! * a write is acknowledged without a copy only after no participant reads that copy, and that it owes is written down;
//! * a copy is read again only after every participant writes to it and what it owes is paid;
//! * an acknowledgement counts only for the proposal that it answers (its epoch).

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::{Duration, Instant},
};

use super::{Debt, Incarnation, Owed, Standing};
use crate::members::MemberId;

/// What is to be done.
#[derive(Clone, Debug)]
pub enum Act {
    /// Tell every participant; each answers with [`Agreement::acknowledged`].
    Propose {
        member: MemberId,
        epoch: u64,
        standing: Standing,
    },
    /// Write down who owes; then [`Agreement::noted`].
    Note { member: MemberId, epoch: u64 },
    /// See whether it answers, until it does; then [`Agreement::reachable`].
    Watch {
        member: MemberId,
        epoch: u64,
        /// How often it has failed lately: the more, the later it is looked at.
        setbacks: u32,
    },
    /// Prove that our old connections are gone and pay the debt; then [`Agreement::paid`].
    Pay {
        member: MemberId,
        epoch: u64,
        debt: Debt,
        /// In which life it was last met; none: it never was.
        known: Option<Incarnation>,
    },
}

/// What is known of one copy, for people.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub standing: Standing,
    pub since: Instant,
    pub why: String,
    /// Keys owed; none: everything.
    pub owed: Option<usize>,
    /// It is named no more.
    pub absent: bool,
}

#[derive(Debug)]
struct Copy {
    group: String,
    standing: Standing,
    epoch: u64,
    /// Participants that have not acknowledged the standing.
    waiting: BTreeSet<usize>,
    debt: Debt,
    reachable: bool,
    /// It is named no more.
    absent: bool,
    setbacks: u32,
    since: Instant,
    why: String,
}

impl Copy {
    /// Is it out, for every participant, and may rejoin as soon as it answers?
    fn is_waited_for(&self) -> bool {
        self.standing == Standing::Out && self.waiting.is_empty() && !self.absent
    }

    fn watch(&self, member: MemberId) -> Vec<Act> {
        let act = Act::Watch {
            member,
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
    /// Only copies that missed something; a current one costs nothing.
    copies: BTreeMap<MemberId, Copy>,
    /// Members of each group that must be in reach before any of it rejoins, and how many it has.
    groups: BTreeMap<String, Group>,
    /// Those that became current again: when, and after how many setbacks.
    recovered: BTreeMap<MemberId, (Instant, u32)>,
    /// In which life each was last met.
    lives: BTreeMap<MemberId, Incarnation>,
}

/// Who fails again so soon after it recovered has had a setback.
const SOON: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
struct Group {
    members: usize,
    quorum: usize,
}

impl Agreement {
    pub fn new(participants: usize) -> Self {
        Self {
            participants,
            epoch: 0,
            copies: BTreeMap::new(),
            groups: BTreeMap::new(),
            recovered: BTreeMap::new(),
            lives: BTreeMap::new(),
        }
    }

    /// A group has so many members, of which `quorum` must be in reach for one to rejoin.
    pub fn group(&mut self, name: &str, members: usize, quorum: usize) {
        self.groups.insert(name.to_owned(), Group { members, quorum });
    }

    /// Who this copy's server is.
    pub fn met(&mut self, member: MemberId, who: Incarnation) {
        self.lives.insert(member, who);
    }

    /// In which life this copy's server was last met.
    pub fn life(&self, member: MemberId) -> Option<Incarnation> {
        self.lives.get(&member).copied()
    }

    /// The standing of a copy as it was last proposed.
    pub fn standing(&self, member: MemberId) -> Standing {
        self.copies
            .get(&member)
            .map_or(Standing::Current, |copy| copy.standing)
    }

    pub fn snapshot(&self, member: MemberId) -> Option<Snapshot> {
        self.copies.get(&member).map(|copy| Snapshot {
            standing: copy.standing,
            since: copy.since,
            why: copy.why.clone(),
            owed: copy.debt.count(),
            absent: copy.absent,
        })
    }

    /// Why the standing of this copy is what was proposed last.
    pub fn reason(&self, member: MemberId) -> Option<String> {
        let copy = self.copies.get(&member)?;
        Some(match copy.standing {
            Standing::Leaving | Standing::Opening => copy.why.clone(),
            Standing::Out => format!("nobody reads it any more; it owes {}", copy.debt),
            Standing::Joining => format!("it answers; it owes {}", copy.debt),
            Standing::Current => "all write to it, and it owes nothing".to_owned(),
        })
    }

    /// Who owes, or may.
    pub fn owing(&self) -> impl Iterator<Item = MemberId> {
        self.copies.keys().copied()
    }

    /// A participant saw this copy miss a write, or it is not known what it holds.
    pub fn missed(&mut self, member: MemberId, group: &str, why: &str, owed: Owed, now: Instant) -> Vec<Act> {
        let waiting: BTreeSet<usize> = (0..self.participants).collect();
        let setbacks = match self.recovered.remove(&member) {
            Some((when, setbacks)) if now.duration_since(when) < SOON => setbacks + 1,
            _ => 0,
        };
        let copy = self.copies.entry(member).or_insert_with(|| Copy {
            group: group.to_owned(),
            standing: Standing::Current,
            epoch: 0,
            waiting: BTreeSet::new(),
            debt: Debt::default(),
            reachable: false,
            absent: false,
            setbacks,
            since: now,
            why: why.to_owned(),
        });
        copy.debt.add(owed);
        copy.debt.missed(now);
        if !copy.standing.is_written() {
            return Vec::new();
        }
        why.clone_into(&mut copy.why);
        copy.since = now;
        copy.reachable = false;
        self.propose(member, Standing::Leaving, waiting)
    }

    /// This copy is named no more: it is neither read nor written, and not looked at, until it returns or is removed.
    pub fn vanished(&mut self, member: MemberId, group: &str, now: Instant) -> Vec<Act> {
        if self.copies.get(&member).is_some_and(|copy| copy.absent) {
            return Vec::new();
        }
        let acts = self.missed(member, group, "it is named no more", Owed::default(), now);
        if let Some(copy) = self.copies.get_mut(&member) {
            copy.absent = true;
            copy.reachable = false;
        }
        acts
    }

    /// This copy is named. If it was not until now, it may rejoin, and owes what it missed.
    pub fn returned(&mut self, member: MemberId) -> Vec<Act> {
        match self.copies.get_mut(&member) {
            Some(copy) if copy.absent => {
                copy.absent = false;
                copy.watch(member)
            }
            _ => Vec::new(),
        }
    }

    /// Our end of a connection to this copy that broke with requests unanswered.
    pub fn broken(&mut self, member: MemberId, address: Option<SocketAddr>) {
        if let Some(copy) = self.copies.get_mut(&member) {
            copy.debt.connection(address);
        }
    }

    /// A participant follows the proposal of `epoch`; what it saw the copy miss until then is `owed`.
    pub fn acknowledged(
        &mut self,
        participant: usize,
        member: MemberId,
        epoch: u64,
        owed: Owed,
        now: Instant,
    ) -> Vec<Act> {
        let Some(copy) = self.copies.get_mut(&member) else {
            return Vec::new();
        };
        if owed != Owed::default() {
            copy.debt.add(owed);
            copy.debt.missed(now);
        }
        if epoch != copy.epoch || !copy.waiting.remove(&participant) || !copy.waiting.is_empty() {
            return Vec::new();
        }
        match copy.standing {
            Standing::Leaving => vec![Act::Note { member, epoch }],
            Standing::Out => copy.watch(member),
            Standing::Joining => vec![Act::Pay {
                member,
                epoch,
                debt: copy.debt.clone(),
                known: self.lives.get(&member).copied(),
            }],
            Standing::Opening => self.step(member, Standing::Current),
            Standing::Current => {
                let setbacks = copy.setbacks;
                self.copies.remove(&member);
                self.recovered.insert(member, (now, setbacks));
                vec![Act::Note { member, epoch }]
            }
        }
    }

    /// What [`Act::Note`] asked for is done: others may go on without this copy.
    pub fn noted(&mut self, member: MemberId, epoch: u64) -> Vec<Act> {
        let leaves = |copy: &Copy| copy.standing == Standing::Leaving && copy.waiting.is_empty();
        match self.copies.get(&member) {
            Some(copy) if copy.epoch == epoch && leaves(copy) => self.step(member, Standing::Out),
            _ => Vec::new(),
        }
    }

    /// Does the copy of [`Act::Watch`] answer? With enough others in reach it may rejoin.
    pub fn reachable(&mut self, member: MemberId, epoch: u64, answers: bool) -> Vec<Act> {
        let Some(copy) = self.copies.get_mut(&member).filter(|copy| copy.epoch == epoch) else {
            return Vec::new();
        };
        if !copy.is_waited_for() {
            return Vec::new();
        }
        copy.reachable = answers;
        let group = copy.group.clone();
        if !answers || !self.has_quorum(&group) {
            return Vec::new();
        }
        // Together with all others that answer: alone each of them may be too few to take a write, and would fall again.
        let joining: Vec<MemberId> = self
            .copies
            .iter()
            .filter(|(_, copy)| copy.group == group && copy.is_waited_for() && copy.reachable)
            .map(|(&id, _)| id)
            .collect();
        joining
            .into_iter()
            .flat_map(|id| self.step(id, Standing::Joining))
            .collect()
    }

    /// Why this copy, which answers, may not rejoin yet.
    pub fn held_up(&mut self, member: MemberId, why: String) {
        if let Some(copy) = self.copies.get_mut(&member) {
            copy.why = why;
        }
    }

    /// Is a copy in this step still being watched?
    pub fn is_watched(&self, member: MemberId, epoch: u64) -> bool {
        self.copies
            .get(&member)
            .is_some_and(|copy| copy.epoch == epoch && copy.standing == Standing::Out && !copy.absent)
    }

    fn has_quorum(&self, name: &str) -> bool {
        let Some(group) = self.groups.get(name) else {
            return true;
        };
        let away = self
            .copies
            .values()
            .filter(|copy| copy.group == name && !copy.absent)
            .filter(|copy| !copy.standing.is_written() && !copy.reachable)
            .count();
        group.members.saturating_sub(away) >= group.quorum
    }

    /// The visit of [`Act::Pay`] has ended: paid by a server in this life, and how, or why not.
    pub fn paid(
        &mut self,
        member: MemberId,
        epoch: u64,
        result: Result<(Incarnation, String), String>,
        now: Instant,
    ) -> Vec<Act> {
        let Some(copy) = self.copies.get_mut(&member).filter(|copy| copy.epoch == epoch) else {
            return Vec::new();
        };
        match result {
            Ok((who, how)) => {
                self.lives.insert(member, who);
                copy.debt = Debt::default();
                copy.why = how;
                self.step(member, Standing::Opening)
            }
            Err(why) => {
                copy.why = why;
                copy.setbacks += 1;
                copy.since = now;
                copy.reachable = false;
                self.step(member, Standing::Leaving)
            }
        }
    }

    /// The member is gone from the configuration; returns what it owed.
    pub fn removed(&mut self, member: MemberId) -> Debt {
        self.recovered.remove(&member);
        self.lives.remove(&member);
        self.copies
            .remove(&member)
            .map_or_else(Debt::default, |copy| copy.debt)
    }

    fn step(&mut self, member: MemberId, standing: Standing) -> Vec<Act> {
        self.propose(member, standing, (0..self.participants).collect())
    }

    fn propose(&mut self, member: MemberId, standing: Standing, waiting: BTreeSet<usize>) -> Vec<Act> {
        self.epoch += 1;
        let epoch = self.epoch;
        if let Some(copy) = self.copies.get_mut(&member) {
            copy.standing = standing;
            copy.epoch = epoch;
            copy.waiting = waiting;
        }
        vec![Act::Propose {
            member,
            epoch,
            standing,
        }]
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;
