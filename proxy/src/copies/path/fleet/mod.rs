//! Requests to a pool whose copies belong to the peers of a fleet.
//!
//! ```text
//!  look   ─▶ the own copy; if that may not be read, a neighbour's, through the neighbour
//!  change ─▶ lock the key ─▶ stamp ─▶ the own copy and all peers ─▶ all have it? ─▶ the answer
//!  decide ─▶ the key's home: lock the key ─▶ its own copy decides ─▶ stamp ─▶ what it decided, as a change
//!  from a peer: lock the key ─▶ newest of its key? ─▶ the own copy ─▶ acknowledge
//! ```
//!
//! * `worker_fleet`: one worker's state for the fleet; `turn`: its tasks in every turn, and periodic ones
//! * `coordinate`: changes of this worker's clients; `keep`, `task`: changes of peers
//! * `ask`: requests that another peer answers, and those that this one answers; `fill`: values that a copy
//!   which has come back gets from neighbours
//! * `views`: the next view, and the end of a stay; `orphan`: keys of changes that a departed coordinator has
//!   not finished
//!
//! A key is locked only until the own copy has answered, never while a peer is waited for: two peers that
//! wait for each other's locks would wait for ever. Among peers, stamps say which change is the last.

mod ask;
mod coordinate;
mod fill;
mod keep;
mod orphan;
mod task;
mod turn;
mod views;
mod worker_fleet;

use proxima_wire::{
    fleet::{Ack, Answer, Ask, Change, Confirm},
    message::Outcome,
};

use self::task::Task;
pub use self::worker_fleet::{Membership, WorkerFleet};
use super::{LockMode, member};
use crate::{
    engine::{Engine, LinkId, OperationId},
    fleet::{
        Slot, Stay,
        keeper::{Origin, ViewOrder},
    },
    micros::Micros,
    peers::{FrameOutcome, Links},
    protocol::{Effect, Failed},
    route::{Copies, Leaf, NodeId, Tree, Walk},
};

/// A client waits this long for peers. By then the fleet has another view, or this peer has lost its lease.
const CLIENT_TIMEOUT: Micros = Micros::secs(4);
/// A proxy that has joined a fleet is in it as long as it lives.
const NO_FLEET: &str = "work of a fleet in a proxy that is in none";
/// The answer of a peer without a lease.
pub(super) const UNLEASED: &str =
    "this proxy has no lease: it has not joined its fleet yet, or is cut off from it";

/// The answer where the key's home has to wait for too long.
const NO_HOME: &str = "the peer that decides this key's value cannot do so yet";

impl Engine {
    /// The links to peers; `None`: this proxy is in no fleet.
    #[inline]
    pub fn links(&mut self) -> Option<&mut Links> {
        self.copies.fleet.as_mut().map(|fleet| &mut fleet.links)
    }

    /// A request has come to a pool of a fleet.
    pub(in crate::copies::path) fn ask_fleet(&mut self, node: NodeId, copies: &Copies, walk: &Walk<'_>) {
        let effect = copies.copied.effect(walk.request, walk.message);
        let is_leased = self.copies.fleet.as_ref().is_some_and(|fleet| fleet.is_leased());
        match (effect, is_leased) {
            // An empty cache is slow; one that lies is wrong.
            (Effect::Look, false) => self.leaf(&Leaf::Null, walk),
            (_, false) => self.fail(walk.to, &Failed::here(Outcome::Ejected, UNLEASED)),
            (Effect::Look, true) => match copies.children.first() {
                Some(&own) if self.may_read_own(walk.tree, copies) => match self.is_filling() {
                    true => self.look_and_fill(node, own, walk),
                    false => self.walk(own, walk),
                },
                _ => self.ask_peer(node, proxima_wire::fleet::AskKind::Look, walk),
            },
            (_, true) => self.ask_in_fleet(node, copies, walk),
        }
    }

    /// Has this peer a lease in this turn?
    pub(super) fn may_answer(&self) -> bool {
        self.copies.fleet.as_ref().is_some_and(|fleet| fleet.is_leased())
    }

