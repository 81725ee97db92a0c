//! Requests to a pool of copies: read at the nearest one that may be read, changed at all of them.
//!
//! ```text
//!  look ──▶ the nearest current copy                                          (no state at all)
//!  change ─▶ every copy that is written ─▶ a copy missed it? wait until it is out ─▶ enough have it? ─▶ the answer
//!  decide ─▶ the key's home ─▶ what it decided, to every other copy ─▶ as above
//! ```
//!
//! What a copy missed is noted *before* the answer leaves, and the answer waits until nobody reads that copy any more.

use std::{borrow::Cow, rc::Rc, sync::Arc};

use proxima_wire::message::{Outcome, Parsed, Reply, Request};

use super::{
    Node, NodeId, ReplyTo, Tree,
    flight::Stage,
    step::Origin,
    tree::{Copies, Leaf},
};
use crate::{
    dialect::Effect,
    engine::{Engine, News},
    members::{Member, MemberId, copies::Standing},
    timer::Timer,
};

/// A key whose home changes hands is asked again after this long: microseconds.
const MOVING: u64 = 500;
/// What waits for the others longer than this is answered with an error: microseconds.
const PATIENCE: u64 = 2_000_000;

/// The member of child `child`.
fn member<'a>(tree: &'a Tree, copies: &Copies, child: usize) -> Option<&'a Arc<Member>> {
    match tree.node(*copies.children.get(child)?) {
        Node::Leaf(Leaf::Member(member)) => Some(member),
        _ => None,
    }
}

