//! What timed requests wait for on their way: noted as each wait ends, at the flight of the node that times them.
//! A tree that times no requests is asked for that flag, where a flight is answered, and nothing else happens.
//!
//! Invariant: an answer that goes up through several flights is noted once, at the lowest.

use std::{rc::Rc, sync::Arc};

use proxima_wire::message::Outcome;

use super::{
    Answer, Node, Tree,
    slow_requests::{SlowRequest, StepTime, WaitedFor},
};
use crate::{
    engine::{Engine, FlightId, OperationId, ReplyTo},
    members::{Member, MemberId},
    micros::Micros,
};

/// Steps that are kept of a request.
const MOST: usize = 16;
/// Bytes that are kept of the text of an error.
const LONGEST: usize = 200;

/// The steps of a request that is timed.
#[derive(Debug, Default)]
pub(super) struct Steps {
    all: Vec<NotedStep>,
    has_more: bool,
    /// Where the answer goes next that was noted last.
    passed: Option<ReplyTo>,
}

#[derive(Debug)]
struct NotedStep {
    time: StepTime,
    /// The destination of the reply of the one that waited. Those of one gather have waited side by side.
    waiter: ReplyTo,
    /// The member that has replied. `None`: none has, or the step is no reply.
    from: Option<MemberId>,
}

impl Steps {
    fn note(&mut self, step: NotedStep) {
        match self.all.len() < MOST {
            true => self.all.push(step),
            false => self.has_more = true,
        }
    }

    /// When the step has begun that ends now, from the beginning of the request on: behind the last one, and
    /// behind the last one of others for one that goes on side by side with those of its own.
    fn begun(&self, waiter: ReplyTo, is_beside: bool) -> Micros {
        let mut before = self.all.iter().rev();
        let last = before.find(|step| !(is_beside && step.waiter == waiter));
        last.map_or(Micros::ZERO, |step| step.time.begun + step.time.took)
    }

    /// Bytes of memory that they take.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.all.capacity() * size_of::<NotedStep>()
    }
}

impl Engine {
    /// Notes that the request whose answer goes there has waited for this since then, and waits no longer.
    pub(crate) fn note_wait(&mut self, to: ReplyTo, what: WaitedFor, since: Micros) {
        let Some(flight) = self.timed_by(to).and_then(|id| self.router.flights.get(id)) else {
            return;
        };
        let (begun, took) = (since - flight.until, self.now - since);
        flight.steps.get_or_insert_default().note(NotedStep {
            time: StepTime { what, begun, took },
            waiter: to,
            from: None,
        });
    }

    /// Notes the answer of child `child` of a flight of this tree, which times requests.
    #[cold]
    pub(super) fn note_arrival(&mut self, tree: &Tree, id: FlightId, child: u32, answer: &Answer<'_>) {
        let Some(flight) = self.router.flights.peek(id) else {
            return;
        };
        let is_beside = matches!(tree.node(flight.node), Node::Gather { .. });
        let (to, waiter) = (ReplyTo::Flight { flight: id, child }, flight.parent);
        self.note_answer(to, waiter, is_beside, answer);
    }

    /// Notes the answer of a copy, for an operation in a tree that times requests.
    #[cold]
    pub(crate) fn note_copy(&mut self, id: OperationId, child: u32, answer: &Answer<'_>) {
        let Some((waiter, _)) = self.copies.parent_of(id) else {
            return;
        };
        let to = ReplyTo::Operation { operation: id, child };
        self.note_answer(to, waiter, true, answer);
    }

