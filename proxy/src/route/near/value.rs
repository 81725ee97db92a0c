//! The way up from an HTTP origin: what it has answered is kept, and given to all who wait, to each in the
//! words of its protocol.

use std::sync::Arc;

use proxima_wire::message::{Outcome, Reply};

use crate::{
    client::SharedReply,
    engine::{Engine, FlightId, ReplyTo},
    micros::Micros,
    near::{Answer, Bytes, Failure, Near, OriginReply, SMALL, Terms},
    protocol::Failed,
    route::{Flight, Node, Walk, flight::MISPLACED, group::Group},
};

/// The error text for a value for which there is no room.
const OUT_OF_MEMORY: Failed<'static> = Failed::here(Outcome::Overloaded, "out of memory for replies");
/// The error text for a confirmation of what is not kept.
const NOT_KEPT: Failed<'static> = Failed::here(
    Outcome::RemoteError,
    "the origin confirms a value that is not kept any more",
);

/// What a reader of a value gets.
pub(super) enum ValueAnswer<'a> {
    /// The value; where it is large and is not copied, also as others have it.
    Value(&'a [u8], Option<&'a Arc<[u8]>>),
    Missing,
    Failed(Failed<'a>),
}

/// The same, by itself.
pub(super) enum OwnedValue {
    Value(Arc<[u8]>),
    Failed(Failure),
}

impl<'a> ValueAnswer<'a> {
    /// What is kept: `small`, where it does not lie by itself.
    pub(super) fn kept(answer: &'a Answer, small: &'a [u8]) -> Self {
        match &answer.bytes {
            _ if answer.is_miss => Self::Missing,
            Some(value) => Self::shared(value),
            None => Self::Value(small, None),
        }
    }

    fn shared(value: &'a Arc<[u8]>) -> Self {
        Self::Value(value, Some(value).filter(|value| value.len() > SMALL))
    }
}

impl OwnedValue {
    pub(super) fn given(&self) -> ValueAnswer<'_> {
        match self {
            Self::Value(value) => ValueAnswer::shared(value),
            Self::Failed(Failure { outcome, text, .. }) => ValueAnswer::Failed(Failed::here(*outcome, text)),
        }
    }
}

impl Engine {
    /// Gives a reader its answer.
    pub(super) fn give_to(&mut self, walk: &Walk<'_>, given: &ValueAnswer<'_>) {
        let (protocol, form) = (walk.origin.protocol, walk.origin.form);
        let value = match given {
            ValueAnswer::Failed(failed) => return self.fail(walk.to, failed),
            ValueAnswer::Value(value, lent) => Some((*value, *lent)),
            ValueAnswer::Missing => None,
        };
        let mut out = std::mem::take(&mut self.router.own);
        let around = protocol
            .cacheable()
            .zip(value)
            .and_then(|(cacheable, (value, lent))| {
                let around = cacheable.value_frame(walk.request, walk.message, value.len(), &mut out)?;
                let (value, lent) = if around.has_value {
                    (value, lent)
                } else {
                    (&b""[..], None)
                };
                Some((around, value, lent))
            });
        let is_given = match around {
            Some((around, value, lent)) => {
                let reply = Reply {
                    body: (value.len() + around.tail.len()) as u64,
                    trailer: around.trailer,
                    ..Reply::new(Outcome::Found, out.len())
                };
                let loan = lent.map(|bytes| SharedReply {
                    own: Some((&out, 0)),
                    bytes,
                    tail: around.tail,
                });
                match (walk.to, loan) {
                    (ReplyTo::Client { client, seq }, Some(loan))
                        if self.answer_shared((client, seq), &reply, loan) =>
                    {
                        true
                    }
                    _ => {
                        out.extend_from_slice(value);
                        out.extend_from_slice(around.tail);
                        self.deliver_if_taken(walk.to, &reply, &out)
                    }
                }
            }
            None => {
                let reply = protocol.miss(form, walk.request, walk.message, &mut out);
                self.deliver_if_taken(walk.to, &reply, &out)
            }
        };
        if !is_given {
            self.fail(walk.to, &OUT_OF_MEMORY);
        }
        out.clear();
        if out.capacity() > SMALL * 2 {
            out = Vec::new();
        }
        self.router.own = out;
    }

