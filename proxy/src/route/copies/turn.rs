//! A streamed value waits for its key's turn before its last byte: until then no server has done anything.

use std::rc::Rc;

use super::{
    change::{AGAIN, TURN},
    member,
};
use crate::{
    engine::Engine,
    route::Node,
    timer::{Sleeper, Timer},
};

/// May the last byte of a streamed value leave?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Now,
    Later,
    /// Never, for this reason.
    Never(&'static str),
}

impl Engine {
    /// The changes that the request being dispatched has begun. In an order that is the same for all, so that no two
    /// uploads wait for each other.
    pub(crate) fn take_turns(&mut self) -> Vec<(u32, u32)> {
        let (flights, mut turns) = (&mut self.flights, std::mem::take(&mut self.turns));
        turns.sort_by_cached_key(|&(index, generation)| {
            let claim = flights.get(index, generation)?.claim.as_ref()?;
            Some(claim.place())
        });
        turns
    }

    /// May the last byte of this client's value leave, for which these changes wait since `since`? If later, the client is
    /// served again soon.
    pub(crate) fn turn(&mut self, client: (u32, u32), turns: &[(u32, u32)], since: u64) -> Turn {
        let mut place = None;
        for &(index, generation) in turns {
            let Some(claim) = self
                .flights
                .get(index, generation)
                .and_then(|flight| flight.claim.as_mut())
            else {
                continue;
            };
            if place == Some(claim.place()) {
                claim.join();
            } else if !claim.ask() {
                if self.now.saturating_sub(since) > TURN {
                    return Turn::Never("other changes of this key have not ended");
                }
                let (index, generation) = client;
                self.timers.push(Timer {
                    due: self.now + AGAIN,
                    wakes: Sleeper::Client { generation, index },
                });
                return Turn::Later;
            }
            place = Some(claim.place());
        }
        if turns
            .iter()
            .any(|&(index, generation)| self.lacks_copies(index, generation))
        {
            return Turn::Never("a copy has joined since this value began: send it again");
        }
        for &(index, generation) in turns {
            self.miss_again(index, generation);
        }
        Turn::Now
    }

    /// Has its pool copies to which this change was not sent, because it is older than they?
    fn lacks_copies(&mut self, index: u32, generation: u32) -> bool {
        let Some(flight) = self.flights.get(index, generation) else {
            return false;
        };
        let tree = Rc::clone(&flight.tree);
        let Node::Copies(copies) = tree.node(flight.node) else {
            return false;
        };
        let known = || (0..copies.children.len()).filter_map(|child| member(&tree, copies, child));
        let Some(pool) = known().next().map(|member| &member.pool) else {
            return false;
        };
        !Rc::ptr_eq(&tree, &self.tree)
            && self
                .tree
                .members()
                .iter()
                .any(|member| member.pool == *pool && !known().any(|known| known.id == member.id))
    }

    /// Copies that missed its beginning may have been repaired since, and have taken other changes: it is now that they
    /// miss this one.
    fn miss_again(&mut self, index: u32, generation: u32) {
        let Some(flight) = self.flights.get(index, generation) else {
            return;
        };
        let (tree, missed) = (Rc::clone(&flight.tree), std::mem::take(&mut flight.missed));
        let Node::Copies(copies) = tree.node(flight.node) else {
            return;
        };
        for (child, _) in missed {
            if let Some(member) = member(&tree, copies, child as usize) {
                self.miss(
                    member,
                    index,
                    generation,
                    child as usize,
                    "it has missed a part of a value",
                );
            }
        }
    }
}