    /// Notes the answer that has come `to` one whose own reply goes to `waiter`. Does that one ask others beside?
    fn note_answer(&mut self, to: ReplyTo, waiter: ReplyTo, is_beside: bool, answer: &Answer<'_>) {
        let from = self.replier();
        let Some(flight) = self.timed_by(to).and_then(|id| self.router.flights.get(id)) else {
            return;
        };
        let end = self.now - flight.until;
        let steps = flight.steps.get_or_insert_default();
        if steps.passed.replace(waiter) == Some(to) {
            return;
        }
        let begun = steps.begun(waiter, is_beside);
        let (server, why) = match answer {
            Answer::Reply(..) => (None, None),
            Answer::Failed(failed) => {
                let server = (String::new(), failed.server.to_owned());
                (
                    Some(server).filter(|_| !failed.server.is_empty()),
                    Some(cut(failed.what)),
                )
            }
        };
        let from = from.filter(|_| why.is_none());
        let outcome = answer.outcome();
        steps.note(NotedStep {
            time: StepTime {
                what: WaitedFor::Answer { server, outcome, why },
                begun,
                took: end - begun,
            },
            waiter,
            from,
        });
    }

    /// The flight that times the request whose answer goes there; `None`: it is not timed.
    fn timed_by(&self, mut to: ReplyTo) -> Option<FlightId> {
        loop {
            match to {
                ReplyTo::Flight { flight: id, .. } => {
                    let flight = self.router.flights.peek(id)?;
                    if !flight.tree.times() {
                        return None;
                    }
                    if let Node::Wrap { handle, .. } = flight.tree.node(flight.node)
                        && handle.times().is_some()
                    {
                        return Some(id);
                    }
                    to = flight.parent;
                }
                ReplyTo::Operation { operation, .. } => (to, _) = self.copies.parent_of(operation)?,
                _ => return None,
            }
        }
    }

    /// Keeps the request of this flight, which is answered now, if its node times requests and it was slow.
    #[cold]
    pub(super) fn end_timed(&mut self, tree: &Rc<Tree>, id: FlightId, outcome: Outcome) {
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        let took = self.now - flight.until;
        let timing = match tree.node(flight.node) {
            Node::Wrap { handle, .. } => handle.times().filter(|timing| took >= timing.over()),
            _ => None,
        };
        let Some(timing) = timing else {
            return;
        };
        let steps = flight.steps.take().unwrap_or_default();
        self.with_request(tree, id, |engine, walk| {
            let protocol = walk.origin.protocol;
            let client = engine.slot_of(walk.to).map(|(client, _)| client);
            let session = engine.clients.session(client);
            let texts = protocol.texts();
            let statement = texts.and_then(|texts| texts.shown(session, walk.request, walk.message));
            let mut scratch = [0; 250];
            let key = walk.key(&mut scratch);
            let all = steps.all.into_iter();
            timing.put(SlowRequest {
                number: 0,
                at: engine.unix(),
                listener: timing.listener,
                client: engine.address_of(walk.to),
                command: protocol.command_name(walk.request.command),
                class: walk.request.class,
                key: timing.shown(key),
                statement,
                outcome,
                took,
                weight: timing.every.get(),
                steps: all.map(|step| step.told(walk.tree)).collect(),
                has_more_steps: steps.has_more,
            });
        });
    }
}

impl NotedStep {
    /// The step with its server: the one that has replied, or the one that the failure names.
    fn told(self, tree: &Tree) -> StepTime {
        let Self { mut time, from, .. } = self;
        let members = tree.members();
        if let WaitedFor::Answer { server, .. } = &mut time.what {
            let address = server.take().map(|(_, address)| address);
            let is_it =
                |member: &&Arc<Member>| Some(member.id) == from || Some(&member.address) == address.as_ref();
            *server = match members.iter().find(is_it) {
                Some(member) => Some((member.pool.name.to_string(), member.address.clone())),
                // It is none any more.
                None => address.map(|address| (String::new(), address)),
            };
        }
        time
    }
}

/// The beginning of a text.
fn cut(text: &str) -> String {
    match text.len() > LONGEST {
        true => format!("{}…", &text[..text.floor_char_boundary(LONGEST)]),
        false => text.to_owned(),
    }
}
