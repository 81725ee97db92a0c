//! From replies up the tree: what the flights do with what their children have answered.

use std::rc::Rc;

use proxima_wire::message::{Outcome, Reply};

use super::{Answer, Children, Node, Query, ReplyTo, Tree, Wait, flight::is_good};
use crate::engine::Engine;

impl Engine {
    /// A reply for child `child` of a flight.
    pub(crate) fn arrived(&mut self, index: u32, generation: u32, child: u32, answer: &Answer<'_>) {
        let Some(flight) = self.flights.get(index, generation) else {
            return;
        };
        flight.pending = flight.pending.saturating_sub(1);
        let tree = Rc::clone(&flight.tree);
        match tree.node(flight.node) {
            Node::Gather { wait, children, .. } => {
                self.gathered(index, generation, *wait, children.len(), answer)
            }
            Node::Attempt { .. } => self.attempted(&tree, index, generation, child as usize, answer),
            Node::Copies(copies) => self.copied(&tree, copies, index, generation, child as usize, answer),
            Node::Wrap { .. } => self.unwrapped(&tree, index, generation, answer),
            Node::Choose { .. } | Node::Leaf(_) => self.flights.close(index),
        }
    }

    fn gathered(&mut self, index: u32, generation: u32, wait: Wait, children: usize, answer: &Answer<'_>) {
        let Some(flight) = self.flights.get(index, generation) else {
            return;
        };
        let last = flight.pending == 0;
        if flight.done {
            if last {
                self.flights.close(index);
            }
            return;
        }
        let (outcome, count) = (answer.outcome(), flight.answers.keep(answer));
        let ready = match wait {
            Wait::Fastest => is_good(outcome),
            Wait::Majority => count as usize > children / 2,
            _ => false,
        };
        if !ready && !last {
            return;
        }
        flight.done = true;
        let (parent, answers) = (flight.parent, std::mem::take(&mut flight.answers));
        let chosen = match wait {
            Wait::Fastest => answers.of(outcome),
            Wait::Majority if ready => answers.of(outcome),
            Wait::Majority => answers.most_frequent(),
            _ => answers.worst(),
        };
        if let Some(chosen) = chosen {
            self.pass_on_answer(parent, &chosen);
        }
        if let Some(flight) = self.flights.get(index, generation) {
            flight.answers = answers;
            if last {
                self.flights.close(index);
            }
        }
    }

    fn attempted(&mut self, tree: &Rc<Tree>, index: u32, generation: u32, tried: usize, answer: &Answer<'_>) {
        let Some(flight) = self.flights.get(index, generation) else {
            return;
        };
        let Node::Attempt { handle, children } = tree.node(flight.node) else {
            return;
        };
        let (request, node, origin) = (flight.request, flight.node, flight.origin);
        // What has begun to stream cannot be sent again.
        let whole = flight.message.len() as u64 >= request.len();
        let mut scratch = [0; 250];
        let key = origin.dialect.key(&request, &flight.message, &mut scratch);
        let query = Query {
            command: request.command,
            class: request.class,
            key,
            dialect: origin.dialect,
        };
        let choices = Children {
            tree,
            ids: children,
            views: &self.views,
            class: request.class,
        };
        let mut next = handle
            .next(&query, tried, children.len(), answer.outcome())
            // What belongs to one connection is of no use on another.
            .filter(|_| whole && !request.is_dedicated);
        while let Some(child) = next
            && !choices.is_up(child)
            && let Some(after) = handle.next(&query, child, children.len(), Outcome::Ejected)
        {
            next = Some(after);
        }
        if handle.best_on_failure() {
            flight.answers.keep(answer);
        }
        if let Some(child) = next {
            flight.pending = 1;
            // A copy: the reply may come within the walk, and the flight needs its message for it.
            let mut message = std::mem::take(&mut self.resend);
            message.extend_from_slice(&flight.message);
            self.figures.failovers += 1;
            self.try_child(tree, node, index, child, origin, &request, &message);
            message.clear();
            self.resend = message;
            return;
        }
        let (parent, answers) = (flight.parent, std::mem::take(&mut flight.answers));
        self.flights.close(index);
        // Empty, unless the best of all is asked for.
        self.pass_on_answer(parent, &answers.best().unwrap_or(*answer));
    }

    fn unwrapped(&mut self, tree: &Rc<Tree>, index: u32, generation: u32, answer: &Answer<'_>) {
        let Some(flight) = self.flights.get(index, generation) else {
            return;
        };
        let Node::Wrap { handle, .. } = tree.node(flight.node) else {
            return;
        };
        let (parent, request, dialect) = (flight.parent, flight.request, flight.origin.dialect);
        let message = std::mem::take(&mut flight.message);
        let mut scratch = [0; 250];
        let key = dialect.key(&request, &message, &mut scratch);
        handle.reply(key, dialect.command_name(request.command), answer.outcome());
        self.flights.close(index);
        let Answer::Reply(reply, bytes) = answer else {
            return self.pass_on_answer(parent, answer);
        };
        if !handle.changes_key() {
            return self.deliver(parent, reply, bytes);
        }
        // The key as the client wrote it, encoded or not.
        let mut renamed = Vec::with_capacity(bytes.len() + 16);
        dialect.rewrite_reply_key(request.command, request.key.of(&message), bytes, &mut renamed);
        let head = (i64::from(reply.head) + renamed.len() as i64 - bytes.len() as i64).max(0) as u32;
        self.deliver(parent, &Reply { head, ..**reply }, &renamed);
    }

    /// Who gets a large reply as it comes? Ends the flights between. `head` is its first line, which a wrap may change.
    pub(crate) fn claim(&mut self, mut to: ReplyTo, head: &mut Vec<u8>) -> Option<(u32, u32, u32)> {
        loop {
            let (index, generation, child) = match to {
                ReplyTo::Client {
                    index,
                    generation,
                    seq,
                } => return Some((index, generation, seq)),
                ReplyTo::Nobody => return None,
                ReplyTo::Flight {
                    index,
                    generation,
                    child,
                } => (index, generation, child),
            };
            let flight = self.flights.get(index, generation)?;
            let (tree, parent, request) = (Rc::clone(&flight.tree), flight.parent, flight.request);
            let dialect = flight.origin.dialect;
            flight.pending = flight.pending.saturating_sub(1);
            let last = flight.pending == 0;
            if std::mem::replace(&mut flight.done, true) {
                if last {
                    self.flights.close(index);
                }
                return None;
            }
            match tree.node(flight.node) {
                // Fastest takes it; other rules would have to hold it, so the first large reply stands for all.
                Node::Gather { .. } => {
                    if last {
                        self.flights.close(index);
                    }
                }
                Node::Copies(copies) => {
                    match self.pass_decided(&tree, copies, (index, generation, child), head) {
                        Some(parent) => {
                            to = parent;
                            continue;
                        }
                        None => return None,
                    }
                }
                Node::Wrap { handle, .. } if handle.changes_key() => {
                    let message = std::mem::take(&mut flight.message);
                    let line = std::mem::take(head);
                    dialect.rewrite_reply_key(request.command, request.key.of(&message), &line, head);
                    self.flights.close(index);
                }
                _ => self.flights.close(index),
            }
            to = parent;
        }
    }
}
