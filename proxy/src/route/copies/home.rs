//! Values that a command computes: one copy, the key's home, decides; the others are told.

use std::rc::Rc;

use proxima_wire::message::{Outcome, Parsed, Reply};

use super::{
    PATIENCE, is_done, member,
    read_back::Aftermath,
    version::{mark, shown},
};
use crate::{
    dialect::Failed,
    engine::Engine,
    members::copies::Standing,
    route::{
        Answer, FlightId, Node, ReplyTo, Tree, Walk,
        flight::{Stage, child_of},
        tree::Copies,
    },
};

const NO_HOME: &str = "no copy may decide this key's value";

impl Engine {
    /// Asks the copy that decides this key's value; waits while that is changing.
    pub(super) fn find_home(&mut self, id: FlightId) {
        let Some((flight, change)) = self.router.flights.change(id) else {
            return;
        };
        let (tree, node, origin, request) = (
            Rc::clone(&flight.tree),
            flight.node,
            flight.origin,
            flight.request,
        );
        let (since, parent) = (change.since, flight.parent);
        let Node::Copies(copies) = tree.node(node) else {
            return;
        };
        if self.takers(&tree, copies, None) < copies.min_acks {
            return self.refuse_lost(&tree, copies, id, false);
        }
        let mut message = std::mem::take(&mut self.router.resend);
        if let Some(flight) = self.router.flights.get(id) {
            message.extend_from_slice(&flight.message);
        }
        let walk = Walk {
            tree: &tree,
            origin,
            request: &request,
            message: &message,
            to: ReplyTo::Nobody,
        };
        let key = self.key(&walk);
        let home = self.home(&tree, copies, &key);
        self.key = key;
        let streamed = walk.is_streamed();
        match home {
            Some((child, Standing::Current)) => {
                if let Some((flight, change)) = self.router.flights.change(id) {
                    change.stage = Stage::Home(child as u32);
                    flight.pending = 1;
                    // A home that was lost has been out since. It may be back, and this very one.
                    change.missed.clear();
                }
                let walk = walk.to(child_of(id, child));
                let next = copies.children[child];
                let mark = member(&tree, copies, child).map_or(0, |member| mark(member));
                let mut head = Vec::new();
                if copies.copied.mark_request(&request, &message, mark, &mut head) {
                    self.walk_with_head(next, head, &walk);
                } else {
                    self.walk(next, &walk);
                }
                if !streamed {
                    self.read_back(copies, id, next, &walk);
                }
            }
            Some(_) if !streamed && (self.now - since) < PATIENCE => {
                self.look_again(id);
            }
            _ => {
                self.router.flights.close(id);
                self.fail(parent, &Failed::here(Outcome::Ejected, NO_HOME));
            }
        }
        message.clear();
        self.router.resend = message;
    }

    /// The copy that decides this key's value, and how it stands: what is not current decides nothing yet, or no more.
    fn home(&self, tree: &Tree, copies: &Copies, key: &[u8]) -> Option<(usize, Standing)> {
        let standing = |child: usize| {
            member(tree, copies, child).map_or(Standing::Out, |member| self.views.standing(member.id))
        };
        let home = copies.home.as_ref()?;
        let child = home.pick_live(key, |child| standing(child).is_required())?;
        Some((child, standing(child)))
    }

    /// A streamed value was sent to the copy that was its key's home when it began. If another is by now, which did not wait
    /// for it, nothing is decided: neither has had the last byte.
    pub(super) fn leave_home(&mut self, id: FlightId) {
        let Some((flight, change)) = self.router.flights.change(id) else {
            return;
        };
        let (Stage::Home(began), tree, parent) = (change.stage, Rc::clone(&flight.tree), flight.parent)
        else {
            return;
        };
        let Node::Copies(copies) = tree.node(flight.node) else {
            return;
        };
        let origin = flight.origin;
        let mut scratch = [0; 250];
        let key = origin
            .dialect
            .key(&flight.request, &flight.message, &mut scratch)
            .to_vec();
        if self.home(&tree, copies, &key).map(|(child, _)| child) == Some(began as usize) {
            return;
        }
        let to = child_of(id, began as usize);
        self.router.flights.close(id);
        for lane in self.servers.awaiting(to) {
            self.drop_lane(lane, NO_HOME);
        }
        self.fail(parent, &Failed::here(Outcome::Ejected, NO_HOME));
    }

