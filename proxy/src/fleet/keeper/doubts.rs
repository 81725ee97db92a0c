//! Changes of peers that came here and are unconfirmed: their coordinator has not said yet that all keepers
//! have them.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
};

use super::open::Open;
use crate::fleet::{Slot, Stay};

/// The most changes in doubt of one worker. A coordinator has far fewer under way.
const MOST: usize = 1 << 20;

/// A worker of a coordinator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// The coordinator.
    pub slot: Slot,
    /// Its stay.
    pub stay: Stay,
    /// The number of its worker.
    pub worker: u16,
}

#[derive(Clone, Debug, Hash)]
struct Doubt {
    sequence: u64,
    pool: u64,
    key: Box<[u8]>,
    /// The hash of pool and key.
    hash: u64,
}

#[derive(Clone, Debug, Default, Hash)]
struct Line {
    doubts: VecDeque<Doubt>,
    /// The number of the last change that came.
    last: u64,
}

/// Changes that came and are not confirmed.
#[derive(Clone, Debug, Default)]
pub(super) struct Doubts {
    lines: HashMap<Origin, Line>,
    count: usize,
}

impl Doubts {
    /// Notes a change that has arrived. A change that was sent before and comes again is in doubt already.
    /// Returns `false` if there are too many.
    pub(super) fn add(
        &mut self,
        origin: Origin,
        sequence: u64,
        (pool, key, hash): (u64, &[u8], u64),
        open: &Open,
    ) -> bool {
        if self.count >= MOST {
            return false;
        }
        let line = self.lines.entry(origin).or_default();
        if sequence > line.last {
            line.last = sequence;
            line.doubts.push_back(Doubt {
                sequence,
                pool,
                key: key.into(),
                hash,
            });
            self.count += 1;
            open.begin(hash);
        }
        true
    }

    /// All changes of this coordinator up to a number are with all keepers.
    pub(super) fn confirm(&mut self, origin: Origin, up_to: u64, open: &Open) {
        let Some(line) = self.lines.get_mut(&origin) else {
            return;
        };
        while line.doubts.front().is_some_and(|doubt| doubt.sequence <= up_to) {
            if let Some(doubt) = line.doubts.pop_front() {
                open.end(doubt.hash);
            }
            self.count -= 1;
        }
    }

    /// All keys in doubt.
    pub(super) fn keys(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let doubts = self.lines.values().flat_map(|line| &line.doubts);
        doubts.map(|doubt| (doubt.pool, &*doubt.key))
    }

    /// Takes out the keys in doubt of coordinators that are gone.
    pub(super) fn take(&mut self, is_gone: impl Fn(Origin) -> bool, open: &Open) -> Vec<(u64, Box<[u8]>)> {
        let mut taken = Vec::new();
        self.lines.retain(|&origin, line| {
            let gone = is_gone(origin);
            if gone {
                self.count -= line.doubts.len();
                taken.extend(line.doubts.drain(..).map(|doubt| {
                    open.end(doubt.hash);
                    (doubt.pool, doubt.key)
                }));
            }
            !gone
        });
        taken.sort_unstable();
        taken.dedup();
        taken
    }

    /// The unconfirmed changes of each coordinator, in any order.
    pub(super) fn lines(&self) -> impl Iterator<Item = impl Hash> {
        self.lines.iter()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }
}
