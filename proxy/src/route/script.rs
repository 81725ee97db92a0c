//! Requests that are served in several steps: what a step asks, and what comes back.

use std::rc::Rc;

use proxima_wire::message::{Outcome, Parse, Parsed};

use super::{
    Answer, NodeId, Walk,
    flight::{MISPLACED, child_of},
    step::{refuse_several, single},
    tree::{Ask, Begin, Give, Node, Run, Script, ScriptRequest, Sent, Turn},
};
use crate::{
    engine::{Engine, FlightId, ReplyTo},
    protocol::{Failed, Message, StateSlot},
};

/// The error text for a reply that a route has made and the codec does not know.
const UNKNOWN: &str = "a route made an unknown reply";
/// The error text for a request whose value does not fit into memory.
const TOO_LARGE: &str = "the value is too large for this route";

/// The error text for a request that would hold more than there is room for.
const OUT_OF_MEMORY: Failed<'static> =
    Failed::here(Outcome::Overloaded, "out of memory for requests in steps");

/// A request that holds nothing any more, and waits for what it has asked for.
struct GivenUp;

impl Run for GivenUp {
    fn next(&mut self, _: &ScriptRequest<'_>, _: u32, _: &Answer<'_>) -> Turn {
        Turn::default()
    }
}

impl Engine {
    /// Begins a request that a script serves. It is not part of `walk`, which others would pay for.
    #[cold]
    pub(super) fn begin_script(
        &mut self,
        node: NodeId,
        handle: &dyn Script,
        children: &[NodeId],
        key: &[u8],
        walk: &Walk<'_>,
    ) {
        if let Some(why) = single(walk) {
            let text = refuse_several(handle.name(), why, walk);
            return self.fail(walk.to, &Failed::here(Outcome::LocalError, &text));
        }
        let asked = ScriptRequest {
            request: walk.request,
            message: walk.message,
            command: walk.origin.protocol.command_name(walk.request.command),
            key,
            unix: self.unix(),
            largest: self.limits.value_bytes,
            chance: self.random.bits(),
        };
        let begin = match handle.begin(&asked) {
            // A value of which only the head is here cannot be served in steps.
            Begin::Run(..) if walk.is_streamed() => {
                return self.fail(walk.to, &Failed::here(Outcome::Overloaded, TOO_LARGE));
            }
            begin => begin,
        };
        let child = |child: usize| children.get(child).copied();
        match begin {
            Begin::Pass(first) => {
                if let Some(first) = child(first) {
                    self.walk(first, walk);
                }
            }
            Begin::Send(sent) => {
                let mut to = walk.to;
                for Sent {
                    child: to_child,
                    head,
                } in sent
                {
                    let Some(node) = child(to_child) else { continue };
                    let walk = walk.to(std::mem::replace(&mut to, ReplyTo::Nobody));
                    match head {
                        Some(head) => self.walk_with_head(node, head, &walk),
                        None => self.walk(node, &walk),
                    }
                }
            }
            Begin::Fail(outcome, text) => self.fail(walk.to, &Failed::here(outcome, text)),
            Begin::Run(..) if self.router.flights.in_steps(0, 0) > self.room_in_steps() => {
                self.fail(walk.to, &OUT_OF_MEMORY);
            }
            Begin::Run(run, turn) => {
                let (id, flight) = self.router.flights.open(node, walk, 0);
                flight.message.extend_from_slice(walk.message);
                flight.run = Some(run);
                self.take_turn(id, turn, None);
            }
        }
    }

    /// An answer to something that a script has asked.
    pub(super) fn script_answered(&mut self, id: FlightId, number: u32, answer: &Answer<'_>) {
        let (unix, largest, chance) = (self.unix(), self.limits.value_bytes, self.random.bits());
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        let Some(mut run) = flight.run.take() else {
            return self.broken("a request in steps is answered within one of its steps");
        };
        let tree = Rc::clone(&flight.tree);
        let walk = flight.walk(&tree, ReplyTo::Nobody);
        let mut scratch = [0; 250];
        let asked = ScriptRequest {
            request: walk.request,
            message: walk.message,
            command: walk.origin.protocol.command_name(walk.request.command),
            key: walk.key(&mut scratch),
            unix,
            largest,
            chance,
        };
        let before = run.memory_bytes();
        let mut turn = run.next(&asked, number, answer);
        let after = run.memory_bytes();
        let in_steps = self.router.flights.in_steps(before, after);
        if after > before && in_steps > self.room_in_steps() {
            // What was read is forgotten at once. Its client waits until all that was asked for has come: the
            // next request would ask for as much again.
            self.router.flights.in_steps(after, 0);
            run = Box::new(GivenUp);
            turn.asks.clear();
        }
        if let Some(flight) = self.router.flights.get(id) {
            flight.run = Some(run);
        }
        self.take_turn(id, turn, Some(answer));
    }

