//! A streamed value waits for its key's turn before its last byte: until then no server has done anything.

use std::{rc::Rc, sync::Arc};

use super::{
    change::{AGAIN, TURN},
    member,
};
use crate::{
    engine::Engine,
    members::MemberId,
    route::Node,
    timer::{Sleeper, Timer},
};

/// What an upload has to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Now,
    Later,
    /// It has waited longer than any other change takes.
    Never,
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

    /// May the last byte of this client's value leave, which these changes wait for since `since`? If not, the client is
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
                    return Turn::Never;
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
        for &(index, generation) in turns {
            self.leave_home(index, generation);
            self.miss_late(index, generation);
        }
        Turn::Now
    }

    /// Copies that this change is not given, and that are written by now: they were out when it began, or not in the pool.
    /// They may have later changes of its key, so they owe the key.
    pub(super) fn miss_late(&mut self, index: u32, generation: u32) {
        let Some(flight) = self.flights.get(index, generation) else {
            return;
        };
        if flight.missed.is_empty() && Rc::ptr_eq(&flight.tree, &self.tree) {
            return;
        }
        let Node::Copies(copies) = flight.tree.node(flight.node) else {
            return;
        };
        let children = (0..copies.children.len()).filter_map(|child| member(&flight.tree, copies, child));
        let pool = children.clone().next().map(|member| Arc::clone(&member.pool));
        let given: Vec<MemberId> = children
            .map(|member| member.id)
            .filter(|&id| !flight.missed.iter().any(|&(missed, _)| missed == id))
            .collect();
        for member in self.tree.members() {
            if member.is_copy
                && pool.as_ref() == Some(&member.pool)
                && !given.contains(&member.id)
                && self.views.standing(member.id).is_written()
            {
                self.miss(
                    &member,
                    index,
                    generation,
                    "it came while a change was on its way",
                );
            }
        }
    }
}
