//! The way up the tree: flights combine the answers of their children.

use std::{net::IpAddr, rc::Rc};

use proxima_wire::message::{Outcome, Reply};

use super::{
    Answer, Leaf, Node, NodeId, Tree, Wait, Walk,
    flight::{MISPLACED, child_of, is_good},
    step::pass_by_ejected,
    tree::{AttemptRecord, Watched, WatchedText},
};
use crate::{
    engine::{ClientId, Engine, FlightId, ReplyTo, Sleeper},
    protocol::{Failed, Fate, Retention},
};

/// A peer gets its answers whole.
const TOO_LARGE_FOR_PEER: Failed<'static> =
    Failed::here(Outcome::Overloaded, "this value is too large for a peer");

const TOO_LARGE_FOR_POOL: Failed<'static> = Failed::here(
    Outcome::Overloaded,
    "this answer is too large for the state of a pool",
);

const TOO_LARGE_FOR_LOGIN: Failed<'static> = Failed::here(
    Outcome::Overloaded,
    "what a server says of this login is too large",
);

/// A route that looks at values gets none that no client may store.
const TOO_LARGE_IN_STEPS: Failed<'static> =
    Failed::here(Outcome::Overloaded, "this value is too large for its route");

impl Engine {
    /// Takes the answer of child `child` of a flight.
    pub(crate) fn arrive(&mut self, id: FlightId, child: u32, answer: &Answer<'_>) {
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        flight.pending = flight.pending.saturating_sub(1);
        let tree = Rc::clone(&flight.tree);
        if tree.times() {
            self.note_arrival(&tree, id, child, answer);
        }
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        match tree.node(flight.node) {
            Node::Gather { wait, children, .. } => self.gathered(id, *wait, children.len(), answer),
            Node::Attempt { .. } => self.attempted(&tree, id, child, answer),
            Node::Script { .. } => self.script_answered(id, child, answer),
            Node::Wrap { .. } => self.unwrapped(&tree, id, answer),
            Node::Near(_) => self.near_fetched(id, answer),
            Node::Leaf(Leaf::Member(member)) => self.deleted(&tree, id, member, answer),
            Node::Choose { .. }
            | Node::ByClient { .. }
            | Node::Fan { .. }
            | Node::Copies(_)
            | Node::Leaf(_) => {
                self.router.flights.close(id);
                self.broken(MISPLACED);
            }
        }
    }

    fn gathered(&mut self, id: FlightId, wait: Wait, children: usize, answer: &Answer<'_>) {
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        let last = flight.pending == 0;
        if flight.done {
            if last {
                self.router.flights.close(id);
            }
            return;
        }
        let removes = wait == Wait::All && flight.removes();
        let (outcome, count) = match answer {
            Answer::Reply(reply, bytes) if removes => flight.keep_removed(reply, bytes),
            answer => (answer.outcome(), flight.answers.keep(answer)),
        };
        let ready = match wait {
            Wait::Fastest => is_good(outcome),
            Wait::Hit => outcome.is_hit(),
            Wait::Majority => count as usize > children / 2,
            _ => false,
        };
        if !ready && !last {
            return;
        }
        flight.done = true;
        let (parent, answers) = (flight.parent, std::mem::take(&mut flight.answers));
        let chosen = match wait {
            Wait::Fastest | Wait::Hit => answers.of(outcome),
            Wait::Majority if ready => answers.of(outcome),
            Wait::Majority => answers.most_frequent(),
            // What one of the children had was removed, whatever the others had.
            _ if removes && !answers.outcomes().any(|outcome| outcome.is_error()) => answers.best(),
            _ => answers.worst(),
        };
        if let Some(chosen) = chosen {
            self.pass_on_answer(parent, &chosen);
        }
        if let Some(flight) = self.router.flights.get(id) {
            flight.answers = answers;
            if last {
                self.router.flights.close(id);
            }
        }
    }

