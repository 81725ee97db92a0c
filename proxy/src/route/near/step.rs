//! The way down: a hit is answered on the spot, one reader of many fetches what is missing, and the others
//! wait.

use std::{rc::Rc, sync::Arc};

use proxima_wire::message::Class;

use super::kept_reply::KeptReply;
use crate::{
    engine::{Engine, FlightId, ReplyTo, Sleeper},
    micros::Micros,
    near::{Fill, Lookup, OwnedQuestion, Passes, Question, Rule, SMALL},
    protocol::{Cacheable, Retention},
    route::{
        NearNode, Node, NodeId, Walk,
        flight::{MISPLACED, child_of},
        group::{Group, Reader, Readers},
    },
};

/// The time after which the store is looked at again for what another worker fetches.
pub(super) const AGAIN: Micros = Micros(500);

impl Engine {
    /// Answers a request from what is kept, or has it wait for what is being fetched. Returns the node to go
    /// on with if it passes.
    pub(in crate::route) fn step_near(
        &mut self,
        node: NodeId,
        near: &NearNode,
        key: &[u8],
        walk: &Walk<'_>,
    ) -> Option<NodeId> {
        if let Some(origin) = &near.origin {
            return self.step_origin(node, (near, origin), key, walk);
        }
        let Some((rule, cacheable)) = self.kept_by(near, key, walk) else {
            return Some(near.child);
        };
        let mut form = std::mem::take(&mut self.router.form);
        form.clear();
        let has_form = cacheable.form(walk.origin.form, walk.request, walk.message, &mut form);
        let question = Question {
            rule,
            key,
            form: &form,
        };
        let passes = !has_form || self.look_near(node, near, &question, walk);
        self.router.form = form;
        passes.then_some(near.child)
    }

