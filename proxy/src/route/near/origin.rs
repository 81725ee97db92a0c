//! The way down to an HTTP origin: a value that is kept is answered in the words of each protocol, one fetch
//! is made for all who miss it, and a delete drops what is kept.

use std::sync::Arc;

use proxima_wire::message::{Class, Outcome};

use super::{
    step::AGAIN,
    value::{OwnedValue, ValueAnswer},
};
use crate::{
    config::schema::NearRule,
    engine::{Engine, FlightId, ReplyTo, Sleeper, WorkerEvent},
    near::{Fetch, Fill, HttpOrigin, Lookup, Passes, Question, Rule, VALUE},
    protocol::{Cacheable, Failed},
    route::{
        NearNode, NodeId, Walk,
        group::{Group, Reader, Readers},
    },
};

/// The error text for a key that has no URL.
const NO_URL: Failed<'static> = Failed::here(
    Outcome::ClientError,
    "no URL of the origin can name this key: it is too long, or a segment `.` or `..`",
);

/// The largest value that is taken where no rule says anything.
const LARGEST: u64 = NearRule::LARGEST as u64;

/// The node, and its origin.
type At<'a> = (&'a NearNode, &'a Arc<HttpOrigin>);

impl Engine {
    /// Answers a request from what is kept of an origin, or asks the origin. Returns the node to go on with
    /// if no value can answer it.
    pub(super) fn step_origin(
        &mut self,
        node: NodeId,
        (near, origin): At<'_>,
        key: &[u8],
        walk: &Walk<'_>,
    ) -> Option<NodeId> {
        let cacheable = walk.origin.protocol.cacheable();
        let Some(cacheable) = cacheable.filter(|of| self.may_ask_origin(*of, key, walk)) else {
            return Some(near.child);
        };
        if walk.request.class == Class::Delete {
            return self.drop_value(near, cacheable, key, walk);
        }
        let mut scratch = std::mem::take(&mut self.router.form);
        scratch.clear();
        let around = cacheable.value_frame(walk.request, walk.message, 0, &mut scratch);
        self.router.form = scratch;
        if walk.request.class != Class::Read || around.is_none() {
            return Some(near.child);
        }
        let rule = near.rule(walk.request.command, key);
        match rule.filter(|rule| rule.is_on() && near.near.ready.is_complete(self.facts.workers)) {
            Some(rule) => self.look_for_value(node, (near, origin), rule, key, walk),
            None => self.fetch_alone(node, origin, rule, key, walk),
        }
        None
    }

    /// May this request be answered by an origin? It has no rights but the listener's, and no connections
    /// that keep something for a client.
    fn may_ask_origin(&self, cacheable: &dyn Cacheable, key: &[u8], walk: &Walk<'_>) -> bool {
        let (request, login) = (walk.request, walk.origin.login);
        let is_common = login == 0 || cacheable.is_pools(&self.servers.login_words(login));
        let is_of_one_key = !key.is_empty() && request.more_keys.is_empty();
        is_common && is_of_one_key && !request.is_dedicated && !walk.is_streamed()
    }

    /// Drops what is kept of the key, and answers whether there was a value.
    fn drop_value(
        &mut self,
        near: &NearNode,
        cacheable: &dyn Cacheable,
        key: &[u8],
        walk: &Walk<'_>,
    ) -> Option<NodeId> {
        let mut out = std::mem::take(&mut self.router.reply);
        let removed = cacheable.removed(walk.request, walk.message, &mut out);
        if let Some(removed) = removed {
            let rules = near.rules.iter().map(|rule| &rule.rule);
            let reply = match near.near.drop_value(rules, key, self.now) {
                true => removed,
                false => {
                    out.clear();
                    let (protocol, form) = (walk.origin.protocol, walk.origin.form);
                    protocol.miss(form, walk.request, walk.message, &mut out)
                }
            };
            self.deliver(walk.to, &reply, &out);
        }
        out.clear();
        self.router.reply = out;
        removed.is_none().then_some(near.child)
    }

    fn look_for_value(
        &mut self,
        node: NodeId,
        (near, origin): At<'_>,
        rule: &Arc<Rule>,
        key: &[u8],
        walk: &Walk<'_>,
    ) {
        let question = Question {
            rule,
            key,
            form: VALUE,
        };
        let mut out = std::mem::take(&mut self.router.reply);
        match near.near.look(&question, self.now, &mut out, Passes::Never) {
            Lookup::Hit(answer, renewal) => {
                self.metrics
                    .near
                    .hit(rule.slot, answer.age, answer.is_stale, answer.is_miss);
                self.give_to(walk, &ValueAnswer::kept(&answer, &out));
                // An origin that has failed a moment ago is left alone.
                if let Some(fill) = renewal
                    && near.near.failure(&question, self.now).is_none()
                {
                    self.fetch_value(node, (near, origin), *fill, None, walk);
                }
            }
            Lookup::Miss(fill) => {
                self.metrics.near.of(rule.slot).misses += 1;
                match self.failed_before(near, &question, 1) {
                    Some(known) => self.give_to(walk, &known.given()),
                    None => self.fetch_value(node, (near, origin), fill, Some(walk), walk),
                }
            }
            Lookup::Filling => {
                self.wait_near(node, near, &question, walk);
            }
            Lookup::Changing | Lookup::Unkept | Lookup::Unasked => {
                self.metrics.near.of(rule.slot).passed_changing += 1;
                self.fetch_alone(node, origin, Some(rule), key, walk);
            }
        }
        out.clear();
        self.router.reply = out;
    }

