//! When too few copies took a write.

use std::{rc::Rc, sync::Arc};

use proxima_wire::message::{Outcome, Parsed};

use super::{key_of, member};
use crate::{
    dialect::Failed,
    engine::Engine,
    members::{Member, copies::Standing},
    route::{FlightId, ReplyTo, Tree, Walk, flight::Stage, tree::Copies},
};

impl Engine {
    /// Too few copies took it: it is undone where it landed, and as this may be the side that is cut off, what is in reach
    /// is not to be trusted either. `sent`: to all, and not only to its home.
    pub(super) fn refuse_lost(&mut self, tree: &Rc<Tree>, copies: &Copies, id: FlightId, sent: bool) {
        let Some((flight, change)) = self.router.flights.change(id) else {
            return;
        };
        let (parent, landed, origin) = (flight.parent, change.landed, flight.origin);
        let home = match change.stage {
            Stage::Elsewhere(home) => Some(home as usize),
            _ => None,
        };
        let key = key_of(flight, change).into_owned();
        let mut told = Vec::new();
        // A flush is not undone: where it landed nothing is left.
        if !key.is_empty() {
            copies.copied.removal(&key, &mut told);
        }
        let missed = std::mem::take(&mut change.missed);
        self.router.flights.close(id);
        let mut reached: Vec<(usize, &Arc<Member>)> = (0..copies.children.len())
            .filter_map(|child| Some((child, member(tree, copies, child)?)))
            .filter(|(_, member)| !missed.iter().any(|&(other, _)| other == member.id))
            .collect();
        reached.retain(|&(child, member)| {
            let is_written = self.views.standing(member.id).is_written();
            if !is_written && !key.is_empty() && (sent || home == Some(child)) {
                // It has taken this write, and is not given the removal.
                self.views.owe(member.id, &key);
            }
            is_written
        });
        // Copies that return one after the other are all joining, and not read: they must not begin anew with each write.
        let was_read = reached
            .iter()
            .any(|(_, member)| self.views.standing(member.id) != Standing::Joining);
        for (child, member) in reached {
            if let Parsed::Head(removal) = origin.dialect.head(&told) {
                let walk = Walk {
                    tree,
                    origin,
                    request: &removal,
                    message: &told,
                    to: ReplyTo::Nobody,
                };
                self.walk(copies.children[child], &walk);
            }
            if was_read {
                let why = "too few copies took a write: this proxy may be the one that is cut off";
                self.miss_aside(member, b"", why);
            }
        }
        let text = format!(
            "only {landed} of the {} copies that min_acks asks for took this write",
            copies.min_acks
        );
        self.fail(parent, &Failed::here(Outcome::Overloaded, &text));
    }
}
