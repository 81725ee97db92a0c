//! The way up: what has come is kept, and given to all who wait for it.

use std::sync::Arc;

use proxima_wire::message::{Outcome, Reply};

use super::kept_reply::KeptReply;
use crate::{
    engine::{Engine, FlightId, ReplyTo},
    micros::Micros,
    near::{Bytes, Refusal, SMALL},
    protocol::{Failed, Fit},
    route::{
        Answer, Flight, Node, Walk,
        flight::MISPLACED,
        group::{Group, Reader},
    },
};

impl Engine {
    /// Takes the answer to what was fetched.
    pub(in crate::route) fn near_fetched(&mut self, id: FlightId, answer: &Answer<'_>) {
        let Some(mut flight) = self.router.flights.take(id) else {
            return;
        };
        let Some(mut group) = flight.group.take() else {
            return self.broken(MISPLACED);
        };
        let walk = flight.own_walk(ReplyTo::Nobody);
        let (fit, shared) = match answer {
            Answer::Reply(reply, bytes) => self.keep_near(&mut group, &walk, reply, bytes),
            Answer::Failed(_) => (Fit::Shared, None),
        };
        let is_error = answer.outcome().is_error();
        let old = is_error.then(|| self.stands_for_error(&flight, &group)).flatten();
        if let Some(fill) = group.fill_mut() {
            fill.end();
        }
        self.router.groups.remove(group.identity, id);
        let mut apart = Vec::new();
        for (number, reader) in group.readers.iter().enumerate() {
            let walk = reader.walk(&walk);
            match (&fit, &old) {
                (Fit::Kept(reply, bytes), _) => self.give_fetched(
                    &walk,
                    match &shared {
                        Some(shared) => KeptReply::shared(reply, shared),
                        None => KeptReply::small(reply, bytes),
                    },
                ),
                (_, Some((reply, bytes))) => self.give_fetched(&walk, KeptReply::shared(reply, bytes)),
                (Fit::Shared, None) if reader.has_this_answer(&flight.request, is_error) => {
                    self.pass_on_answer(walk.to, answer);
                }
                (Fit::Alone, None) if number == 0 => self.pass_on_answer(walk.to, answer),
                (Fit::Shared | Fit::Alone, None) => apart.push(reader),
            }
        }
        self.pass_readers(apart.into_iter(), &flight);
        self.router.flights.recycle(flight);
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
        let since = group.since;
        let (Some(fill), Some(cacheable)) = (group.fill_mut(), sent.origin.protocol.cacheable()) else {
            return (Fit::Shared, None);
        };
        let rule = fill.asked().question().rule;
        let (slot, settings) = (rule.slot, rule.settings());
        if reply.outcome.is_error() {
            self.metrics.near.of(slot).refused_error += 1;
            return (Fit::Shared, None);
        }
        let chance = self.random.bits() as u8;
        let fit = cacheable.kept(sent.request, sent.message, reply, bytes);
        let Fit::Kept(reply, kept) = fit else {
            self.metrics.near.of(slot).refused_unfit += 1;
            return (fit, None);
        };
        let is_miss = sent.has_missed(&reply, kept);
        if is_miss && settings.negative == Micros::ZERO {
            fill.keep_nothing();
            return (Fit::Kept(reply, kept), None);
        }
        // The store and each reader copy a small one.
        let shared: Option<Arc<[u8]>> = (kept.len() > SMALL).then(|| kept.into());
        let bytes = shared.as_ref().map_or(Bytes::Alone(kept), Bytes::Shared);
        let result = match kept.len() as u64 <= settings.largest {
            true => fill.keep(&reply, bytes, is_miss, self.now, chance),
            false => {
                fill.keep_none(self.now, chance);
                Err(Refusal::TooLarge)
            }
        };
        self.note_fetched(slot, result, since);
        (Fit::Kept(reply, kept), shared)
    }

    /// Counts a reply that was fetched since then.
    pub(super) fn note_fetched(&mut self, slot: u16, result: Result<(), Refusal>, since: Micros) {
        self.metrics.near.fetched(slot, result, self.now - since);
    }

    fn give_fetched(&mut self, walk: &Walk<'_>, given: KeptReply<'_>) {
        if !self.give_kept(walk, given) {
            let what = "out of memory for replies";
            self.fail(walk.to, &Failed::here(Outcome::Overloaded, what));
        }
    }

    /// The old reply that stands for an error, if the rule has one.
    pub(super) fn stands_for_error(&mut self, flight: &Flight, group: &Group) -> Option<(Reply, Arc<[u8]>)> {
        let Node::Near(near) = flight.tree.node(flight.node) else {
            return None;
        };
        let old = near.near.look_on_error(&group.question(), self.now)?;
        let slot = group.question().rule.slot;
        self.metrics.near.of(slot).stood_for_errors += group.readers.len() as u64;
        Some(old)
    }

    /// Answers all who wait for what another worker has fetched; `None`: each of them asks by itself.
    pub(super) fn answer_group(&mut self, id: FlightId, group: Group, answer: Option<KeptReply<'_>>) {
        let Some(flight) = self.router.flights.take(id) else {
            return;
        };
        self.router.groups.remove(group.identity, id);
        let Some(given) = answer else {
            return self.pass_readers(group.readers.iter(), &flight);
        };
        let walk = flight.own_walk(ReplyTo::Nobody);
        for reader in group.readers.iter() {
            self.give_fetched(&reader.walk(&walk), given);
        }
    }

    /// Lets each of these readers ask by itself.
    fn pass_readers<'a>(&mut self, readers: impl Iterator<Item = &'a Reader>, flight: &Flight) {
        let Node::Near(near) = flight.tree.node(flight.node) else {
            return self.broken(MISPLACED);
        };
        let walk = flight.own_walk(ReplyTo::Nobody);
        self.descend(|engine| {
            for reader in readers {
                engine.walk(near.child, &reader.walk(&walk));
            }
        });
    }

    /// What was fetched is larger than the rule allows: it is passed on to the first reader as it comes, and
    /// the others ask by themselves. Returns whom it is for.
    pub(in crate::route) fn fetched_too_much(&mut self, id: FlightId) -> Option<ReplyTo> {
        // Only such a flight is ended here: another one passes on what comes in pieces by itself.
        self.router.flights.peek(id)?.group.as_ref()?;
        let mut flight = self.router.flights.take(id)?;
        let mut group = flight.group.take()?;
        if let Some(fill) = group.fill_mut() {
            let chance = self.random.bits() as u8;
            fill.keep_none(self.now, chance);
            self.metrics.near.of(group.question().rule.slot).refused_large += 1;
        }
        self.router.groups.remove(group.identity, id);
        let is_there = |reader: &&Reader| match reader.to {
            ReplyTo::Client { client, .. } => self.clients.is_open(client),
            _ => true,
        };
        let first = group.readers.iter().position(|reader| is_there(&reader));
        let others = group.readers.iter().enumerate();
        let others = others.filter(|&(number, _)| Some(number) != first);
        self.pass_readers(others.map(|(_, reader)| reader), &flight);
        first.and_then(|number| Some(group.readers.iter().nth(number)?.to))
    }
}
