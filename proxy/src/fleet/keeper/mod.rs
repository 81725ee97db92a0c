//! The rules by which copies of a fleet stay equal, as one worker follows them. A worker is a *keeper*: it
//! takes the changes of peers for the own copy. It is a *coordinator*: it sends the changes of its own
//! clients to all keepers, and answers when all have acknowledged. The rules are those of Hermes (Katsarakis
//! and others, ASPLOS 2020), for a cache: where Hermes replays a change whose coordinator is gone, a key is
//! deleted.
//!
//! * `shared`: clock, newest stamps (`stamps`) and floor, which all workers of a process share
//! * `change`, `line`: the changes that this worker coordinates, and those that it has sent to each peer
//! * `doubts`: unconfirmed changes of peers; `open`: the keys of open changes; `missed`: the changes that
//!   peers miss while they are away
//! * `home`: the peer that decides a key; `install`: the next view
//! * `fork`: a second keeper in the same state, for a model
//!
//! Invariants. An acknowledged change is at every keeper of the view, or its key is deleted there, or that
//! copy is not read. A change that begins after an acknowledgement has a later stamp. A change that a keeper
//! has taken is confirmed or in doubt. A peer that saw another one leave has in `missed` every key that
//! changed since then.

mod change;
mod doubts;
mod fork;
mod home;
mod install;
mod line;
mod missed;
mod open;
mod rules;
mod shared;
mod stamps;

use std::{cmp::Ordering, collections::HashMap, sync::Arc};

use self::{change::Await, doubts::Doubts, home::History, line::Line};
pub use self::{
    change::{Change, ChangeId},
    doubts::Origin,
    home::home,
    install::{Installed, Orphan},
    missed::MissedByPeer,
    rules::Rules,
    shared::{Fate, KeyHistory, Shared},
};
use super::{Slot, Stamp, Stay, View};
use crate::{micros::Micros, table::Table};

/// The most changes that one worker coordinates at a time.
const UNDER_WAY: usize = 100_000;

/// One worker's part in keeping copies equal.
pub struct Keeper {
    shared: Arc<Shared>,
    rules: Rules,
    view: Arc<View>,
    /// This peer in the view; `None`: it is not in it.
    me: Option<(Slot, Stay)>,
    changes: Table<Change>,
    /// By slot, what was sent to each peer.
    lines: Vec<Option<Line>>,
    doubts: Doubts,
    /// The changes that peers miss while they are away, by name and identity.
    missed: HashMap<(String, u128), MissedByPeer>,
    /// Decisions that this worker coordinates, with the view that each began in.
    decisions: HashMap<u64, u64>,
    history: History,
    /// Changes to be sent; the caller takes them.
    sends: Vec<Send>,
}

/// A change that is to be sent to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Send {
    /// The peer.
    pub slot: Slot,
    /// Its stay.
    pub stay: Stay,
    /// The number of the change on the way to this peer.
    pub sequence: u64,
    /// The caller's number of the change.
    pub token: u64,
    /// Its stamp.
    pub stamp: Stamp,
}

/// The view of a message, beside a worker's. Every change and every confirmation is compared before it
/// counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewOrder {
    /// The message is of a later view: it waits until that is installed.
    Ahead,
    /// The message is of an earlier view: it is refused. The worker is in this one.
    Behind(u64),
    /// The message is of the worker's view.
    Same,
}

/// A keeper's answer to a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The keeper no longer needs it.
    Taken,
    /// The keeper is in this later view.
    Later(u64),
    /// The keeper has a decided change of this later stamp.
    Decided(Stamp),
}

/// The consequence of a keeper's answer to a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckOutcome {
    /// Nothing: it was said of an earlier stay, or before.
    Nothing,
    /// One keeper less is awaited.
    Acknowledged {
        /// The caller's number of the change.
        token: u64,
    },
    /// The change needs a later stamp: it is to be [drawn again](Keeper::again).
    Again {
        /// The caller's number of the change.
        token: u64,
    },
}

/// Too many changes are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyChanges;