    /// What readers get whose origin has failed a moment ago: the old value where the rule allows that.
    /// `None`: it has not.
    fn failed_before(
        &mut self,
        near: &NearNode,
        question: &Question<'_>,
        readers: u64,
    ) -> Option<OwnedValue> {
        let failed = near.near.failure(question, self.now)?;
        match near.near.look_on_error(question, self.now) {
            Some((_, value)) => {
                self.metrics.near.of(question.rule.slot).stood_for_errors += readers;
                Some(OwnedValue::Value(value))
            }
            None => Some(OwnedValue::Failed(failed)),
        }
    }

    /// Has the origin asked for a value that all who ask for it get. `reader`: who waits for it; `None`: it
    /// is renewed for later readers.
    fn fetch_value(
        &mut self,
        node: NodeId,
        (near, origin): At<'_>,
        fill: Fill,
        reader: Option<&Walk<'_>>,
        walk: &Walk<'_>,
    ) {
        let question = fill.asked().question();
        let Some(target) = origin.url.target(question.key) else {
            if let Some(walk) = reader {
                self.fail(walk.to, &NO_URL);
            }
            return;
        };
        self.metrics.near.of(question.rule.slot).fills += 1;
        let identity = fill.identity();
        let group = Group::of(fill, Readers::of(reader.map(Reader::of)), self.now);
        let (id, flight) = self.router.flights.open(node, &walk.to(ReplyTo::Nobody), 1);
        flight.message.extend_from_slice(walk.message);
        self.router.groups.insert(identity, id);
        self.fetch_for_group(id, (near, origin), Box::new(group), target);
    }

    /// Has the origin asked for one reader, and keeps nothing.
    fn fetch_alone(
        &mut self,
        node: NodeId,
        origin: &Arc<HttpOrigin>,
        rule: Option<&Arc<Rule>>,
        key: &[u8],
        walk: &Walk<'_>,
    ) {
        let Some(target) = origin.url.target(key) else {
            return self.fail(walk.to, &NO_URL);
        };
        let (id, flight) = self.router.flights.open(node, walk, 1);
        flight.message.extend_from_slice(walk.message);
        let fetch = Fetch {
            origin: Arc::clone(origin),
            target,
            largest: rule.map_or(LARGEST, |rule| rule.settings().largest),
            validator: None,
        };
        self.ask_origin(id, fetch);
    }

    fn ask_origin(&mut self, flight: FlightId, fetch: Fetch) {
        self.actions.events.push(WorkerEvent::Fetch {
            worker: self.facts.worker,
            flight,
            fetch: Box::new(fetch),
        });
    }

    /// Looks again for what another worker fetches from the origin.
    pub(super) fn look_again_for_value(
        &mut self,
        id: FlightId,
        (near, origin): At<'_>,
        mut group: Box<Group>,
    ) {
        let mut out = Vec::new();
        let look = near
            .near
            .look(&group.question(), self.now, &mut out, Passes::Never);
        let target = origin.url.target(group.question().key);
        match (look, target) {
            (Lookup::Filling, _) => {
                if let Some(flight) = self.router.flights.get(id) {
                    flight.group = Some(group);
                }
                self.timers.wake(self.now + AGAIN, Sleeper::Flight(id));
            }
            (Lookup::Hit(answer, renewal), _) => {
                // Another reader renews it soon enough.
                drop(renewal);
                self.leave_group(id, &group, &ValueAnswer::kept(&answer, &out));
            }
            (_, None) => self.leave_group(id, &group, &ValueAnswer::Failed(NO_URL)),
            (Lookup::Miss(fill), Some(target)) => {
                let readers = group.readers.len() as u64;
                if let Some(known) = self.failed_before(near, &group.question(), readers) {
                    drop(fill);
                    return self.leave_group(id, &group, &known.given());
                }
                self.metrics.near.of(group.question().rule.slot).fills += 1;
                group.fetch(fill);
                self.fetch_for_group(id, (near, origin), group, target);
            }
            (Lookup::Changing | Lookup::Unkept | Lookup::Unasked, Some(target)) => {
                // A change is under way: only the requests that wait get what is fetched from now on.
                self.router.groups.remove(group.identity, id);
                self.fetch_for_group(id, (near, origin), group, target);
            }
        }
    }

    /// Has the origin asked for the value that this flight's group waits for.
    fn fetch_for_group(
        &mut self,
        id: FlightId,
        (near, origin): At<'_>,
        mut group: Box<Group>,
        target: String,
    ) {
        group.old = near.near.old(&group.question());
        let fetch = Fetch {
            origin: Arc::clone(origin),
            target,
            largest: group.largest(),
            validator: group.old.as_ref().map(|old| Arc::clone(&old.validator)),
        };
        if let Some(flight) = self.router.flights.get(id) {
            flight.group = Some(group);
        }
        self.ask_origin(id, fetch);
    }
}
