//! A change goes to every copy, and is answered when each has it or is out.

use std::{rc::Rc, sync::Arc};

use proxima_wire::message::Outcome;

use super::{PATIENCE, key_of, member, read_back::Aftermath, undo, version::shown};
use crate::{
    dialect::Failed,
    engine::Engine,
    members::{Member, MemberId, copies::Standing},
    route::{
        Answer, FlightId, Node, Tree, Walk,
        flight::{Stage, child_of},
        tree::Copies,
    },
};

/// No answer of the server: whether it did what it was asked is not known. What we did not send for want of our own means
/// (`Overloaded`) is no miss: the change is refused, and removed where it landed.
pub(super) fn is_missed(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Timeout
            | Outcome::ConnectTimeout
            | Outcome::ConnectError
            | Outcome::Ejected
            | Outcome::Deadline
    )
}

impl Engine {
    /// Sends a change to all copies but `home`, which has done it.
    pub(super) fn spread(&mut self, copies: &Copies, id: FlightId, home: Option<usize>, walk: &Walk<'_>) {
        let tree = walk.tree;
        let takers = self.takers(tree, copies, home);
        let Some((_, change)) = self.router.flights.change(id) else {
            return;
        };
        if change.landed as usize + takers < copies.min_acks {
            // Known before it is sent: nobody comes to owe what is refused anyway.
            return self.refuse_lost(tree, copies, id, false);
        }
        if !Rc::ptr_eq(tree, &self.tree) {
            self.miss_at_strangers(id);
        }
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        // One more than there are, so that replies that come within the walk do not end the flight.
        flight.pending = 1;
        for child in (0..copies.children.len()).filter(|&child| Some(child) != home) {
            let Some(member) = member(tree, copies, child) else {
                continue;
            };
            if self.views.standing(member.id).is_written() {
                if let Some(flight) = self.router.flights.get(id) {
                    flight.pending += 1;
                }
                self.walk(copies.children[child], &walk.to(child_of(id, child)));
            } else {
                self.figures.member(member.id).skipped += 1;
                self.miss(member, id, "");
            }
        }
        if let Some(flight) = self.router.flights.get(id) {
            flight.pending -= 1;
        }
        self.conclude(id);
    }

    /// How many copies besides `home` a change is sent to.
    pub(super) fn takers(&self, tree: &Tree, copies: &Copies, home: Option<usize>) -> usize {
        (0..copies.children.len())
            .filter(|&child| Some(child) != home)
            .filter_map(|child| member(tree, copies, child))
            .filter(|member| self.views.standing(member.id).is_written())
            .count()
    }

    /// This copy does not have, or may not have, the change of this flight.
    pub(super) fn miss(&mut self, member: &Arc<Member>, id: FlightId, why: &str) {
        let Some((flight, change)) = self.router.flights.change(id) else {
            return;
        };
        if !self.tree.names(member.id) {
            // It has left the pool meanwhile: nobody reads it, and if it comes back it owes everything.
            return change.missed.push((member.id, None));
        }
        // However long this copy was waited for: that it is out is settled soon.
        change.since = self.now;
        let outs = self.views.owe(member.id, &key_of(flight, change));
        change.missed.push((member.id, Some(outs)));
        self.fall(member, why);
    }

    /// A copy has answered, or will not.
    pub(in crate::route) fn copied(
        &mut self,
        tree: &Rc<Tree>,
        copies: &Copies,
        id: FlightId,
        child: usize,
        answer: &Answer<'_>,
    ) {
        if let Some(what) = Aftermath::of(copies, child) {
            let read = match answer {
                Answer::Reply(_, bytes) => bytes,
                Answer::Failed(_) => &[][..],
            };
            return self.have_read_back(tree, copies, id, what, answer.outcome(), read);
        }
        let Some((flight, change)) = self.router.flights.change(id) else {
            return;
        };
        let (stage, parent, command) = (change.stage, flight.parent, flight.request.command);
        let marked;
        let answer = match (stage, answer) {
            (Stage::Looking(home) | Stage::Home(home), Answer::Reply(reply, bytes)) => {
                marked = shown(tree, copies, home, command, reply, bytes);
                &Answer::Reply(&marked.0, &marked.1)
            }
            _ => answer,
        };
        match stage {
            Stage::Looking(_) => {
                self.router.flights.close(id);
                self.pass_on_answer(parent, answer);
            }
            Stage::Home(home) => {
                let missed = self.count(tree, copies, id, child, answer);
                self.decided(copies, id, home, missed, answer);
            }
            _ => {
                self.count(tree, copies, id, child, answer);
                self.conclude(id);
            }
        }
    }