/// No answer of the server: whether it did what it was asked is not known.
fn is_missed(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Timeout
            | Outcome::ConnectTimeout
            | Outcome::ConnectError
            | Outcome::Ejected
            | Outcome::Deadline
            | Outcome::Overloaded
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
        listener: u16,
        request: &Request,
        message: &[u8],
        to: ReplyTo,
    ) {
        let origin = Origin {
            listener,
            dialect: tree.dialect,
        };
        match (tree.dialect.effect(request, message), &copies.home) {
            (Effect::Look, _) | (Effect::LookAtHome, None) => {
                let chosen = copies
                    .nearest
                    .iter()
                    .copied()
                    .find(|&child| self.is_readable(tree, copies, child));
                self.look(tree, copies, chosen, origin, request, message, to);
            }
            (Effect::LookAtHome, Some(home)) => {
                let key = self.key(tree, request, message);
                let chosen = home.pick_live(&key, |child| self.is_readable(tree, copies, child));
                self.look(tree, copies, chosen, origin, request, message, to);
            }
            (Effect::Decide, Some(_)) => {
                let (index, flight) = self.flights.open(to, Rc::clone(tree), node, listener, request, 0);
                flight.message.extend_from_slice(message);
                flight.stage = Stage::Homeless;
                flight.since = self.now;
                let generation = flight.generation();
                self.hold_back_client(to);
                self.find_home(index, generation);
            }
            (Effect::Everywhere | Effect::Decide, _) => {
                let key = self.key(tree, request, message);
                let (index, flight) = self.flights.open(to, Rc::clone(tree), node, listener, request, 0);
                // All that may be needed again is the key.
                flight.message.extend_from_slice(&key);
                flight.since = self.now;
                let generation = flight.generation();
                self.key = key;
                self.spread(tree, copies, index, generation, None, origin, request, message);
            }
        }
    }

    fn key(&mut self, tree: &Tree, request: &Request, message: &[u8]) -> Vec<u8> {
        let mut key = std::mem::take(&mut self.key);
        let mut scratch = [0; 250];
        key.clear();
        key.extend_from_slice(tree.dialect.key(request, message, &mut scratch));
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
                self.deliver_error(to, origin.dialect, Outcome::Ejected, text);
            }
        }
    }

    /// What this client asks next waits for the answer: it may be about the same key.
    fn hold_back_client(&mut self, mut to: ReplyTo) {
        while let ReplyTo::Flight {
            index, generation, ..
        } = to
        {
            let Some(flight) = self.flights.get(index, generation) else {
                return;
            };
            to = flight.parent;
        }
        if let ReplyTo::Client {
            index,
            generation,
            seq,
        } = to
            && let Some(client) = self
                .clients
                .get_mut(index as usize)
                .filter(|client| client.generation == generation)
        {
            client.awaits = Some(seq);
        }
    }

    /// Asks the copy that decides this key's value; waits while that is changing.
    pub(super) fn find_home(&mut self, index: u32, generation: u32) {
        let Some(flight) = self.flights.get(index, generation) else {
            return;
        };
        let (tree, node, listener, request) = (
            Rc::clone(&flight.tree),
            flight.node,
            flight.listener,
            flight.request,
        );
        let (since, parent) = (flight.since, flight.parent);
        let mut message = std::mem::take(&mut self.resend);
        message.extend_from_slice(&flight.message);
        let Node::Copies(copies) = tree.node(node) else {
            return;
        };
        let key = self.key(&tree, &request, &message);
        let standing = |engine: &Self, child: usize| {
            member(&tree, copies, child).map_or(Standing::Out, |member| engine.views.standing(member.id))
        };
        let home = copies
            .home
            .as_ref()
            .and_then(|home| home.pick_live(&key, |child| standing(self, child).is_required()));
        self.key = key;
        let streamed = (message.len() as u64) < request.len();
        match home.map(|child| (child, standing(self, child))) {
            Some((child, Standing::Current)) => {
                if let Some(flight) = self.flights.get(index, generation) {
                    flight.stage = Stage::Home(child as u32);
                    flight.pending = 1;
                }
                let to = self.flights.child(index, child);
                let origin = Origin {
                    listener,
                    dialect: tree.dialect,
                };
                self.walk(&tree, copies.children[child], origin, &request, &message, to);
            }
            Some(_) if !streamed && self.now.saturating_sub(since) < PATIENCE => {
                self.timers.push(Timer {
                    due: self.now + MOVING,
                    flight: index,
                    generation,
                });
            }
            _ => {
                self.flights.close(index);
                let text = "no copy may decide this key's value";
                self.deliver_error(parent, tree.dialect, Outcome::Ejected, text);
            }
        }
        message.clear();
        self.resend = message;
    }

    /// Sends a change to all copies but `home`, which has done it.
    #[allow(clippy::too_many_arguments)]
    fn spread(
        &mut self,
        tree: &Rc<Tree>,
        copies: &Copies,
        index: u32,
        generation: u32,
        home: Option<usize>,
        origin: Origin,
        request: &Request,
        message: &[u8],
    ) {
        // One more than there are, so that replies that come within the walk do not end the flight.
        if let Some(flight) = self.flights.get(index, generation) {
            flight.pending = 1;
        }
        for child in (0..copies.children.len()).filter(|&child| Some(child) != home) {
            let Some(member) = member(tree, copies, child) else {
                continue;
            };
            if self.views.standing(member.id).is_written() {
                if let Some(flight) = self.flights.get(index, generation) {
                    flight.pending += 1;
                }
                let to = self.flights.child(index, child);
                self.walk(tree, copies.children[child], origin, request, message, to);
            } else {
                self.miss(member, index, generation, child, "");
            }
        }
        if let Some(flight) = self.flights.get(index, generation) {
            flight.pending -= 1;
        }
        self.conclude(index, generation);
    }

    /// This copy does not have, or may not have, the change of this flight.
    fn miss(&mut self, member: &Arc<Member>, index: u32, generation: u32, child: usize, why: &str) {
        let Some(flight) = self.flights.get(index, generation) else {
            return;
        };
        // One that was out, or joining, nobody reads: what it owes is paid before anybody does.
        if self.views.standing(member.id).is_required() {
            flight.missed.push(child as u32);
        }
        // However long this copy was waited for: that it is out is settled soon.
        flight.since = self.now;
        let key = match flight.stage {
            // Only the key was kept.
            Stage::Everywhere => Cow::Borrowed(&flight.message[..]),
            _ => {
                let mut scratch = [0; 250];
                let key = flight
                    .tree
                    .dialect
                    .key(&flight.request, &flight.message, &mut scratch);
                Cow::Owned(key.to_vec())
            }
        };
        self.views.owe(member.id, &key);
        if self.views.fall(member.id) {
            self.wishes
                .news
                .push(News::Missed(Arc::clone(member), why.to_owned()));
        }
    }

    /// A copy has answered, or will not.
    pub(super) fn copied(
        &mut self,
        copies: &Copies,
        index: u32,
        generation: u32,
        child: usize,
        reply: &Reply,
        bytes: &[u8],
    ) {
        let Some(flight) = self.flights.get(index, generation) else {
            return;
        };
        let (tree, stage, parent) = (Rc::clone(&flight.tree), flight.stage, flight.parent);
        let missed = is_missed(reply.outcome);
        if missed {
            if let Some(member) = member(&tree, copies, child) {
                let why = String::from_utf8_lossy(bytes);
                let why = why.trim_end().trim_start_matches("SERVER_ERROR ").to_owned();
                self.miss(member, index, generation, child, &why);
            }
        } else if let Some(flight) = self.flights.get(index, generation) {
            flight.landed += 1;
            // Of the others' replies only errors matter to what the home has answered.
            if !matches!(stage, Stage::Elsewhere(_)) || reply.outcome.is_error() {
                flight.keep(reply, bytes);
            }
        }
        let Stage::Home(home) = stage else {
            return self.conclude(index, generation);
        };
        let decided = matches!(
            reply.outcome,
            Outcome::Ok | Outcome::Stored | Outcome::Found | Outcome::Touched | Outcome::Deleted
        );
        if missed || !decided {
            self.flights.close(index);
            return self.deliver(parent, reply, bytes);
        }
        let Some(flight) = self.flights.get(index, generation) else {
            return;
        };
        flight.stage = Stage::Elsewhere(home);
        let (request, listener) = (flight.request, flight.listener);
        let mut told = Vec::with_capacity(flight.message.len() + 16);
        if flight.message.len() as u64 == request.len() {
            tree.dialect.follow_up(&request, &flight.message, &mut told);
        } else {
            // The value went through and was not kept.
            let mut scratch = [0; 250];
            let key = tree.dialect.key(&request, &flight.message, &mut scratch);
            tree.dialect.removal(key, &mut told);
        }
        let origin = Origin {
            listener,
            dialect: tree.dialect,
        };
        if let Parsed::Head(request) = tree.dialect.request(&told, u64::MAX) {
            self.spread(
                &tree,
                copies,
                index,
                generation,
                Some(home as usize),
                origin,
                &request,
                &told,
            );
        }
    }

    /// A home's reply is too large to be held (the value that a `gat` reads): it is passed on at once, and so is what the
    /// others are told. None: it is no home's, and short answers are due.
    pub(super) fn claim_decided(
        &mut self,
        tree: &Rc<Tree>,
        copies: &Copies,
        index: u32,
        generation: u32,
    ) -> Option<ReplyTo> {
        let flight = self.flights.get(index, generation)?;
        let (parent, request, listener) = (flight.parent, flight.request, flight.listener);
        let Stage::Home(home) = flight.stage else {
            // Nobody can tell what it means: as if it had not answered.
            self.conclude(index, generation);
            return None;
        };
        let message = std::mem::take(&mut flight.message);
        self.flights.close(index);
        let mut told = Vec::new();
        tree.dialect.follow_up(&request, &message, &mut told);
        let origin = Origin {
            listener,
            dialect: tree.dialect,
        };
        let key = self.key(tree, &request, &message);
        for child in (0..copies.children.len()).filter(|&child| child != home as usize) {
            let Some(member) = member(tree, copies, child) else {
                continue;
            };
            self.views.owe_if_out(member.id, &key);
            if self.views.standing(member.id).is_written()
                && let Parsed::Head(request) = tree.dialect.request(&told, u64::MAX)
            {
                self.walk(
                    tree,
                    copies.children[child],
                    origin,
                    &request,
                    &told,
                    ReplyTo::Nobody,
                );
            }
        }
        self.key = key;
        Some(parent)
    }

    /// Answers when every copy has the change or is out.
    fn conclude(&mut self, index: u32, generation: u32) {
        let Some(flight) = self.flights.get(index, generation) else {
            return;
        };
        if flight.pending > 0 {
            return;
        }
        let (tree, node, parent, late) = (
            Rc::clone(&flight.tree),
            flight.node,
            flight.parent,
            self.now.saturating_sub(flight.since) > PATIENCE + 1_000_000,
        );
        let Node::Copies(copies) = tree.node(node) else {
            return;
        };
        let views = &self.views;
        let awaited = flight.missed.iter().any(|&child| {
            member(&tree, copies, child as usize)
                .is_some_and(|member| views.standing(member.id).is_required())
        });
        if awaited && !late {
            return self.parked.push((index, generation));
        }
        if awaited {
            self.flights.close(index);
            let text = "a copy missed this write and it could not be settled who still reads it";
            return self.deliver_error(parent, tree.dialect, Outcome::Timeout, text);
        }
        if (flight.landed as usize) < copies.min_acks {
            return self.refuse_lost(&tree, copies, index, generation);
        }
        let refused = flight.replies.iter().any(|kept| kept.reply.outcome.is_error());
        let chosen = match flight.stage {
            // A copy that was repaired may lack what the others had: deleted at one is deleted. mcrouter says the worst.
            Stage::Everywhere if copies.home.is_some() && !refused => flight.best(),
            Stage::Everywhere => flight.worst(),
            // What the home has answered, unless another copy has refused it.
            _ => flight.pick(|a, b| a.reply.outcome.is_error() && !b.reply.outcome.is_error()),
        };
        let kept = std::mem::take(&mut flight.kept);
        if let Some(chosen) = chosen {
            let bytes = kept.get(chosen.start..chosen.end).unwrap_or_default();
            self.deliver(parent, &chosen.reply, bytes);
        }
        if let Some(flight) = self.flights.get(index, generation) {
            flight.kept = kept;
            self.flights.close(index);
        }
    }

    /// Too few copies took it: it is undone where it landed, and as this may be the side that is cut off, what is in reach
    /// is not to be trusted either.
    fn refuse_lost(&mut self, tree: &Rc<Tree>, copies: &Copies, index: u32, generation: u32) {
        let Some(flight) = self.flights.get(index, generation) else {
            return;
        };
        let (parent, landed, listener) = (flight.parent, flight.landed, flight.listener);
        let mut told = Vec::new();
        match flight.stage {
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
        for child in (0..copies.children.len()).filter(|&child| !missed.contains(&(child as u32))) {
            let Some(member) = member(tree, copies, child) else {
                continue;
            };
            if let Parsed::Head(removal) = tree.dialect.request(&told, u64::MAX)
                && self.views.standing(member.id).is_written()
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
            if self.views.standing(member.id) != Standing::Joining && self.views.fall(member.id) {
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

    /// Follows what was agreed, and looks again at the writes that waited for it.
    pub fn follow(&mut self, member: MemberId, epoch: u64, standing: Standing) {
        if let Some(owed) = self.views.follow(member, standing) {
            self.wishes.news.push(News::Follows {
                worker: self.facts.worker,
                member,
                epoch,
                owed,
            });
        }
        self.look_at_parked();
    }

    /// Writes that wait for a copy to be out: may they be answered now?
    pub fn look_at_parked(&mut self) {
        for (index, generation) in std::mem::take(&mut self.parked) {
            self.conclude(index, generation);
        }
    }
}