impl Keeper {
    /// One worker's part; the workers of a process share `shared`.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self::with(shared, Rules::ALL)
    }

    /// The same with some rules off, for models.
    pub fn with(shared: Arc<Shared>, rules: Rules) -> Self {
        Self {
            shared,
            rules,
            view: Arc::default(),
            me: None,
            changes: Table::default(),
            lines: Vec::new(),
            doubts: Doubts::default(),
            missed: HashMap::new(),
            decisions: HashMap::new(),
            history: History::default(),
            sends: Vec::new(),
        }
    }

    /// The view of a message, beside the one that this worker has installed.
    pub fn compare(&self, view: u64) -> ViewOrder {
        match view.cmp(&self.view.number) {
            Ordering::Greater => ViewOrder::Ahead,
            Ordering::Less => ViewOrder::Behind(self.view.number),
            Ordering::Equal => ViewOrder::Same,
        }
    }

    /// The view that this worker has installed.
    pub fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// This peer in the view; `None`: it is not in it.
    pub fn me(&self) -> Option<(Slot, Stay)> {
        self.me
    }

    /// The state that all workers share.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The stamp of the newest change that was drawn or seen.
    pub fn clock(&self) -> Stamp {
        self.shared.clock()
    }

    // As a coordinator.

    /// Begins a change, whose key the caller has locked, and draws its stamp. `unix`: the time in
    /// microseconds. The messages are in [`take_sends`](Self::take_sends).
    ///
    /// # Errors
    /// Too many changes are under way.
    pub fn begin(
        &mut self,
        token: u64,
        (pool, key, hash): (u64, &[u8], u64),
        decided: bool,
        (unix, now): (u64, Micros),
    ) -> Result<ChangeId, TooManyChanges> {
        if self.changes.len() >= UNDER_WAY {
            return Err(TooManyChanges);
        }
        let me = self.me.map_or(Slot::default(), |me| me.0);
        let stamp = self.draw(unix, me, decided);
        self.shared.note(hash, stamp);
        self.shared.open.begin(hash);
        self.note_missed(pool, key);
        let begun = self.view.number;
        let id = self.changes.insert(|generation| Change {
            generation,
            token,
            stamp,
            begun,
            pool,
            key: key.to_vec(),
            hash,
            awaits: Vec::new(),
        });
        self.send_to_all(id, now);
        Ok(id)
    }

    fn draw(&self, unix: u64, me: Slot, decided: bool) -> Stamp {
        let stamp = self.shared.draw(unix, me);
        if decided { stamp.decided() } else { stamp }
    }

    /// Draws a later stamp for a change that was refused for a decided one. The caller has locked its key.
    pub fn again(&mut self, id: ChangeId, hash: u64, (unix, now): (u64, Micros)) {
        let me = self.me.map_or(Slot::default(), |me| me.0);
        let Some(decided) = self.changes.get(id).map(|change| change.stamp.is_decided()) else {
            return;
        };
        let stamp = self.draw(unix, me, decided);
        self.shared.note(hash, stamp);
        if let Some(change) = self.changes.get_mut(id) {
            change.stamp = stamp;
            change.awaits.clear();
        }
        self.send_to_all(id, now);
    }

    fn send_to_all(&mut self, id: ChangeId, now: Micros) {
        let view = Arc::clone(&self.view);
        for peer in &view.peers {
            let to = (peer.slot, peer.stay);
            if Some(to) != self.me {
                self.send(id, to, now);
            }
        }
    }

    /// Sends a change to a peer, which has to acknowledge it.
    fn send(&mut self, id: ChangeId, (slot, stay): (Slot, Stay), now: Micros) {
        let Some(change) = self.changes.get_mut(id) else {
            return;
        };
        let at = usize::from(slot.0);
        if self.lines.len() <= at {
            self.lines.resize_with(at + 1, || None);
        }
        let line = match &mut self.lines[at] {
            Some(line) if line.stay == stay => line,
            place => place.insert(Line::new(stay)),
        };
        let sequence = line.push(id, now);
        let awaits = Await {
            slot,
            stay,
            sequence,
            refused: false,
        };
        match change.awaits.iter_mut().find(|one| one.slot == slot) {
            Some(one) => *one = awaits,
            None => change.awaits.push(awaits),
        }
        self.sends.push(change.send((slot, stay), sequence));
    }

    /// The changes to be sent now, in this order; `buffer` is given back empty.
    pub fn take_sends(&mut self, buffer: Vec<Send>) -> Vec<Send> {
        debug_assert!(buffer.is_empty());
        std::mem::replace(&mut self.sends, buffer)
    }

    /// How many keepers have not acknowledged this change.
    pub fn awaited(&self, id: ChangeId) -> usize {
        self.changes.get(id).map_or(0, |change| change.awaits.len())
    }

    /// The names of the peers that have not acknowledged this change, for operators.
    pub fn awaited_names(&self, id: ChangeId) -> String {
        let awaits = self.changes.get(id).map_or(&[][..], |change| &change.awaits);
        let names = awaits
            .iter()
            .filter_map(|one| Some(self.view.slot(one.slot)?.name.as_str()));
        names.collect::<Vec<_>>().join(", ")
    }

    /// A keeper has answered the change of this number.
    pub fn acknowledge(
        &mut self,
        (slot, stay): (Slot, Stay),
        sequence: u64,
        verdict: Verdict,
        now: Micros,
    ) -> AckOutcome {
        let Some(line) = self.lines.get_mut(usize::from(slot.0)).and_then(Option::as_mut) else {
            return AckOutcome::Nothing;
        };
        if line.stay != stay && self.rules.stays {
            return AckOutcome::Nothing;
        }
        let Some(id) = line.acknowledge(sequence) else {
            return AckOutcome::Nothing;
        };
        let Some(change) = self.changes.get_mut(id) else {
            return AckOutcome::Nothing;
        };
        let token = change.token;
        let at = change.awaits.iter().position(|one| one.slot == slot);
        let Some(at) = at.filter(|&at| change.awaits[at].sequence == sequence) else {
            return AckOutcome::Nothing;
        };
        match verdict {
            Verdict::Taken => {
                change.awaits.swap_remove(at);
                AckOutcome::Acknowledged { token }
            }
            Verdict::Later(view) if view <= self.view.number => {
                self.send(id, (slot, stay), now);
                AckOutcome::Nothing
            }
            Verdict::Later(_) => {
                change.awaits[at].refused = true;
                AckOutcome::Nothing
            }
            Verdict::Decided(stamp) => {
                // The next stamp must be later than this one.
                self.shared.advance(stamp);
                AckOutcome::Again { token }
            }
        }
    }

    /// A change is complete, or given up before it was sent: every keeper of the view has it.
    pub fn finish(&mut self, id: ChangeId) {
        if let Some(change) = self.changes.remove(id) {
            self.shared.open.end(change.hash);
        }
    }

    /// The number up to which all changes are complete, to be sent to the peer of this slot. `None` if it
    /// knows that already.
    pub fn confirm(&mut self, slot: Slot) -> Option<u64> {
        let line = self.lines.get_mut(usize::from(slot.0))?.as_mut()?;
        let changes = &self.changes;
        line.confirm(self.view.number, |id| changes.get(id).is_some())
    }

    /// Sends the changes that a peer has not answered again, over a new link.
    pub fn send_again(&mut self, (slot, stay): (Slot, Stay), now: Micros) {
        let Some(line) = self.lines.get_mut(usize::from(slot.0)).and_then(Option::as_mut) else {
            return;
        };
        if line.stay != stay {
            return;
        }
        // The view in which it was last told of complete changes belongs to another link.
        line.forget_told();
        let unanswered: Vec<(u64, ChangeId)> = line.unanswered().collect();
        for (sequence, id) in unanswered {
            line.sent_again(sequence, now);
            if let Some(change) = self.changes.get(id) {
                let is_awaited = |one: &Await| one.slot == slot && one.sequence == sequence;
                if change.awaits.iter().any(is_awaited) {
                    self.sends.push(change.send((slot, stay), sequence));
                    continue;
                }
            }
            line.acknowledge(sequence);
        }
    }

    /// The peers of the view that have left a change unanswered since before `since`.
    pub fn late(&self, since: Micros) -> impl Iterator<Item = (Slot, Stay)> {
        let lines = self.lines.iter().enumerate();
        lines.filter_map(move |(slot, line)| {
            let line = line.as_ref()?;
            let slot = Slot(slot as u16);
            let is_peer = self.view.slot(slot).is_some_and(|peer| peer.stay == line.stay);
            let is_late = line.oldest().is_some_and(|at| at < since);
            (is_peer && is_late).then_some((slot, line.stay))
        })
    }

    // Decisions.

    /// A decision begins whose outcome this worker will coordinate; `token` is the caller's number for it.
    pub fn begin_decision(&mut self, token: u64) {
        self.decisions.insert(token, self.view.number);
    }

    /// Forgets the decisions that have ended, with or without a change.
    pub fn end_decisions(&mut self, is_under_way: impl Fn(u64) -> bool) {
        self.decisions.retain(|&token, _| is_under_way(token));
    }

    /// The number of the newest view that this worker has installed, and before which it has no decision
    /// under way.
    pub fn settled(&self) -> u64 {
        let oldest = self.decisions.values().min().copied();
        oldest.unwrap_or(u64::MAX).min(self.view.number)
    }

    /// At all peers, decisions that began before this view have ended.
    pub fn settle(&mut self, settled: u64) {
        self.history.settle(settled);
    }

    /// The home of the key with this hash.
    pub fn home(&self, hash: u64) -> Option<(Slot, Stay)> {
        home(&self.view, hash).map(|peer| (peer.slot, peer.stay))
    }

    /// May this peer decide the key now? It is its home, and no other one's decision may be under way.
    pub fn may_decide(&self, hash: u64) -> bool {
        match self.me {
            Some(me) if self.rules.settle => self.history.allows(me, hash),
            me => me.is_some() && self.home(hash) == me,
        }
    }

    // As a keeper.

    /// A change has come from a peer, in this worker's view: it is in doubt from now on. Returns `false` if
    /// the peer may not send it.
    #[must_use]
    pub fn arrived(
        &mut self,
        origin: Origin,
        sequence: u64,
        stamp: Stamp,
        (pool, key, hash): (u64, &[u8], u64),
        unix: u64,
    ) -> bool {
        let is_peer = self
            .view
            .slot(origin.slot)
            .is_some_and(|peer| peer.stay == origin.stay);
        if !is_peer || stamp.slot() != origin.slot || !self.shared.see(stamp, unix) {
            return false;
        }
        if self.rules.everybody_records_missed {
            self.note_missed(pool, key);
        }
        self.doubts
            .add(origin, sequence, (pool, key, hash), &self.shared.open)
    }

    /// Judges a change that has arrived. The caller has locked its key.
    pub fn judge(&self, hash: u64, stamp: Stamp) -> Fate {
        self.shared.judge(hash, stamp, self.rules)
    }

    /// All changes of this origin up to a number are with all keepers of its view, which is this worker's.
    pub fn confirmed(&mut self, origin: Origin, up_to: u64) {
        self.doubts.confirm(origin, up_to, &self.shared.open);
    }

    /// Peers that are away miss a change of this key.
    fn note_missed(&mut self, pool: u64, key: &[u8]) {
        for missed in self.missed.values_mut() {
            missed.add(pool, key);
        }
    }

    /// The changes that a peer missed before it joined again; `None` if this worker was not in the fleet all
    /// the time.
    pub fn missed(&self, name: &str, identity: u128) -> Option<&MissedByPeer> {
        self.missed.get(&(name.to_owned(), identity))
    }

    /// A peer has repaired its copies: the record of its missed changes is no longer needed.
    fn settle_missed(&mut self, name: &str) {
        self.missed.retain(|(other, _), _| other != name);
    }

    /// The number of changes in doubt.
    pub fn doubts(&self) -> usize {
        self.doubts.len()
    }

    /// The number of changes under way.
    pub fn under_way(&self) -> usize {
        self.changes.len()
    }

    /// The number of keys that each peer that is away misses; `None` inside: everything.
    pub fn missed_counts(&self) -> impl Iterator<Item = (&str, Option<usize>)> {
        self.missed
            .iter()
            .map(|((name, _), missed)| (name.as_str(), missed.count()))
    }

    /// Keys whose values at other copies are unknown here: those in doubt, and those of this worker's own
    /// changes under way.
    pub fn uncertain(&self) -> MissedByPeer {
        let mut keys = MissedByPeer::default();
        self.doubts.keys().for_each(|(pool, key)| keys.add(pool, key));
        for (_, change) in self.changes.iter() {
            keys.add(change.pool, &change.key);
        }
        keys
    }
}