    /// Notes what a copy has answered, or that it has missed the change: then true.
    fn count(
        &mut self,
        tree: &Tree,
        copies: &Copies,
        id: FlightId,
        child: usize,
        answer: &Answer<'_>,
    ) -> bool {
        let Some((flight, change)) = self.router.flights.change(id) else {
            return false;
        };
        let (outcome, is_undoing) = (answer.outcome(), change.stage == Stage::Undoing);
        // A removal that is refused leaves what it was to remove.
        let missed = is_missed(outcome) || is_undoing && outcome.is_error();
        if missed {
            if let Some(member) = member(tree, copies, child) {
                self.miss(member, id, &answer.what());
            }
        } else if !is_undoing {
            if outcome == Outcome::Overloaded {
                change
                    .unsent
                    .extend(member(tree, copies, child).map(|member| member.id));
            } else {
                change.landed += 1;
            }
            // Of the others' replies only errors matter to what the home has answered.
            if !matches!(change.stage, Stage::Elsewhere(_)) || outcome.is_error() {
                flight.answers.keep(answer);
            }
        }
        missed
    }

    /// Answers when every copy has the change or is out.
    pub(super) fn conclude(&mut self, id: FlightId) {
        let Some((flight, change)) = self.router.flights.change(id) else {
            return;
        };
        if flight.pending > 0 {
            return;
        }
        let (tree, node, parent, late) = (
            Rc::clone(&flight.tree),
            flight.node,
            flight.parent,
            (self.now - change.since) > PATIENCE,
        );
        let Node::Copies(copies) = tree.node(node) else {
            return;
        };
        if undo::is_due(flight, change) {
            return self.undo(&tree, copies, id);
        }
        let views = &self.views;
        let awaited = change
            .missed
            .iter()
            .any(|&(member, outs)| outs.is_some_and(|outs| !views.is_settled(member, outs)));
        if awaited && !late {
            return self.parked.push(id);
        }
        if awaited {
            self.router.flights.close(id);
            let text = "a copy missed this write and it could not be settled who still reads it";
            return self.fail(parent, &Failed::here(Outcome::Timeout, text));
        }
        // Where it was not sent for want of our own means, that too few have it is no sign that this proxy is cut off.
        if (change.landed as usize) < copies.min_acks && change.unsent.is_empty() {
            return self.refuse_lost(&tree, copies, id, true);
        }
        let (stage, is_sent) = (change.stage, change.unsent.is_empty());
        let answers = std::mem::take(&mut flight.answers);
        let refused = answers.outcomes().any(Outcome::is_error);
        let chosen = match stage {
            // A copy that was repaired may lack what the others had: deleted at one is deleted. mcrouter says the worst.
            Stage::Everywhere if copies.home.is_some() && !refused => answers.best(),
            Stage::Everywhere if is_sent => answers.worst(),
            // What the home has answered, unless another copy has refused it.
            _ => answers.pick(|(a, _), (b, _)| a.is_error() && !b.is_error()),
        };
        if let Some(chosen) = chosen {
            self.pass_on_answer(parent, &chosen);
        }
        if let Some(flight) = self.router.flights.get(id) {
            flight.answers = answers;
            self.router.flights.close(id);
        }
    }

    /// Follows what was agreed, and looks again at the writes that waited for it.
    pub fn follow(&mut self, member: MemberId, epoch: u64, standing: Standing) {
        if standing == Standing::Leaving {
            self.cut_changes(member);
        }
        if let Some(owed) = self.views.follow(member, standing) {
            self.acknowledge(member, epoch, standing, owed);
        }
        self.look_at_parked();
    }

    /// Writes that wait for a copy to be out: may they be answered now?
    pub fn look_at_parked(&mut self) {
        for id in std::mem::take(&mut self.parked) {
            self.conclude(id);
        }
    }
}