    fn attempted(&mut self, tree: &Rc<Tree>, id: FlightId, child: u32, answer: &Answer<'_>) {
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        let to = flight.request.is_dedicated.then_some(flight.parent);
        // What belongs to what a server keeps for its client is of no use elsewhere.
        let is_bound = to.is_some_and(|to| !answer.outcome().is_error() || !self.may_move(to));
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        let Node::Attempt { handle, children } = tree.node(flight.node) else {
            return self.broken(MISPLACED);
        };
        let has_several_keys = !flight.request.more_keys.is_empty();
        let walk = flight.walk(tree, ReplyTo::Nobody);
        let mut scratch = [0; 250];
        let query = walk.query(walk.key(&mut scratch), self.facts.start + self.now);
        let query = query.of(&walk, &self.clients);
        let class = query.class;
        let missed;
        let answer = match answer {
            // The protocol knows better than the reply's form whether anything was there.
            Answer::Reply(reply, bytes) if handle.judges_keys(&query) && walk.has_missed(reply, bytes) => {
                missed = Reply {
                    outcome: Outcome::NotFound,
                    ..**reply
                };
                &Answer::Reply(&missed, bytes)
            }
            answer => answer,
        };
        let choices = walk.children(children, self.copies.snapshot());
        let mut tried = AttemptRecord {
            child: child as usize,
            ..flight.tried
        };
        let next = handle
            .next(&query, &mut tried, &choices, answer)
            // A request that has begun to stream cannot be sent again.
            .filter(|_| !walk.is_streamed() && !is_bound)
            // What a server may have executed already must not be executed by another one as well.
            .filter(|_| match answer.fate() {
                Fate::Unsent => true,
                Fate::Lost => query.protocol.may_repeat(query.command),
                Fate::Blamed => false,
            })
            // Two members that redirect to each other do not do so for ever.
            .filter(|_| (tried.count as usize) < children.len());
        if let Some(next) = next {
            tried.add(next);
            pass_by_ejected(&**handle, &query, &mut tried, &choices);
        }
        if answer.outcome().is_error() {
            self.metrics.failover.add(&handle.take_counts());
        }
        if handle.best_on_failure() {
            flight.answers.keep(answer);
        }
        // Keys that went one way to this child may go several ways from the next one.
        let goes_on = next.is_some() && (!has_several_keys || self.stays_whole_at(tree, id, children, tried));
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        if goes_on && let Some(&node) = children.get(tried.child) {
            flight.pending = 1;
            flight.tried = tried;
            flight.request.is_again = true;
            self.metrics.failovers += 1;
            handle.goes_on_behind(class, answer);
            return self.resend(id, node, child_of(id, tried.child));
        }
        let (parent, answers) = (flight.parent, std::mem::take(&mut flight.answers));
        self.router.flights.close(id);
        // There are no kept answers unless the handle asks for the best of all.
        self.pass_on_answer(parent, &answers.best().unwrap_or(*answer));
    }

    /// May the request whose answer goes there be given to another server's connection? Its client has none
    /// for itself, and no server keeps anything for it.
    fn may_move(&self, to: ReplyTo) -> bool {
        let client = self.slot_of(to).map(|(client, _)| client);
        client.is_some_and(|client| {
            self.clients.own_lane(client) == Some(None)
                && self.clients.retention(client) == Some(Retention::Clean)
        })
    }

    /// Do the keys of a flight's request go one way from the child that is to be tried?
    fn stays_whole_at(
        &mut self,
        tree: &Rc<Tree>,
        id: FlightId,
        children: &[NodeId],
        tried: AttemptRecord,
    ) -> bool {
        let stays = children
            .get(tried.child)
            .and_then(|&child| self.with_request(tree, id, |engine, walk| engine.stays_whole(child, walk)));
        stays.unwrap_or(false)
    }

