//! When too few copies took a write.

use std::{rc::Rc, sync::Arc};

use proxima_wire::message::{Outcome, Parsed};

use super::member;
use crate::{
    engine::{Engine, News},
    members::copies::Standing,
    route::{ReplyTo, Tree, flight::Stage, step::Origin, tree::Copies},
};

impl Engine {
    /// Too few copies took it: it is undone where it landed, and as this may be the side that is cut off, what is in reach
    /// is not to be trusted either.
    pub(super) fn refuse_lost(&mut self, tree: &Rc<Tree>, copies: &Copies, index: u32, generation: u32) {
        let Some(flight) = self.flights.get(index, generation) else {
            return;
        };
        let (parent, landed, listener) = (flight.parent, flight.landed, flight.listener);
        let mut told = Vec::new();
        match flight.stage {
            // A flush is not undone: where it landed nothing is left.
            Stage::Everywhere if flight.message.is_empty() => {}
            Stage::Everywhere => tree.dialect.removal(&flight.message, &mut told),
            _ => {
                let mut scratch = [0; 250];
                let key = tree.dialect.key(&flight.request, &flight.message, &mut scratch);
                tree.dialect.removal(key, &mut told);
            }
        }
        let missed = std::mem::take(&mut flight.missed);
        self.flights.close(index);
        let origin = Origin {
            listener,
            dialect: tree.dialect,
        };
        let mut lost = None;
        for child in (0..copies.children.len())
            .filter(|&child| !missed.iter().any(|&(other, _)| other as usize == child))
        {
            let Some(member) = member(tree, copies, child) else {
                continue;
            };
            // As it was before the removal, which may find the copy gone.
            let standing = self.views.standing(member.id);
            if let Parsed::Head(removal) = tree.dialect.request(&told, u64::MAX)
                && standing.is_written()
            {
                self.walk(
                    tree,
                    copies.children[child],
                    origin,
                    &removal,
                    &told,
                    ReplyTo::Nobody,
                );
            }
            // One that is joining is not trusted anyway. It must not begin anew with each write: copies that return one after
            // the other would never be enough.
            if standing != Standing::Joining && standing.is_written() {
                self.views.fall(member.id);
                lost = Some(Arc::clone(&member.pool));
            }
        }
        if let Some(pool) = lost {
            self.wishes.news.push(News::Lost(pool));
        }
        let text = format!(
            "only {landed} of the {} copies that min_acks asks for took this write",
            copies.min_acks
        );
        self.deliver_error(parent, tree.dialect, Outcome::Overloaded, &text);
    }
}
