//! What timed requests wait for on their way: noted as each wait ends, at the flight of the node that times them.
//! A tree that times no requests is asked for that flag, where a flight is answered, and nothing else happens.
//!
//! Invariant: an answer that goes up through several flights is noted once, at the lowest.

use std::rc::Rc;

use proxima_wire::message::Outcome;

use super::{
    Answer, Node, NodeId, Tree, Walk,
    slow_requests::{SlowRequest, StepTime, WaitedFor},
};
use crate::{
    engine::{Engine, FlightId, OperationId, ReplyTo},
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
    /// Where the request went; `None`: the answer says it.
    node: Option<NodeId>,
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
            node: None,
        });
    }

    /// Notes the answer of child `child` of a flight of this tree, which times requests.
    #[cold]
    pub(super) fn note_arrival(&mut self, tree: &Tree, id: FlightId, child: u32, answer: &Answer<'_>) {
        let Some(flight) = self.router.flights.peek(id) else {
            return;
        };
        let at = |children: &[NodeId]| children.get(child as usize).copied();
        let (node, is_beside) = match tree.node(flight.node) {
            Node::Gather { children, .. } => (at(children), true),
            Node::Attempt { children, .. } | Node::Script { children, .. } => (at(children), false),
            Node::Wrap { child, .. } => (Some(*child), false),
            Node::Near(near) => (Some(near.child), false),
            Node::Leaf(_) => (Some(flight.node), false),
            Node::Choose { .. } | Node::ByClient { .. } | Node::Fan { .. } | Node::Copies(_) => (None, false),
        };
        let (to, waiter) = (ReplyTo::Flight { flight: id, child }, flight.parent);
        self.note_answer(to, waiter, (node, is_beside), answer);
    }

    /// Notes the answer of a copy, for an operation in a tree that times requests.
    #[cold]
    pub(crate) fn note_copy(
        &mut self,
        id: OperationId,
        child: u32,
        node: Option<NodeId>,
        answer: &Answer<'_>,
    ) {
        let Some((waiter, _)) = self.copies.parent_of(id) else {
            return;
        };
        let to = ReplyTo::Operation { operation: id, child };
        self.note_answer(to, waiter, (node, true), answer);
    }

    /// Notes the answer that has come `to` one whose own reply goes to `waiter`, and which has asked this node,
    /// perhaps beside others.
    fn note_answer(
        &mut self,
        to: ReplyTo,
        waiter: ReplyTo,
        (node, is_beside): (Option<NodeId>, bool),
        answer: &Answer<'_>,
    ) {
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
        let node = node.filter(|_| server.is_none());
        let outcome = answer.outcome();
        steps.note(NotedStep {
            time: StepTime {
                what: WaitedFor::Answer { server, outcome, why },
                begun,
                took: end - begun,
            },
            waiter,
            node,
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
                listener: 0,
                client: engine.address_of(walk.to),
                command: protocol.command_name(walk.request.command),
                class: walk.request.class,
                key: timing.shown(key),
                statement,
                outcome,
                took,
                weight: 1,
                steps: all.map(|step| engine.told(step, walk, key)).collect(),
                has_more_steps: steps.has_more,
            });
        });
    }

    /// A step with the server that was asked: the one that the answer names, or the one that the key leads to.
    fn told(&mut self, step: NotedStep, walk: &Walk<'_>, key: &[u8]) -> StepTime {
        let NotedStep { mut time, node, .. } = step;
        if let WaitedFor::Answer { server, .. } = &mut time.what {
            let led = node.and_then(|node| self.first_member(node, walk, key));
            if let Some(member) = led {
                *server = Some((member.pool.name.to_string(), member.address.clone()));
            } else if let Some((pool, address)) = server {
                let members = walk.tree.members();
                let its = members.iter().find(|member| member.address == *address);
                *pool = its.map_or_else(String::new, |member| member.pool.name.to_string());
            }
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