    /// A home's reply is too large to be held (the value that a `gat` reads): it is passed on at once, and the others are
    /// told meanwhile. `head` is its first line. None: it is no home's, and short answers are due.
    pub(in crate::route) fn pass_decided(
        &mut self,
        tree: &Rc<Tree>,
        copies: &Copies,
        (id, child): (FlightId, u32),
        head: &mut Vec<u8>,
    ) -> Option<ReplyTo> {
        if let Some(what) = Aftermath::of(copies, child as usize) {
            // Too large a number to be told: the others drop theirs.
            self.have_read_back(tree, copies, id, what, Outcome::Found, b"");
            return None;
        }
        let (flight, change) = self.router.flights.change(id)?;
        let (stage, command) = (change.stage, flight.request.command);
        let (Stage::Home(home) | Stage::Looking(home)) = stage else {
            // Nobody can tell what it means: as if it had not answered.
            self.conclude(id);
            return None;
        };
        let parent = std::mem::replace(&mut flight.parent, ReplyTo::Nobody);
        let line = std::mem::take(head);
        let reply = Reply::new(Outcome::Found, line.len());
        head.extend_from_slice(&shown(tree, copies, home, command, &reply, &line).1);
        match stage {
            Stage::Home(_) => {
                change.landed += 1;
                self.tell(copies, id, home, None);
            }
            _ => self.router.flights.close(id),
        }
        Some(parent)
    }

    /// The home has answered: what it did is told to the others.
    pub(super) fn decided(
        &mut self,
        copies: &Copies,
        id: FlightId,
        home: u32,
        missed: bool,
        answer: &Answer<'_>,
    ) {
        let Some((flight, change)) = self.router.flights.change(id) else {
            return;
        };
        let parent = flight.parent;
        let decided = is_done(answer.outcome());
        if missed && flight.message.len() as u64 >= flight.request.len() {
            // Whatever it did is undone with what it owes: as soon as it is out, the next one decides.
            change.stage = Stage::Waiting;
            return self.look_again(id);
        }
        if missed || !decided {
            self.router.flights.close(id);
            return self.pass_on_answer(parent, answer);
        }
        if flight.pending > 0 {
            // What it has computed comes next.
            return;
        }
        self.tell(copies, id, home, None);
    }

    /// Tells the others what the home has decided; `read` is the reply that says what it has computed.
    pub(super) fn tell(&mut self, copies: &Copies, id: FlightId, home: u32, read: Option<&[u8]>) {
        let unix = self.unix();
        let Some((flight, change)) = self.router.flights.change(id) else {
            return;
        };
        change.stage = Stage::Elsewhere(home);
        let (tree, request, origin) = (Rc::clone(&flight.tree), flight.request, flight.origin);
        let mut told = Vec::with_capacity(flight.message.len() + 16);
        if let Some(read) = read {
            copies
                .copied
                .store_read_back(&request, &flight.message, read, unix, &mut told);
        } else if flight.message.len() as u64 == request.len() {
            copies.copied.follow_up(&request, &flight.message, &mut told);
        } else {
            // The value went through and was not kept.
            let mut scratch = [0; 250];
            let key = origin.dialect.key(&request, &flight.message, &mut scratch);
            copies.copied.removal(key, &mut told);
        }
        let Parsed::Head(request) = origin.dialect.head(&told) else {
            let parent = flight.parent;
            self.router.flights.close(id);
            let text = "the other copies cannot be told what has become of this value";
            return self.fail(parent, &Failed::here(Outcome::LocalError, text));
        };
        let walk = Walk {
            tree: &tree,
            origin,
            request: &request,
            message: &told,
            to: ReplyTo::Nobody,
        };
        self.spread(copies, id, Some(home as usize), &walk);
    }
}
