//! The way up: what has come is kept, and given to all who wait for it.

use std::{rc::Rc, sync::Arc};

use proxima_wire::message::{Outcome, Reply};

use super::given::Given;
use crate::{
    engine::{Engine, FlightId, ReplyTo},
    micros::Micros,
    near::Refusal,
    protocol::{Failed, Fit},
    route::{
        Answer, Node, NodeId, Tree, Walk,
        flight::MISPLACED,
        group::{Group, Reader},
    },
};

impl Engine {
    /// Takes the answer to what was fetched.
    pub(in crate::route) fn near_fetched(&mut self, id: FlightId, answer: &Answer<'_>) {
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        let Some(mut group) = flight.group.take() else {
            return self.broken(MISPLACED);
        };
        let tree = Rc::clone(&flight.tree);
        let (origin, request) = (flight.origin, flight.request);
        let message = std::mem::take(&mut flight.message);
        let sent = Walk {
            tree: &tree,
            origin,
            request: &request,
            message: &message,
            to: ReplyTo::Nobody,
        };
        let (fit, shared) = match answer {
            Answer::Reply(reply, bytes) => self.keep_near(&mut group, &sent, reply, bytes),
            Answer::Failed(_) => (Fit::Shared, None),
        };
        let is_error = answer.outcome().is_error();
        let old = is_error
            .then(|| self.stands_for_error(&tree, id, &group))
            .flatten();
        drop(group.fill.take());
        let node = self.router.flights.peek(id).map(|flight| flight.node);
        self.end_group(id, &group);
        let mut apart = Vec::new();
        for (number, reader) in group.readers.into_iter().enumerate() {
            let walk = reader.walk(&sent);
            match (&fit, &old) {
                (Fit::Kept(reply, bytes), _) => self.give_fetched(
                    &walk,
                    match &shared {
                        Some(shared) => Given::shared(reply, shared),
                        None => Given::small(reply, bytes),
                    },
                ),
                (_, Some((reply, bytes))) => self.give_fetched(&walk, Given::shared(reply, bytes)),
                (Fit::Shared, None) if reader.has_this_answer(&request, is_error) => {
                    self.pass_on_answer(walk.to, answer);
                }
                (Fit::Alone, None) if number == 0 => self.pass_on_answer(walk.to, answer),
                (Fit::Shared | Fit::Alone, None) => apart.push(reader),
            }
        }
        if let Some(Node::Near(near)) = node.filter(|_| !apart.is_empty()).map(|node| tree.node(node)) {
            self.pass_readers(near.child, &apart, &sent);
        }
    }

