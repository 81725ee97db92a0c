//! The next view: peers that left are no longer waited for, and new ones are sent the changes under way.

use std::sync::Arc;

use super::{ChangeId, Keeper, MissedByPeer, change::Await};
use crate::{
    fleet::{Peer, Slot, Stay, View},
    micros::Micros,
};

/// The most peers that are away and whose missed changes are remembered.
const AWAY: usize = 64;

/// A key that a coordinator which left has changed at some copies, and that is to be deleted at all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// The hash of the pool's name.
    pub pool: u64,
    /// The key; empty: all keys of the pool.
    pub key: Box<[u8]>,
}

/// The consequences of a view that was installed.
#[derive(Debug, Default)]
pub struct Installed {
    /// The caller's numbers of changes for which fewer keepers are awaited now.
    pub released: Vec<u64>,
    /// Those among them that need a later stamp, and are to be [drawn again](Keeper::again) before anything
    /// else: the departed peer may have decided the key without having seen them.
    pub again: Vec<u64>,
    /// The keys to be deleted by ordinary changes.
    pub orphans: Vec<Orphan>,
    /// Peers that left, with their stays: their links end.
    pub left: Vec<(Slot, Stay)>,
    /// This peer left: what it has under way is void.
    pub expelled: bool,
}

impl Keeper {
    /// Installs a view, which is later than the one before. `me`: this peer's slot and stay, if it is in it.
    pub fn install(&mut self, view: Arc<View>, me: Option<(Slot, Stay)>, now: Micros) -> Installed {
        let before = std::mem::replace(&mut self.view, Arc::clone(&view));
        let was = std::mem::replace(&mut self.me, me);
        let stays = |slot: Slot, stay: Stay| view.slot(slot).is_some_and(|peer| peer.stay == stay);
        let left: Vec<_> = before
            .peers
            .iter()
            .filter(|peer| !stays(peer.slot, peer.stay))
            .collect();
        if was.is_some() && was != me {
            self.history.add(Arc::clone(&view));
            return Installed {
                left: left.iter().map(|peer| (peer.slot, peer.stay)).collect(),
                expelled: true,
                ..Installed::default()
            };
        }
        if me.is_some() {
            let uncertain = match self.rules.doubts_are_missed {
                true => self.uncertain(),
                false => MissedByPeer::default(),
            };
            for peer in &left {
                self.add_missed(peer, &uncertain);
            }
            // A peer that decides has repaired its copies, and one without copies misses nothing.
            let is_repaired = |peer: &&Peer| peer.decides || peer.copies.is_empty();
            let repaired = view.peers.iter().filter(is_repaired);
            repaired.for_each(|peer| self.settle_missed(&peer.name));
        }
        let orphans = self
            .doubts
            .take(|origin| !stays(origin.slot, origin.stay), &self.shared.open);
        let orphans = match self.rules.clean_up {
            true => orphans,
            false => Vec::new(),
        };
        let (released, again) = self.carry_on(&view, now);
        self.history.add(Arc::clone(&view));
        Installed {
            released,
            again,
            orphans: orphans
                .into_iter()
                .map(|(pool, key)| Orphan { pool, key })
                .collect(),
            left: left.iter().map(|peer| (peer.slot, peer.stay)).collect(),
            expelled: false,
        }
    }

    /// Records a peer that has left. It misses the uncertain keys, and those that it had not repaired when it
    /// left.
    fn add_missed(&mut self, peer: &Peer, uncertain: &MissedByPeer) {
        let (name, is_full) = ((peer.name.clone(), peer.identity), self.missed.len() >= AWAY);
        match self.missed.get_mut(&name) {
            // It was away before, and it is unknown whether it has learnt what it missed then.
            Some(missed) => missed.merge(uncertain),
            None if is_full => {}
            None => {
                let missed = match peer.decides {
                    true => uncertain.clone(),
                    // It may have missed changes before this worker was here.
                    false => MissedByPeer::everything(),
                };
                self.missed.insert(name, missed);
            }
        }
    }

    /// Changes under way no longer wait for peers that left. They are sent to new peers, and to those that
    /// refused them as of an older view. Returns the numbers of changes for which fewer keepers are awaited,
    /// and of those that have to be drawn again.
    ///
    /// A home that left without an answer to a change may have decided the key just before, with a later
    /// stamp and without that change in it. Its decision is at some copies, and hides the change there. As
    /// long as the home is in the view, it refuses such a change; for one that left, the change is drawn
    /// again.
    fn carry_on(&mut self, view: &View, now: Micros) -> (Vec<u64>, Vec<u64>) {
        let (mut released, mut undecided) = (Vec::new(), Vec::new());
        let history = &self.history;
        let (is_needed, stays_count) = (self.rules.homes_that_left, self.rules.stays);
        let mut sends: Vec<(ChangeId, (Slot, Stay))> = Vec::new();
        let me = self.me;
        for (id, change) in self.changes.iter_mut() {
            let hash = change.hash;
            let stays = |one: &Await| view.slot(one.slot).is_some_and(|peer| peer.stay == one.stay);
            let mut gone = change.awaits.iter().filter(|one| !stays(one)).peekable();
            if gone.peek().is_some() {
                released.push(change.token);
                let decided = |one: &Await| history.knows_home((one.slot, one.stay), hash);
                let is_plain = !change.stamp.is_decided();
                undecided.extend((is_plain && is_needed && gone.any(decided)).then_some(change.token));
            }
            change.awaits.retain(stays);
            let again = change.awaits.iter().filter(|one| one.refused);
            sends.extend(again.map(|one| (id, (one.slot, one.stay))));
            let begun = change.begun;
            let came = view
                .peers
                .iter()
                .filter(|peer| peer.stay.0 > begun && stays_count);
            let came = came.map(|peer| (peer.slot, peer.stay));
            sends.extend(came.filter(|&peer| Some(peer) != me).map(|peer| (id, peer)));
            change.begun = view.number;
        }
        // The order of sending is that of the stamps, as on every line.
        sends.sort_by_key(|&(id, _)| self.changes.get(id).map(|change| change.stamp));
        for (id, peer) in sends {
            self.send(id, peer, now);
        }
        (released, undecided)
    }

    /// Forgets the state of the stay that has ended. Returns the keys of which the own copy may hold values
    /// that others do not have.
    pub fn leave(&mut self) -> MissedByPeer {
        let uncertain = self.uncertain();
        let changes: Vec<ChangeId> = self.changes.iter().map(|(id, _)| id).collect();
        changes.into_iter().for_each(|id| self.finish(id));
        self.lines.clear();
        self.doubts.take(|_| true, &self.shared.open);
        self.doubts = Default::default();
        self.missed.clear();
        self.decisions.clear();
        uncertain
    }
}
