//! Requests to a pool of copies: read at the nearest one that may be read, changed at all of them.
//!
//! ```text
//!  look ──▶ the nearest current copy                                          (no state at all)
//!  gets ──▶ the key's home, and its version is marked
//!  change ─▶ lock the key ─▶ every copy that is written ─▶ a copy missed it? wait until it is out
//!         ─▶ enough have it? ─▶ the answer
//!  decide ─▶ lock the key ─▶ its home ─▶ what it decided, to every other copy ─▶ as above
//!  count ──▶ the same; what the home has computed is read back there first
//! ```
//!
//! * `worker_copies`: one worker's state for copies; `operation`: what a request remembers while it waits, by
//!   stages
//! * `change`: begins a change; `streamed`: one whose value is passed on as it comes
//! * `fan_out`: sends it to all copies, and answers it; `home`, `read_back`, `version`: what one copy decides
//! * `reject`: too few copies took it; `undo`: some copies could not be sent it, so it is removed where it
//!   landed
//! * `bypass`: changes that come to a copy by another route than its pool
//! * `opening`: a copy that comes back decides again
//! * `fleet`: requests to a pool whose copies belong to the peers of a fleet
//!
//! A write that a copy missed is recorded *before* the answer leaves, and the answer waits until no worker
//! reads that copy any more.

mod bypass;
mod change;
mod fan_out;
mod fleet;
mod home;
mod opening;
mod operation;
mod read_back;
mod reject;
mod streamed;
mod undo;
mod version;
mod worker_copies;

use std::sync::Arc;

use proxima_wire::message::{Outcome, Request};

pub(crate) use self::streamed::LastByte;
pub use self::{
    fleet::{Membership, WorkerFleet},
    operation::Operation,
    worker_copies::WorkerCopies,
};
use super::{KeyLock, LockMode};
use crate::{
    engine::Engine,
    members::Member,
    micros::Micros,
    protocol::{Effect, Failed},
    route::{Copies, Leaf, Node, NodeId, Tree, Walk},
};

/// An operation that waits longer than this for other copies or workers is answered with an error.
const SETTLE_TIMEOUT: Micros = Micros::secs(2);

/// The member of child `child`.
fn member<'a>(tree: &'a Tree, copies: &Copies, child: usize) -> Option<&'a Arc<Member>> {
    match tree.node(*copies.children.get(child)?) {
        Node::Leaf(Leaf::Member(member)) => Some(member),
        _ => None,
    }
}

/// All members of a pool, with their numbers among its children.
fn members<'a>(tree: &'a Tree, copies: &'a Copies) -> impl Iterator<Item = (usize, &'a Arc<Member>)> {
    (0..copies.children.len()).filter_map(|child| Some((child, member(tree, copies, child)?)))
}

impl Engine {
    /// May this copy be asked this?
    pub(crate) fn may_ask(&self, member: &Member, request: &Request) -> bool {
        self.copies.snapshot.admits(member.id, request.class)
    }

    /// A request has come to a pool of copies, which is `node`.
    pub(crate) fn ask_copies(&mut self, node: NodeId, copies: &Copies, walk: &Walk<'_>) {
        if copies.fleet.is_some() {
            return self.ask_fleet(node, copies, walk);
        }
        match (copies.copied.effect(walk.request, walk.message), &copies.home) {
            (Effect::Look, _) | (Effect::LookAtHome, None) => {
                let readable = |child| self.is_readable(walk.tree, copies, child);
                let chosen = copies.nearest(walk.origin.locality, readable);
                self.look(copies, chosen, walk);
            }
            (Effect::LookAtHome, Some(home)) => {
                let key = self.copies.take_key(walk);
                let chosen = home.pick_live(&key, |child| self.is_readable(walk.tree, copies, child));
                self.copies.give_back_key(key);
                match chosen.and_then(|home| Some((home, *copies.children.get(home)?))) {
                    Some(home) => self.look_at_home(node, home, walk),
                    None => self.look(copies, None, walk),
                }
            }
            (Effect::Everywhere | Effect::Decide, _) => self.change(node, copies, walk),
        }
    }

    fn is_readable(&self, tree: &Tree, copies: &Copies, child: usize) -> bool {
        member(tree, copies, child)
            .is_some_and(|member| member.is_up() && self.copies.snapshot.state(member.id).is_read())
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