    /// Lets `look` see the request of a flight as it walks. `None`: the flight has ended.
    pub(super) fn with_request<T>(
        &mut self,
        tree: &Rc<Tree>,
        id: FlightId,
        look: impl FnOnce(&mut Self, &Walk<'_>) -> T,
    ) -> Option<T> {
        let flight = self.router.flights.get(id)?;
        let (request, origin, to) = (flight.request, flight.origin, flight.parent);
        let message = std::mem::take(&mut flight.message);
        let walk = Walk {
            tree,
            origin,
            request: &request,
            message: &message,
            to,
        };
        let seen = look(self, &walk);
        if let Some(flight) = self.router.flights.get(id) {
            flight.message = message;
        }
        Some(seen)
    }

    fn unwrapped(&mut self, tree: &Rc<Tree>, id: FlightId, answer: &Answer<'_>) {
        let (client, text) = (self.client_of(tree, id), self.text_of(tree, id));
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        let Node::Wrap { handle, .. } = tree.node(flight.node) else {
            return self.broken(MISPLACED);
        };
        let next = handle.left();
        let walk = flight.walk(tree, ReplyTo::Nobody);
        let mut scratch = [0; 250];
        let watched = Watched {
            key: walk.key(&mut scratch),
            command: walk.origin.protocol.command_name(walk.request.command),
            class: walk.request.class,
            client,
            took: self.now - flight.until,
            text,
        };
        let held = handle.reply(&watched, answer);
        if tree.times() {
            self.end_timed(tree, id, answer.outcome());
        }
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        let until = flight.until.max(self.now + held);
        if until > self.now {
            flight.answers.keep(answer);
            self.timers.wake(until, Sleeper::Flight(id));
        } else {
            self.leave_wrap(id, handle.changes_key(), answer);
        }
        if let Some(next) = next {
            self.release_queued(next);
        }
    }

    /// The address of the client whose request a wrap's flight is, if the wrap names it.
    fn client_of(&self, tree: &Tree, id: FlightId) -> Option<IpAddr> {
        let flight = self.router.flights.peek(id)?;
        match tree.node(flight.node) {
            Node::Wrap { handle, .. } if handle.names_client() => self.address_of(flight.parent),
            _ => None,
        }
    }

    /// What the request of a wrap's flight says, if that is a text and the wrap reads those.
    fn text_of(&mut self, tree: &Rc<Tree>, id: FlightId) -> Option<WatchedText> {
        let flight = self.router.flights.get(id)?;
        let Node::Wrap { handle, .. } = tree.node(flight.node) else {
            return None;
        };
        let texts = flight.origin.protocol.texts().filter(|_| handle.reads_texts())?;
        self.with_request(tree, id, |engine, walk| {
            let client = engine.slot_of(walk.to).map(|(client, _)| client);
            let session = engine.clients.session(client);
            let text = texts.shown(session, walk.request, walk.message);
            WatchedText {
                text: text.unwrap_or_default(),
                member: engine.replier(),
            }
        })
    }

    /// Passes on the answer that a flight has held back.
    pub(super) fn pass_on_held(&mut self, id: FlightId) {
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        let answers = std::mem::take(&mut flight.answers);
        if let Some(answer) = answers.worst() {
            self.leave_wrap(id, false, &answer);
        }
    }

    /// Ends the flight of a wrap with this answer.
    fn leave_wrap(&mut self, id: FlightId, changes_key: bool, answer: &Answer<'_>) {
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        let (parent, request, protocol) = (flight.parent, flight.request, flight.origin.protocol);
        let message = std::mem::take(&mut flight.message);
        self.router.flights.close(id);
        let Answer::Reply(reply, bytes) = answer else {
            return self.pass_on_answer(parent, answer);
        };
        if !changes_key {
            return self.pass_on_answer(parent, answer);
        }
        // The key as the client wrote it, encoded or not.
        let mut renamed = Vec::with_capacity(bytes.len() + 16);
        protocol.rewrite_reply_key(request.command, request.key.of(&message), bytes, &mut renamed);
        let head = (i64::from(reply.head) + renamed.len() as i64 - bytes.len() as i64).max(0) as u32;
        self.pass_on_answer(parent, &Answer::Reply(&Reply { head, ..**reply }, &renamed));
    }

    /// Finds the client that gets a large reply as it comes, and ends the flights between. `head` is the
    /// reply's first line, which a wrap may change. `None`: no client gets it.
    pub(crate) fn give_large_reply(
        &mut self,
        mut to: ReplyTo,
        head: &mut Vec<u8>,
    ) -> Option<(ClientId, u32)> {
        loop {
            let (id, child) = match to {
                ReplyTo::Client { client: id, seq } => return Some((id, seq)),
                ReplyTo::Pool { question } => {
                    self.pool_answered(question, &Answer::Failed(TOO_LARGE_FOR_POOL));
                    return None;
                }
                ReplyTo::Lane { .. } | ReplyTo::Nobody => return None,
                ReplyTo::Admission { .. } => {
                    self.fail(to, &TOO_LARGE_FOR_LOGIN);
                    return None;
                }
                ReplyTo::Peer { .. } => {
                    self.fail(to, &TOO_LARGE_FOR_PEER);
                    return None;
                }
                ReplyTo::Operation { operation, child } => {
                    to = self.pass_decided(operation, child, head)?;
                    continue;
                }
                ReplyTo::Flight { flight: id, child } => {
                    if self.router.runs_script(id) {
                        self.fail(to, &TOO_LARGE_IN_STEPS);
                        return None;
                    }
                    (id, child)
                }
            };
            if self.router.fetches(id).is_some() {
                to = self.fetched_too_much(id)?;
                continue;
            }
            let tree = Rc::clone(&self.router.flights.peek(id)?.tree);
            let (client, text) = (self.client_of(&tree, id), self.text_of(&tree, id));
            // It is seen that there is a value, and nothing of it.
            let seen = Reply::new(Outcome::Found, 0);
            let seen = Answer::Reply(&seen, b"");
            if tree.times() {
                self.note_arrival(&tree, id, child, &seen);
                self.end_timed(&tree, id, seen.outcome());
            }
            let flight = self.router.flights.get(id)?;
            let (parent, request) = (flight.parent, flight.request);
            let protocol = flight.origin.protocol;
            flight.pending = flight.pending.saturating_sub(1);
            let last = flight.pending == 0;
            if std::mem::replace(&mut flight.done, true) {
                if last {
                    self.router.flights.close(id);
                }
                return None;
            }
            let mut next = None;
            if let Node::Wrap { handle, .. } = tree.node(flight.node) {
                next = handle.left();
                let watched = Watched {
                    key: request.key.of(&flight.message),
                    command: protocol.command_name(request.command),
                    class: request.class,
                    client,
                    took: self.now - flight.until,
                    text,
                };
                handle.reply(&watched, &seen);
            }
            match tree.node(flight.node) {
                // The fastest rule takes this reply. Other rules would have to hold it, so the first large
                // reply stands for all.
                Node::Gather { .. } => {
                    if last {
                        self.router.flights.close(id);
                    }
                }
                Node::Wrap { handle, .. } if handle.changes_key() => {
                    let message = std::mem::take(&mut flight.message);
                    let line = std::mem::take(head);
                    protocol.rewrite_reply_key(request.command, request.key.of(&message), &line, head);
                    self.router.flights.close(id);
                }
                _ => self.router.flights.close(id),
            }
            if let Some(next) = next {
                self.release_queued(next);
            }
            to = parent;
        }
    }
}