    /// Keeps a reply, if it may be kept, and says who may have it. What was made to be shared of its bytes
    /// comes with that.
    fn keep_near<'b>(
        &mut self,
        group: &mut Group,
        sent: &Walk<'_>,
        reply: &Reply,
        bytes: &'b [u8],
    ) -> (Fit<'b>, Option<Arc<[u8]>>) {
        let (Some(fill), Some(cacheable)) = (group.fill.take(), sent.origin.protocol.cacheable()) else {
            return (Fit::Shared, None);
        };
        let rule = Arc::clone(group.question().rule);
        let settings = rule.settings();
        if reply.outcome.is_error() {
            self.metrics.near.of(rule.slot).refused_error += 1;
            return (Fit::Shared, None);
        }
        let chance = self.random.bits() as u8;
        let fit = cacheable.kept(sent.request, sent.message, reply, bytes);
        let Fit::Kept(reply, kept) = fit else {
            self.metrics.near.of(rule.slot).refused_unfit += 1;
            return (fit, None);
        };
        let is_miss = sent.has_missed(&reply, kept);
        if is_miss && settings.negative == Micros::ZERO {
            fill.keep_nothing();
            return (Fit::Kept(reply, kept), None);
        }
        let shared: Arc<[u8]> = kept.into();
        let result = match kept.len() as u64 <= settings.largest {
            true => fill.keep(&reply, Arc::clone(&shared), is_miss, self.now, chance),
            false => {
                fill.keep_none(self.now, chance);
                Err(Refusal::TooLarge)
            }
        };
        let took = self.now - group.since;
        self.metrics.near.fetched(rule.slot, result, took);
        (Fit::Kept(reply, kept), Some(shared))
    }

    fn give_fetched(&mut self, walk: &Walk<'_>, given: Given<'_>) {
        if !self.give_kept(walk, given) {
            let what = "out of memory for replies";
            self.fail(walk.to, &Failed::here(Outcome::Overloaded, what));
        }
    }

    /// The old reply that stands for an error, if the rule has one.
    pub(super) fn stands_for_error(
        &mut self,
        tree: &Rc<Tree>,
        id: FlightId,
        group: &Group,
    ) -> Option<(Reply, Arc<[u8]>)> {
        let node = self.router.flights.peek(id)?.node;
        let Node::Near(near) = tree.node(node) else {
            return None;
        };
        let old = near.near.look_on_error(&group.question(), self.now)?;
        let slot = group.question().rule.slot;
        self.metrics.near.of(slot).stood_for_errors += group.readers.len() as u64;
        Some(old)
    }

    pub(super) fn end_group(&mut self, id: FlightId, group: &Group) {
        self.router.groups.remove(group.identity, id);
        self.router.flights.close(id);
    }

    /// Answers all who wait for what another worker has fetched; `None`: each of them asks by itself.
    pub(super) fn answer_group(&mut self, id: FlightId, group: Group, answer: Option<Given<'_>>) {
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        let tree = Rc::clone(&flight.tree);
        let (origin, request, node) = (flight.origin, flight.request, flight.node);
        let message = std::mem::take(&mut flight.message);
        self.end_group(id, &group);
        let Node::Near(near) = tree.node(node) else {
            return self.broken(MISPLACED);
        };
        let sent = Walk {
            tree: &tree,
            origin,
            request: &request,
            message: &message,
            to: ReplyTo::Nobody,
        };
        match answer {
            Some(given) => {
                for reader in &group.readers {
                    self.give_fetched(&reader.walk(&sent), given);
                }
            }
            None => self.pass_readers(near.child, &group.readers, &sent),
        }
    }

    fn pass_readers(&mut self, child: NodeId, readers: &[Reader], sent: &Walk<'_>) {
        self.descend(|engine| {
            for reader in readers {
                engine.walk(child, &reader.walk(sent));
            }
        });
    }

    /// What was fetched is larger than the rule allows: it is passed on to the first reader as it comes, and
    /// the others ask by themselves. Returns whom it is for.
    pub(in crate::route) fn fetched_too_much(&mut self, id: FlightId) -> Option<ReplyTo> {
        let flight = self.router.flights.get(id)?;
        let mut group = flight.group.take()?;
        let tree = Rc::clone(&flight.tree);
        let (origin, request, node) = (flight.origin, flight.request, flight.node);
        let message = std::mem::take(&mut flight.message);
        if let Some(fill) = group.fill.take() {
            let chance = self.random.bits() as u8;
            fill.keep_none(self.now, chance);
            self.metrics.near.of(group.question().rule.slot).refused_large += 1;
        }
        self.end_group(id, &group);
        let Node::Near(near) = tree.node(node) else {
            self.broken(MISPLACED);
            return None;
        };
        let sent = Walk {
            tree: &tree,
            origin,
            request: &request,
            message: &message,
            to: ReplyTo::Nobody,
        };
        let is_there = |reader: &&Reader| match reader.to {
            ReplyTo::Client { client, .. } => self.clients.is_open(client),
            _ => true,
        };
        let first = group.readers.iter().position(|reader| is_there(&reader));
        let first = first.map(|at| group.readers.remove(at).to);
        self.pass_readers(near.child, &group.readers, &sent);
        first
    }
}