    #[inline]
    fn is_filling(&self) -> bool {
        self.copies
            .fleet
            .as_ref()
            .is_some_and(|fleet| fleet.filling.is_some())
    }

    /// May the own copy be read?
    fn may_read_own(&self, tree: &Tree, copies: &Copies) -> bool {
        member(tree, copies, 0).is_some_and(|own| own.is_up() && self.copies.snapshot.state(own.id).is_read())
    }

    // What peers send, by its frames.

    /// A change has come from a peer.
    pub(crate) fn keep_change(
        &mut self,
        id: LinkId,
        (slot, stay, worker): (Slot, Stay, u16),
        change: &Change<'_>,
    ) -> FrameOutcome {
        match self.compare_view(change.view) {
            ViewOrder::Ahead => FrameOutcome::Ahead,
            ViewOrder::Behind(view) => {
                self.acknowledge_change(id, change.sequence, proxima_wire::fleet::Verdict::View(view));
                FrameOutcome::Done
            }
            ViewOrder::Same => self.keep(id, Origin { slot, stay, worker }, change),
        }
    }

    /// A coordinator says that changes are complete.
    pub(crate) fn keep_confirmed(
        &mut self,
        (slot, stay, worker): (Slot, Stay, u16),
        confirm: Confirm,
    ) -> FrameOutcome {
        match (self.compare_view(confirm.view), self.copies.fleet.as_mut()) {
            (ViewOrder::Ahead, _) => FrameOutcome::Ahead,
            (ViewOrder::Same, Some(fleet)) => {
                fleet
                    .keeper
                    .confirmed(Origin { slot, stay, worker }, confirm.up_to);
                FrameOutcome::Done
            }
            // The confirmation is of an older view: what is complete is said again in this one.
            _ => FrameOutcome::Done,
        }
    }

    /// A peer asks this one.
    pub(crate) fn serve_ask(&mut self, id: LinkId, ask: &Ask<'_>) -> FrameOutcome {
        match self.compare_view(ask.view) {
            ViewOrder::Ahead => return FrameOutcome::Ahead,
            ViewOrder::Behind(_) => {
                let text = b"the peer is in a later view";
                self.say(id, ask.number, proxima_wire::fleet::AnswerBody::NotHere(text));
            }
            ViewOrder::Same => self.serve_peer(id, ask),
        }
        FrameOutcome::Done
    }

    /// A keeper says what became of a change.
    pub(crate) fn change_acknowledged(&mut self, from: (Slot, Stay), ack: &Ack<'_>) -> FrameOutcome {
        match self.see(ack.clock) {
            true => {
                self.take_verdict(from, ack);
                FrameOutcome::Done
            }
            false => FrameOutcome::Wrong("its clock is far ahead of this one"),
        }
    }

    /// A peer has answered.
    pub(crate) fn ask_answered(&mut self, from: (Slot, Stay), answer: &Answer<'_>) -> FrameOutcome {
        match self.see(answer.clock) {
            true => {
                self.take_answer(from, answer);
                FrameOutcome::Done
            }
            false => FrameOutcome::Wrong("its clock is far ahead of this one"),
        }
    }

    /// The requests that a peer will no longer answer.
    pub(crate) fn asks_lost(&mut self, slot: Slot, stay: Stay) {
        self.lose_asks(slot, stay);
    }

    /// Notes a peer's clock.
    fn see(&mut self, clock: u64) -> bool {
        let unix = self.unix_micros();
        let fleet = self.copies.fleet.as_ref();
        fleet.is_some_and(|fleet| {
            fleet
                .keeper
                .shared()
                .see(crate::fleet::Stamp::from_bits(clock), unix)
        })
    }

    fn compare_view(&self, view: u64) -> ViewOrder {
        let fleet = self.copies.fleet.as_ref();
        fleet.map_or(ViewOrder::Ahead, |fleet| fleet.keeper.compare(view))
    }
}