    /// Delivers a reply if there is room for it.
    fn deliver_if_taken(&mut self, to: ReplyTo, reply: &Reply, bytes: &[u8]) -> bool {
        let is_taken = self.takes_reply(to, bytes.len());
        if is_taken {
            self.deliver(to, reply, bytes);
        }
        is_taken
    }

    /// Takes what an origin has answered.
    pub fn take_fetched(&mut self, id: FlightId, fetched: &OriginReply) {
        let Some(mut flight) = self.router.flights.take(id) else {
            return;
        };
        let mut group = flight.group.take();
        let Node::Near(near) = flight.tree.node(flight.node) else {
            return self.broken(MISPLACED);
        };
        let old = group.as_mut().and_then(|group| group.old.take());
        let old = old.as_ref().map(|old| &old.bytes);
        let mut given = match fetched {
            OriginReply::Value(value, _) => ValueAnswer::shared(value),
            OriginReply::Missing(_) => ValueAnswer::Missing,
            OriginReply::Same(_) => old.map_or(ValueAnswer::Failed(NOT_KEPT), ValueAnswer::shared),
            OriginReply::Failed(Failure { outcome, text, .. }) => {
                ValueAnswer::Failed(Failed::here(*outcome, text))
            }
        };
        let Some(mut group) = group else {
            return self.give_to(&flight.own_walk(flight.parent), &given);
        };
        let stood;
        if let ValueAnswer::Failed(_) = given {
            stood = self.stands_for_error(&flight, &group);
            if let Some((_, value)) = &stood {
                given = ValueAnswer::shared(value);
            }
        }
        self.keep_fetched(&near.near, &mut group, fetched, old);
        if let Some(fill) = group.fill_mut() {
            fill.end();
        }
        self.give_all(id, &group, &flight, &given);
    }

    /// Keeps what an origin has answered, if it may be kept.
    fn keep_fetched(
        &mut self,
        near: &Near,
        group: &mut Group,
        fetched: &OriginReply,
        old: Option<&Arc<[u8]>>,
    ) {
        let since = group.since;
        let Some(fill) = group.fill_mut() else {
            return;
        };
        let rule = Arc::clone(fill.asked().question().rule);
        let chance = self.random.bits() as u8;
        let (value, terms): (Option<&Arc<[u8]>>, Option<&Terms>) = match (fetched, old) {
            (OriginReply::Value(value, terms), _) => (Some(value), terms.as_ref()),
            (OriginReply::Same(terms), Some(old)) => (Some(old), terms.as_ref()),
            (OriginReply::Missing(terms), _) => {
                let is_kept = rule.settings().negative > Micros::ZERO;
                (None, terms.as_ref().filter(|_| is_kept))
            }
            (OriginReply::Same(_), None) => return,
            (OriginReply::Failed(failure), _) => {
                self.metrics.near.of(rule.slot).refused_error += 1;
                if failure.is_origins {
                    fill.keep_failure(failure.outcome, &failure.text, self.now);
                }
                return;
            }
        };
        let Some(terms) = terms else {
            self.metrics.near.of(rule.slot).refused_unfit += 1;
            return near.forget(&fill.asked().question());
        };
        let result = fill.keep_value(value.map(Bytes::Shared), terms.clone(), self.now, chance);
        self.note_fetched(rule.slot, result, since);
    }

    /// Ends a group, and gives all its readers the same.
    pub(super) fn leave_group(&mut self, id: FlightId, group: &Group, given: &ValueAnswer<'_>) {
        if let Some(flight) = self.router.flights.take(id) {
            self.give_all(id, group, &flight, given);
        }
    }

    fn give_all(&mut self, id: FlightId, group: &Group, flight: &Flight, given: &ValueAnswer<'_>) {
        self.router.groups.remove(group.identity, id);
        let walk = flight.own_walk(ReplyTo::Nobody);
        for reader in group.readers.iter() {
            self.give_to(&reader.walk(&walk), given);
        }
    }
}
