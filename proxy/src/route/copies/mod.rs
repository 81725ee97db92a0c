//! Requests to a pool of copies: read at the nearest one that may be read, changed at all of them.
//!
//! ```text
//!  look ──▶ the nearest current copy                                          (no state at all)
//!  gets ──▶ the key's home, and its version is marked
//!  change ─▶ claim the key ─▶ every copy that is written ─▶ a copy missed it? wait until it is out ─▶ enough have it? ─▶ the answer
//!  decide ─▶ claim the key ─▶ its home ─▶ what it decided, to every other copy ─▶ as above
//!  count ──▶ the same; what the home has computed is read back there first
//! ```
//!
//! A change that some copies took and that could not be sent to others is refused, and removed where it landed before that is
//! answered (`undo.rs`).
//!
//! What a copy missed is noted *before* the answer leaves, and the answer waits until nobody reads that copy any more.

mod aside;
mod change;
mod home;
mod lost;
mod opening;
mod read_back;
mod spread;
mod turn;
mod undo;
mod version;

use std::{borrow::Cow, sync::Arc};

use proxima_wire::message::{Outcome, Request};

pub(crate) use self::{opening::Opening, turn::Turn};
use super::{
    Node, NodeId, Tree, Walk,
    flight::{Change, Flight, Stage},
    tree::{Copies, Leaf},
};
use crate::{dialect::Effect, dialect::Failed, engine::Engine, members::Member, micros::Micros};

/// What waits for the others longer than this is answered with an error.
const PATIENCE: Micros = Micros::secs(2);

/// The member of child `child`.
fn member<'a>(tree: &'a Tree, copies: &Copies, child: usize) -> Option<&'a Arc<Member>> {
    match tree.node(*copies.children.get(child)?) {
        Node::Leaf(Leaf::Member(member)) => Some(member),
        _ => None,
    }
}

/// The key of a change; of a flush it is empty.
fn key_of<'a>(flight: &'a Flight, change: &Change) -> Cow<'a, [u8]> {
    match change.stage {
        // Only the key was kept.
        Stage::Everywhere | Stage::Undoing => Cow::Borrowed(&flight.message),
        _ => {
            let mut scratch = [0; 250];
            let dialect = flight.origin.dialect;
            Cow::Owned(
                dialect
                    .key(&flight.request, &flight.message, &mut scratch)
                    .to_vec(),
            )
        }
    }
}

/// Does a copy that answers so hold the change?
const fn is_done(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Ok | Outcome::Stored | Outcome::Found | Outcome::Touched | Outcome::Deleted
    )
}

impl Engine {
    /// May this copy be asked this?
    pub(crate) fn may_ask(&self, member: &Member, request: &Request) -> bool {
        self.views.admits(member.id, request.class)
    }

    /// A request has come to a pool of copies.
    pub(super) fn copies(&mut self, node: NodeId, copies: &Copies, walk: &Walk<'_>) {
        match (copies.copied.effect(walk.request, walk.message), &copies.home) {
            (Effect::Look, _) | (Effect::LookAtHome, None) => {
                let readable = |child| self.is_readable(walk.tree, copies, child);
                let chosen = copies.nearest(walk.origin.locality, readable);
                self.look(copies, chosen, walk);
            }
            (Effect::LookAtHome, Some(home)) => {
                let key = self.key(walk);
                let chosen = home.pick_live(&key, |child| self.is_readable(walk.tree, copies, child));
                self.key = key;
                match chosen.and_then(|home| Some((home, *copies.children.get(home)?))) {
                    Some(home) => self.look_at_home(node, home, walk),
                    None => self.look(copies, None, walk),
                }
            }
            (Effect::Everywhere | Effect::Decide, _) => self.change(node, copies, walk),
        }
    }

    fn key(&mut self, walk: &Walk<'_>) -> Vec<u8> {
        let mut key = std::mem::take(&mut self.key);
        let mut scratch = [0; 250];
        key.clear();
        key.extend_from_slice(walk.key(&mut scratch));
        key
    }

    fn is_readable(&self, tree: &Tree, copies: &Copies, child: usize) -> bool {
        member(tree, copies, child)
            .is_some_and(|member| member.is_up() && self.views.standing(member.id).is_read())
    }

    fn look(&mut self, copies: &Copies, chosen: Option<usize>, walk: &Walk<'_>) {
        match chosen.and_then(|child| copies.children.get(child)) {
            Some(&child) => self.walk(child, walk),
            None => {
                let text = "no copy may be read: each is down or has missed writes";
                self.fail(walk.to, &Failed::here(Outcome::Ejected, text));
            }
        }
    }
}
