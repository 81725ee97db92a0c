//! A streamed value waits for its key's turn before its last byte: until then no server has stored anything.

use std::rc::Rc;

use super::{
    change::{AGAIN, TURN},
    member,
};
use crate::{
    client::ClientId,
    engine::Engine,
    micros::Micros,
    route::{FlightId, Node, Sleeper, Timer},
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
    pub(crate) fn take_turns(&mut self) -> Vec<FlightId> {
        let (flights, mut turns) = (&mut self.router.flights, std::mem::take(&mut self.turns));
        turns.sort_by_cached_key(|&id| {
            let claim = flights.change(id)?.1.claim.as_ref()?;
            Some(claim.place())
        });
        turns
    }

    /// May the last byte of this client's value leave, for which these changes wait since `since`? If later, the client is
    /// served again soon.
    pub(crate) fn turn(&mut self, client: ClientId, turns: &[FlightId], since: Micros) -> Turn {
        let mut place = None;
        for &id in turns {
            let Some(claim) = self
                .router
                .flights
                .change(id)
                .and_then(|(_, change)| change.claim.as_mut())
            else {
                continue;
            };
            if place == Some(claim.place()) {
                claim.join();
            } else if !claim.ask() {
                if (self.now - since) > TURN {
                    return Turn::Never("other changes of this key have not ended");
                }
                self.router.timers.push(Timer {
                    due: self.now + AGAIN,
                    wakes: Sleeper::Client(client),
                });
                return Turn::Later;
            }
            place = Some(claim.place());
        }
        for &id in turns {
            self.leave_home(id);
            self.miss_again(id);
            self.miss_at_strangers(id);
        }
        Turn::Now
    }

    /// Copies that missed its beginning may have been repaired since, and have taken other changes of its key: it is now that
    /// they miss this one.
    fn miss_again(&mut self, id: FlightId) {
        let Some((flight, change)) = self.router.flights.change(id) else {
            return;
        };
        let (tree, missed) = (Rc::clone(&flight.tree), std::mem::take(&mut change.missed));
        let Node::Copies(copies) = tree.node(flight.node) else {
            return;
        };
        for member in (0..copies.children.len()).filter_map(|child| member(&tree, copies, child)) {
            if missed.iter().any(|&(id, _)| id == member.id) {
                self.miss(member, id, "it was away while a value was on its way");
            }
        }
    }

    /// Copies that came to the pool since this change began miss it, and may have later ones of its key.
    pub(super) fn miss_at_strangers(&mut self, id: FlightId) {
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        if Rc::ptr_eq(&flight.tree, &self.tree) {
            return;
        }
        let tree = Rc::clone(&flight.tree);
        let Node::Copies(copies) = tree.node(flight.node) else {
            return;
        };
        let known = || (0..copies.children.len()).filter_map(|child| member(&tree, copies, child));
        let pool = known().next().map(|member| &member.pool.name);
        for member in self.tree.members() {
            let is_stranger = !known().any(|known| known.id == member.id);
            if member.is_copy() && pool == Some(&member.pool.name) && is_stranger {
                self.miss(&member, id, "it came while a change was on its way");
            }
        }
    }
}
