//! A change that some copies took, and that could not be sent to others for want of our own means, is refused. Where it landed
//! its key is removed before the refusal is answered: no two copies keep different values, and nobody reads what was refused.

use std::{rc::Rc, sync::Arc};

use proxima_wire::message::Parsed;

use super::{is_done, key_of, member};
use crate::{
    engine::Engine,
    members::Member,
    route::{
        FlightId, Tree, Walk,
        flight::{Change, Flight, Stage, child_of},
        tree::Copies,
    },
};

/// Has this change to be taken back?
pub(super) fn is_due(flight: &Flight, change: &Change) -> bool {
    let has_landed = || match change.stage {
        Stage::Everywhere => flight.answers.outcomes().any(is_done),
        Stage::Elsewhere(_) => true,
        _ => false,
    };
    !change.unsent.is_empty() && has_landed()
}

impl Engine {
    /// Removes the key of a change that is refused from every copy that may have taken it. The change keeps its key until all
    /// have answered; a copy that fails to has missed a write.
    pub(super) fn undo(&mut self, tree: &Rc<Tree>, copies: &Copies, id: FlightId) {
        let Some((flight, change)) = self.router.flights.change(id) else {
            return;
        };
        let origin = flight.origin;
        let key = key_of(flight, change).into_owned();
        let mut told = Vec::with_capacity(key.len() + 16);
        // A flush is not undone: where it landed nothing is left.
        if !key.is_empty() {
            copies.copied.removal(&key, &mut told);
        }
        let landed: Vec<(usize, &Arc<Member>)> = (0..copies.children.len())
            .filter_map(|child| Some((child, member(tree, copies, child)?)))
            .filter(|(_, member)| !change.missed.iter().any(|&(other, _)| other == member.id))
            .filter(|(_, member)| !change.unsent.contains(&member.id))
            .collect();
        change.stage = Stage::Undoing;
        flight.message = key;
        // One more than there are, so that replies that come within the walk do not end the flight.
        flight.pending = 1;
        if let Parsed::Head(removal) = origin.dialect.head(&told) {
            for (child, member) in landed {
                if !self.views.standing(member.id).is_written() {
                    self.miss(member, id, "");
                    continue;
                }
                if let Some(flight) = self.router.flights.get(id) {
                    flight.pending += 1;
                }
                let walk = Walk {
                    tree,
                    origin,
                    request: &removal,
                    message: &told,
                    to: child_of(id, child),
                };
                self.walk(copies.children[child], &walk);
            }
        }
        if let Some(flight) = self.router.flights.get(id) {
            flight.pending -= 1;
        }
        self.conclude(id);
    }
}
