//! The next view: who left is not waited for, and who came is sent what is under way.

use std::sync::Arc;

use super::{ChangeId, Keeper, Owed};
use crate::{
    fleet::{Slot, Stay, View},
    micros::Micros,
};

/// What is remembered of so many peers that are away.
const AWAY: usize = 64;

/// A key that a coordinator which left has changed at some copies, and that is to be deleted at all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// The hash of the pool's name.
    pub pool: u64,
    /// The key; empty: all keys of the pool.
    pub key: Box<[u8]>,
}

/// What follows from a view.
#[derive(Debug, Default)]
pub struct Installed {
    /// The caller's numbers of changes that fewer keepers are awaited for.
    pub released: Vec<u64>,
    /// The keys to be deleted by ordinary changes.
    pub orphans: Vec<Orphan>,
    /// Peers that left, with their stays: their channels end.
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
        self.history.add(Arc::clone(&view));
        if was.is_some() && was != me {
            return Installed {
                left: left.iter().map(|peer| (peer.slot, peer.stay)).collect(),
                expelled: true,
                ..Installed::default()
            };
        }
        if me.is_some() {
            let uncertain = match self.rules.doubts_are_owed {
                true => self.uncertain(),
                false => Owed::default(),
            };
            for peer in &left {
                if self.owed.len() >= AWAY {
                    break;
                }
                // What it missed in an earlier absence was repaired, or is repaired by a flush.
                self.settle_owed(&peer.name);
                let name = (peer.name.clone(), peer.identity);
                self.owed.insert(name, uncertain.clone());
            }
        }
        // Who decides has its floor, and has repaired what it missed.
        for peer in view
            .peers
            .iter()
            .filter(|peer| peer.decides || peer.copies.is_empty())
        {
            self.settle_owed(&peer.name);
        }
        let orphans = self.doubts.take(|origin| !stays(origin.slot, origin.stay));
        let orphans = match self.rules.clean_up {
            true => orphans,
            false => Vec::new(),
        };
        Installed {
            released: self.carry_on(&view, now),
            orphans: orphans
                .into_iter()
                .map(|(pool, key)| Orphan { pool, key })
                .collect(),
            left: left.iter().map(|peer| (peer.slot, peer.stay)).collect(),
            expelled: false,
        }
    }

    /// Changes under way no longer wait for who left, and are sent to who came, and to who was in this view
    /// before. Returns the numbers of those that fewer are awaited for.
    fn carry_on(&mut self, view: &View, now: Micros) -> Vec<u64> {
        let mut released = Vec::new();
        let mut sends: Vec<(ChangeId, (Slot, Stay))> = Vec::new();
        let me = self.me;
        for (id, change) in self.changes.iter_mut() {
            let awaited = change.awaits.len();
            change
                .awaits
                .retain(|one| view.slot(one.slot).is_some_and(|peer| peer.stay == one.stay));
            if change.awaits.len() < awaited {
                released.push(change.token);
            }
            let again = change.awaits.iter().filter(|one| one.refused);
            sends.extend(again.map(|one| (id, (one.slot, one.stay))));
            let begun = change.begun;
            let came = view.peers.iter().filter(|peer| peer.stay.0 > begun);
            let came = came.map(|peer| (peer.slot, peer.stay));
            sends.extend(came.filter(|&peer| Some(peer) != me).map(|peer| (id, peer)));
            change.begun = view.number;
        }
        // The order of sending is that of the stamps, as on every line.
        sends.sort_by_key(|&(id, _)| self.changes.get(id).map(|change| change.stamp));
        for (id, peer) in sends {
            self.send(id, peer, now);
        }
        released
    }

    /// Forgets everything of the stay that has ended, but what the own copy may hold that others do not: the
    /// result has these keys.
    pub fn leave(&mut self) -> Owed {
        let uncertain = self.uncertain();
        let changes: Vec<ChangeId> = self.changes.iter().map(|(id, _)| id).collect();
        changes.into_iter().for_each(|id| self.finish(id));
        self.lines.clear();
        self.doubts = Default::default();
        self.owed.clear();
        self.decisions.clear();
        uncertain
    }
}
