//! A copy leaves the reads: it missed a write, its contents are unknown, or the configuration names it no
//! more. A worker that sees this stops its own reads at once (`copies/snapshot.rs`); here all workers are
//! told.

use std::{collections::BTreeSet, time::Instant};

use super::{Act, Agreement, Copy, SOON};
use crate::{
    copies::{CopyState, MissedKeys, MissedWrites},
    members::ServerIdentity,
};

impl Agreement {
    /// A participant saw this copy miss a write, or the copy's contents are unknown.
    pub fn mark_stale(
        &mut self,
        server: &ServerIdentity,
        why: &str,
        missed: MissedKeys,
        now: Instant,
    ) -> Vec<Act> {
        let waiting: BTreeSet<usize> = (0..self.participants).collect();
        let setbacks = match self.recovered.remove(server) {
            Some((when, setbacks)) if now.duration_since(when) < SOON => setbacks + 1,
            _ => 0,
        };
        let copy = self.copies.entry(server.clone()).or_insert_with(|| Copy {
            state: CopyState::Current,
            epoch: 0,
            waiting: BTreeSet::new(),
            missed: MissedWrites::default(),
            reachable: false,
            departed: false,
            setbacks,
            since: now,
            why: why.to_owned(),
        });
        copy.missed.add(missed);
        copy.missed.missed_at(now);
        if !copy.state.is_written() {
            return Vec::new();
        }
        why.clone_into(&mut copy.why);
        copy.since = now;
        copy.reachable = false;
        self.propose(server, CopyState::Leaving, waiting)
    }

    /// This copy is no longer in the configuration: it is neither read nor written nor probed until it
    /// returns or is removed.
    pub fn departed(&mut self, server: &ServerIdentity, now: Instant) -> Vec<Act> {
        if self.copies.get(server).is_some_and(|copy| copy.departed) {
            return Vec::new();
        }
        let acts = self.mark_stale(server, "it is named no more", MissedKeys::default(), now);
        if let Some(copy) = self.copies.get_mut(server) {
            copy.departed = true;
            copy.reachable = false;
        }
        acts
    }
}