    /// Gives the client what a step says, and asks what it asks. The request is over when nothing is awaited.
    fn take_turn(&mut self, id: FlightId, turn: Turn, answer: Option<&Answer<'_>>) {
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        flight.pending += turn.asks.iter().filter(|ask| ask.number.is_some()).count() as u32;
        if let Some(give) = turn.give {
            self.give_client(id, give, answer);
        }
        self.descend(|engine| turn.asks.into_iter().for_each(|ask| engine.ask(id, ask)));
        if let Some(flight) = self.router.flights.get(id)
            && flight.pending == 0
        {
            let parent = flight.parent;
            self.router.flights.close(id);
            // A script that ends without an answer was given up.
            self.fail(parent, &OUT_OF_MEMORY);
        }
    }

    /// Answers the client, who waits no longer.
    fn give_client(&mut self, id: FlightId, give: Give, answer: Option<&Answer<'_>>) {
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        let to = std::mem::replace(&mut flight.parent, ReplyTo::Nobody);
        match give {
            Give::This => {
                if let Some(answer) = answer {
                    self.give_whole(to, answer);
                }
            }
            Give::Kept(kept) => {
                if let Some(answer) = kept.worst() {
                    self.give_whole(to, &answer);
                }
            }
            Give::Made(bytes) => {
                let (protocol, command) = (flight.origin.protocol, flight.request.command);
                match protocol.reply(&StateSlot::NONE, &mut Parse::default(), command, &bytes) {
                    Parsed::Head(Message::Last(reply)) => {
                        self.give_whole(to, &Answer::Reply(&reply, &bytes));
                    }
                    _ => self.fail(to, &Failed::here(Outcome::LocalError, UNKNOWN)),
                }
            }
            Give::Miss => {
                let mut out = std::mem::take(&mut self.router.reply);
                let origin = flight.origin;
                let reply = origin
                    .protocol
                    .miss(origin.form, &flight.request, &flight.message, &mut out);
                self.pass_on_answer(to, &Answer::Reply(&reply, &out));
                out.clear();
                self.router.reply = out;
            }
            Give::Fail(outcome, text) => self.fail(to, &Failed::here(outcome, text)),
        }
    }

    /// Passes on an answer of any size.
    fn give_whole(&mut self, to: ReplyTo, answer: &Answer<'_>) {
        if let Answer::Reply(_, bytes) = answer
            && !self.takes_reply(to, bytes.len())
        {
            return self.fail(
                to,
                &Failed::here(Outcome::Overloaded, "out of memory for replies"),
            );
        }
        self.pass_on_answer(to, answer);
    }

    fn ask(&mut self, id: FlightId, ask: Ask) {
        let to = match ask.number {
            Some(number) => child_of(id, number as usize),
            None => ReplyTo::Nobody,
        };
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        let (tree, origin) = (Rc::clone(&flight.tree), flight.origin);
        let Node::Script { children, .. } = tree.node(flight.node) else {
            return self.broken(MISPLACED);
        };
        let Some(&child) = children.get(ask.child) else {
            return;
        };
        let Some(made) = ask.made else {
            return self.resend(id, child, to);
        };
        match origin.protocol.head(&made) {
            Parsed::Head(request) if request.len() == made.len() as u64 => {
                let walk = Walk {
                    tree: &tree,
                    origin,
                    request: &request,
                    message: &made,
                    to,
                };
                self.walk(child, &walk);
            }
            _ => {
                let text = "a route made this request unreadable";
                self.fail(to, &Failed::here(Outcome::LocalError, text));
            }
        }
    }
}