    /// The rule by which the reply to this request may be kept, and what its protocol knows of that.
    fn kept_by<'a>(
        &self,
        near: &'a NearNode,
        key: &[u8],
        walk: &Walk<'_>,
    ) -> Option<(&'a Arc<Rule>, &'static dyn Cacheable)> {
        let request = walk.request;
        if request.class != Class::Read || request.is_dedicated || key.is_empty() || walk.is_streamed() {
            return None;
        }
        let rule = near.rule(request.command, key).filter(|rule| rule.is_on())?;
        let cacheable = walk.origin.protocol.cacheable()?;
        let login = walk.origin.login;
        let is_common = login == 0 || cacheable.is_pools(&self.servers.login_words(login));
        // A kept reply may be older than the keys that the client watches: EXEC would succeed on what has
        // changed before.
        let reader = self.slot_of(walk.to);
        if reader.is_some_and(|(client, _)| self.clients.retention(client) == Some(Retention::Kept)) {
            return None;
        }
        (is_common && near.near.ready.is_complete(self.facts.workers)).then_some((rule, cacheable))
    }

    /// Looks for the answer. Returns whether the request passes.
    fn look_near(&mut self, node: NodeId, near: &NearNode, question: &Question<'_>, walk: &Walk<'_>) -> bool {
        let mut out = std::mem::take(&mut self.router.reply);
        let look = near.near.look(question, self.now, &mut out, Passes::IfUnasked);
        let slot = question.rule.slot;
        let passes = match look {
            Lookup::Hit(answer, renewal) => {
                let given = match &answer.bytes {
                    Some(bytes) => KeptReply::shared(&answer.reply, bytes),
                    None => KeptReply::small(&answer.reply, &out),
                };
                // Where there is no room for the reply, it comes from a server as its reader takes it.
                let is_given = self.give_kept(walk, given);
                if is_given {
                    self.metrics
                        .near
                        .hit(slot, answer.age, answer.is_stale, answer.is_miss);
                }
                if let Some(fill) = renewal {
                    self.fetch_near(node, near, question, *fill, None, walk);
                }
                !is_given
            }
            Lookup::Miss(fill) => {
                self.metrics.near.of(slot).misses += 1;
                self.fetch_near(node, near, question, fill, Some(walk), walk);
                false
            }
            Lookup::Filling => !self.wait_near(node, near, question, walk),
            Lookup::Changing => {
                self.metrics.near.of(slot).passed_changing += 1;
                true
            }
            Lookup::Unkept => {
                self.metrics.near.of(slot).passed_unkept += 1;
                true
            }
            Lookup::Unasked => {
                let counts = self.metrics.near.of(slot);
                counts.misses += 1;
                counts.passed_unasked += 1;
                true
            }
        };
        if out.capacity() > SMALL * 2 {
            out = Vec::new();
        }
        out.clear();
        self.router.reply = out;
        passes
    }

    /// Asks the child for what is missing. `reader`: who waits for it; `None`: it is renewed for later
    /// readers.
    fn fetch_near(
        &mut self,
        node: NodeId,
        near: &NearNode,
        question: &Question<'_>,
        fill: Fill,
        reader: Option<&Walk<'_>>,
        walk: &Walk<'_>,
    ) {
        let identity = fill.identity();
        let group = Group::of(fill, Readers::of(reader.map(Reader::of)), self.now);
        let sent = walk.to(ReplyTo::Nobody);
        let (id, flight) = self.router.flights.open(node, &sent, 1);
        flight.message.extend_from_slice(walk.message);
        flight.group = Some(Box::new(group));
        self.router.groups.insert(identity, id);
        self.metrics.near.of(question.rule.slot).fills += 1;
        let child = near.child;
        self.descend(|engine| engine.walk(child, &sent.to(child_of(id, 0))));
    }

    /// Waits with others of this worker for what is being fetched, or for what another worker fetches.
    /// Returns `false` if neither may be waited for.
    pub(super) fn wait_near(
        &mut self,
        node: NodeId,
        near: &NearNode,
        question: &Question<'_>,
        walk: &Walk<'_>,
    ) -> bool {
        let identity = near.near.identity(question);
        self.metrics.near.of(question.rule.slot).joined += 1;
        if let Some(id) = self.router.groups.get(identity)
            && let Some(flight) = self.router.flights.get(id)
            && let Some(group) = flight.group.as_mut()
            && group.admits(question)
        {
            group.readers.push(Reader::beside(walk, &flight.message));
            return true;
        }
        let (id, flight) = self.router.flights.open(node, &walk.to(ReplyTo::Nobody), 1);
        flight.message.extend_from_slice(walk.message);
        let readers = Readers::of(Some(Reader::of(walk)));
        let group = Group::waiting(OwnedQuestion::new(question), identity, readers, self.now);
        flight.group = Some(Box::new(group));
        self.router.groups.insert(identity, id);
        self.timers.wake(self.now + AGAIN, Sleeper::Flight(id));
        true
    }

    /// Looks again for what another worker fetches.
    pub(in crate::route) fn look_again(&mut self, id: FlightId) {
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        let tree = Rc::clone(&flight.tree);
        let node = flight.node;
        let (Node::Near(near), Some(mut group)) = (tree.node(node), flight.group.take()) else {
            return self.broken(MISPLACED);
        };
        if let Some(origin) = &near.origin {
            return self.look_again_for_value(id, (near, origin), group);
        }
        let mut out = Vec::new();
        let look = near
            .near
            .look(&group.question(), self.now, &mut out, Passes::Never);
        match look {
            Lookup::Filling => {
                if let Some(flight) = self.router.flights.get(id) {
                    flight.group = Some(group);
                }
                self.timers.wake(self.now + AGAIN, Sleeper::Flight(id));
            }
            Lookup::Miss(fill) => {
                group.fetch(fill);
                if let Some(flight) = self.router.flights.get(id) {
                    flight.group = Some(group);
                }
                self.resend(id, near.child, child_of(id, 0));
            }
            Lookup::Hit(answer, renewal) => {
                // Another reader renews it soon enough.
                drop(renewal);
                let given = match &answer.bytes {
                    Some(bytes) => KeptReply::shared(&answer.reply, bytes),
                    None => KeptReply::small(&answer.reply, &out),
                };
                self.answer_group(id, *group, Some(given));
            }
            Lookup::Changing | Lookup::Unkept | Lookup::Unasked => self.answer_group(id, *group, None),
        }
    }
}
