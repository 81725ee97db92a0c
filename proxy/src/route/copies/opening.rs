//! A copy that comes back decides the values of its keys again, but not before what was decided in its place has ended.

use super::member;
use crate::{
    engine::{Engine, News},
    members::{
        MemberId,
        copies::{Claim, Owed, Standing},
    },
    route::{FlightId, Node, flight::Stage},
};

/// A proposal to open a copy, and the changes that must end before it is acknowledged: what another copy decides now, this
/// one could decide otherwise.
pub(crate) struct Opening {
    member: MemberId,
    epoch: u64,
    owed: Owed,
    /// Flights, by id and generation.
    awaits: Vec<FlightId>,
}

/// Is a copy deciding right now, or has it decided and the others are being told? A change that waits, maybe for the second
/// time because its home was lost, waits for this very copy to be open.
const fn decides(stage: Stage) -> bool {
    matches!(stage, Stage::Home(_) | Stage::Elsewhere(_))
}

impl Engine {
    /// Tells the control thread that a proposal is followed; of one to open a copy, when no other decides in its place.
    pub(super) fn acknowledge(&mut self, member: MemberId, epoch: u64, standing: Standing, owed: Owed) {
        // Whatever was proposed before for this copy is not waited for any more. What it owes counts all the same.
        for earlier in self.openings.extract_if(.., |opening| opening.member == member) {
            self.wishes.news.push(earlier.followed(self.facts.worker));
        }
        let awaits = match standing {
            Standing::Opening => self.decisions_in_place_of(member),
            _ => Vec::new(),
        };
        self.openings.push(Opening {
            member,
            epoch,
            owed,
            awaits,
        });
        self.look_at_openings();
    }

    fn decisions_in_place_of(&self, id: MemberId) -> Vec<FlightId> {
        self.router
            .flights
            .changes()
            .filter(|(_, _, change)| decides(change.stage))
            // A streamed value is decided with its last byte, before which its home is looked at again.
            .filter(|(_, _, change)| change.claim.as_ref().is_some_and(Claim::is_held))
            .filter(|(_, flight, _)| {
                let Node::Copies(copies) = flight.tree.node(flight.node) else {
                    return false;
                };
                (0..copies.children.len())
                    .filter_map(|child| member(&flight.tree, copies, child))
                    .any(|member| member.id == id)
            })
            .map(|(id, ..)| id)
            .collect()
    }

    /// Acknowledges what has been waited for long enough.
    pub fn look_at_openings(&mut self) {
        let (flights, worker) = (&mut self.router.flights, self.facts.worker);
        let ready = self.openings.extract_if(.., |opening| {
            opening.awaits.retain(|&id| {
                flights
                    .change(id)
                    .is_some_and(|(_, change)| decides(change.stage))
            });
            opening.awaits.is_empty()
        });
        self.wishes
            .news
            .extend(ready.map(|opening| opening.followed(worker)));
    }
}

impl Opening {
    fn followed(self, worker: usize) -> News {
        News::Follows {
            worker,
            member: self.member,
            epoch: self.epoch,
            owed: self.owed,
        }
    }
}
