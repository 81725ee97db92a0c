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

use std::{borrow::Cow, rc::Rc, sync::Arc};

use proxima_wire::message::{Outcome, Request};

pub(crate) use self::{opening::Opening, turn::Turn};
use super::{
    Node, NodeId, ReplyTo, Tree,
    flight::{Change, Flight, Origin, Stage},
    tree::{Copies, Leaf},
};
use crate::{dialect::Effect, dialect::Failed, engine::Engine, members::Member};

/// What waits for the others longer than this is answered with an error: microseconds.
const PATIENCE: u64 = 2_000_000;

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
    #[allow(clippy::too_many_arguments)] // as for every step of a walk
    pub(super) fn copies(
        &mut self,
        tree: &Rc<Tree>,
        node: NodeId,
        copies: &Copies,
        origin: Origin,
        request: &Request,
        message: &[u8],
        to: ReplyTo,
    ) {
        match (copies.copied.effect(request, message), &copies.home) {
            (Effect::Look, _) | (Effect::LookAtHome, None) => {
                let chosen = copies
                    .nearest
                    .iter()
                    .copied()
                    .find(|&child| self.is_readable(tree, copies, child));
                self.look(tree, copies, chosen, origin, request, message, to);
            }
            (Effect::LookAtHome, Some(home)) => {
                let key = self.key(origin, request, message);
                let chosen = home.pick_live(&key, |child| self.is_readable(tree, copies, child));
                self.key = key;
                match chosen.and_then(|home| Some((home, *copies.children.get(home)?))) {
                    Some(home) => self.look_at_home(tree, node, home, origin, request, message, to),
                    None => self.look(tree, copies, None, origin, request, message, to),
                }
            }
            (Effect::Everywhere | Effect::Decide, _) => self.change(tree, node, origin, request, message, to),
        }
    }

    fn key(&mut self, origin: Origin, request: &Request, message: &[u8]) -> Vec<u8> {
        let mut key = std::mem::take(&mut self.key);
        let mut scratch = [0; 250];
        key.clear();
        key.extend_from_slice(origin.dialect.key(request, message, &mut scratch));
        key
    }

    fn is_readable(&self, tree: &Tree, copies: &Copies, child: usize) -> bool {
        member(tree, copies, child)
            .is_some_and(|member| member.is_up() && self.views.standing(member.id).is_read())
    }

    #[allow(clippy::too_many_arguments)]
    fn look(
        &mut self,
        tree: &Rc<Tree>,
        copies: &Copies,
        chosen: Option<usize>,
        origin: Origin,
        request: &Request,
        message: &[u8],
        to: ReplyTo,
    ) {
        match chosen.and_then(|child| copies.children.get(child)) {
            Some(&child) => self.walk(tree, child, origin, request, message, to),
            None => {
                let text = "no copy may be read: each is down or has missed writes";
                self.fail(to, &Failed::here(Outcome::Ejected, text));
            }
        }
    }
}
