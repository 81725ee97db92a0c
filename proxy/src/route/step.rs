//! The four shapes at work. A walk goes down choose nodes until it ends at a leaf, which costs no state at all, or at a
//! node that must wait for replies, which opens a flight.

use std::rc::Rc;

use proxima_wire::message::{Outcome, Reply, Request};

use super::{Children, Leaf, Node, NodeId, Query, ReplyTo, Tree, Wait, flight::is_good, tree::Wrapped};
use crate::{
    dialect::{Change, Dialect},
    engine::Engine,
    near::embedded,
    timer::Timer,
};

/// Where a request came from: what every step of its walk needs and none changes.
#[derive(Clone, Copy)]
pub(super) struct Origin {
    pub(super) listener: u16,
    pub(super) dialect: &'static dyn Dialect,
}

impl Engine {
    /// Walks `tree` from `node` with a request; its reply will come for `to`.
    #[inline]
    #[allow(clippy::too_many_arguments)] // a request, its origin and its destination: grouping them costs the hot path a copy
    pub(crate) fn dispatch(
        &mut self,
        tree: &Rc<Tree>,
        node: NodeId,
        listener: u16,
        dialect: &'static dyn Dialect,
        request: &Request,
        message: &[u8],
        to: ReplyTo,
    ) {
        self.walk(tree, node, Origin { listener, dialect }, request, message, to);
    }

    pub(super) fn walk(
        &mut self,
        tree: &Rc<Tree>,
        mut node: NodeId,
        origin: Origin,
        request: &Request,
        message: &[u8],
        to: ReplyTo,
    ) {
        let mut decoded;
        let key = if request.base64_key {
            decoded = [0; 250];
            origin.dialect.key(request, message, &mut decoded)
        } else {
            request.key.of(message)
        };
        let query = Query {
            command: request.command,
            class: request.class,
            key,
            dialect: origin.dialect,
        };
        loop {
            match tree.node(node) {
                Node::Choose { handle, children } => {
                    let choices = Children {
                        tree,
                        ids: children,
                        views: &self.views,
                        class: request.class,
                    };
                    match children.get(handle.choose(&query, &choices, &mut self.random)) {
                        Some(&child) => node = child,
                        None => {
                            let text = format!("{} has no child for this request", handle.name());
                            return self.deliver_error(to, origin.dialect, Outcome::LocalError, &text);
                        }
                    }
                }
                Node::Leaf(leaf) => return self.leaf(leaf, origin, request, message, to),
                Node::Copies(copies) => {
                    return self.copies(tree, node, copies, origin.listener, request, message, to);
                }
                Node::Gather { wait, children, .. } => {
                    return self.gather(tree, node, *wait, children, origin, request, message, to);
                }
                Node::Attempt { handle, children } => {
                    let choices = Children {
                        tree,
                        ids: children,
                        views: &self.views,
                        class: request.class,
                    };
                    // Ejected children need no flight to be passed by.
                    let mut first = 0;
                    while !choices.is_up(first)
                        && let Some(next) = handle.next(&query, first, children.len(), Outcome::Ejected)
                    {
                        first = next;
                    }
                    return self.attempt(tree, node, first, origin, request, message, to);
                }
                Node::Wrap { handle, child } => {
                    let wrapped = handle.request(request, message, &query, &mut self.random);
                    match wrapped {
                        Wrapped::Pass => node = *child,
                        other => return self.wrap(tree, node, *child, other, origin, request, message, to),
                    }
                }
            }
        }
    }

    #[inline]
    fn leaf(&mut self, leaf: &Leaf, origin: Origin, request: &Request, message: &[u8], to: ReplyTo) {
        match leaf {
            Leaf::Member(member) => self.send(member, request, message, to),
            Leaf::Embedded => {
                if (message.len() as u64) < request.len() {
                    let text = "object too large for cache";
                    return self.deliver_error(to, origin.dialect, Outcome::RemoteError, text);
                }
                let mut out = std::mem::take(&mut self.scratch_reply);
                let context = self.store_context();
                let outcome = embedded::answer(&self.store, &context, request, message, &mut out);
                let trailer = if out.ends_with(b"END\r\n") { 5 } else { 0 };
                let reply = Reply {
                    outcome,
                    head: out.len() as u32,
                    body: 0,
                    trailer,
                };
                self.deliver(to, &reply, &out);
                out.clear();
                self.scratch_reply = out;
            }
            Leaf::Null => {
                let mut out = std::mem::take(&mut self.scratch_reply);
                let outcome = origin.dialect.miss(request, message, &mut out);
                let trailer = if out == b"END\r\n" { 5 } else { 0 };
                self.deliver(
                    to,
                    &Reply {
                        outcome,
                        head: out.len() as u32,
                        body: 0,
                        trailer,
                    },
                    &out,
                );
                out.clear();
                self.scratch_reply = out;
            }
            Leaf::Error(text) => self.deliver_error(to, origin.dialect, Outcome::LocalError, text),
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn gather(
        &mut self,
        tree: &Rc<Tree>,
        node: NodeId,
        wait: Wait,
        children: &[NodeId],
        origin: Origin,
        request: &Request,
        message: &[u8],
        to: ReplyTo,
    ) {
        match wait {
            Wait::Initial => {
                for (number, &child) in children.iter().enumerate() {
                    let to = if number == 0 { to } else { ReplyTo::Nobody };
                    self.walk(tree, child, origin, request, message, to);
                }
            }
            Wait::None => {
                for &child in children {
                    self.walk(tree, child, origin, request, message, ReplyTo::Nobody);
                }
                self.leaf(&Leaf::Null, origin, request, message, to);
            }
            Wait::All | Wait::Majority | Wait::Fastest => {
                let pending = children.len() as u32;
                let (flight, _) =
                    self.flights
                        .open(to, Rc::clone(tree), node, origin.listener, request, pending);
                for (number, &child) in children.iter().enumerate() {
                    let to = self.flights.child(flight, number);
                    self.walk(tree, child, origin, request, message, to);
                }
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn attempt(
        &mut self,
        tree: &Rc<Tree>,
        node: NodeId,
        child: usize,
        origin: Origin,
        request: &Request,
        message: &[u8],
        to: ReplyTo,
    ) {
        let (index, flight) = self
            .flights
            .open(to, Rc::clone(tree), node, origin.listener, request, 1);
        flight.message.extend_from_slice(message);
        self.try_child(tree, node, index, child, origin, request, message);
    }

    #[allow(clippy::too_many_arguments)]
    fn try_child(
        &mut self,
        tree: &Rc<Tree>,
        node: NodeId,
        flight: u32,
        child: usize,
        origin: Origin,
        request: &Request,
        message: &[u8],
    ) {
        let Node::Attempt { handle, children } = tree.node(node) else {
            return;
        };
        let Some(&next) = children.get(child) else { return };
        let to = self.flights.child(flight, child);
        match handle.ttl(child, request.class) {
            Some(ttl) => self.walk_changed(
                tree,
                next,
                Change {
                    key: None,
                    ttl: Some(ttl),
                },
                origin,
                request,
                message,
                to,
            ),
            None => self.walk(tree, next, origin, request, message, to),
        }
    }

    /// Goes on with a changed request.
    #[allow(clippy::too_many_arguments)]
    fn walk_changed(
        &mut self,
        tree: &Rc<Tree>,
        node: NodeId,
        change: Change<'_>,
        origin: Origin,
        request: &Request,
        message: &[u8],
        to: ReplyTo,
    ) {
        let mut changed = Vec::with_capacity(message.len() + 32);
        if !origin.dialect.rewrite(request, message, &change, &mut changed) {
            let text = "a route made this request unreadable";
            return self.deliver_error(to, origin.dialect, Outcome::LocalError, text);
        }
        changed.extend_from_slice(message.get(request.head as usize..).unwrap_or_default());
        match origin.dialect.request(&changed, u64::MAX) {
            proxima_wire::message::Parsed::Head(request) => {
                self.walk(tree, node, origin, &request, &changed, to);
            }
            _ => self.deliver_error(
                to,
                origin.dialect,
                Outcome::LocalError,
                "a route made this request unreadable",
            ),
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn wrap(
        &mut self,
        tree: &Rc<Tree>,
        node: NodeId,
        child: NodeId,
        wrapped: Wrapped,
        origin: Origin,
        request: &Request,
        message: &[u8],
        to: ReplyTo,
    ) {
        match wrapped {
            Wrapped::Pass => self.walk(tree, child, origin, request, message, to),
            Wrapped::Fail(outcome, text) => self.deliver_error(to, origin.dialect, outcome, &text),
            Wrapped::Ttl(ttl) => {
                self.walk_changed(
                    tree,
                    child,
                    Change {
                        key: None,
                        ttl: Some(ttl),
                    },
                    origin,
                    request,
                    message,
                    to,
                );
            }
            Wrapped::Key(key) => {
                let to = self.watch(tree, node, origin, request, message, to);
                self.walk_changed(
                    tree,
                    child,
                    Change {
                        key: Some(&key),
                        ttl: None,
                    },
                    origin,
                    request,
                    message,
                    to,
                );
            }
            Wrapped::Watch => {
                let to = self.watch(tree, node, origin, request, message, to);
                self.walk(tree, child, origin, request, message, to);
            }
            // The body of a streamed request is already coming: it cannot be held back.
            Wrapped::Delay(_) if (message.len() as u64) < request.len() => {
                self.walk(tree, child, origin, request, message, to);
            }
            Wrapped::Delay(micros) => {
                let ReplyTo::Flight {
                    index, generation, ..
                } = self.watch(tree, node, origin, request, message, to)
                else {
                    return;
                };
                self.timers.push(Timer {
                    due: self.now.saturating_add(micros),
                    flight: index,
                    generation,
                });
            }
        }
    }

    /// A flight that sees the reply on its way back.
    fn watch(
        &mut self,
        tree: &Rc<Tree>,
        node: NodeId,
        origin: Origin,
        request: &Request,
        message: &[u8],
        to: ReplyTo,
    ) -> ReplyTo {
        let (index, flight) = self
            .flights
            .open(to, Rc::clone(tree), node, origin.listener, request, 1);
        flight.message.extend_from_slice(message);
        self.flights.child(index, 0)
    }

    /// Requests whose time has come.
    pub fn run_timers(&mut self) {
        while let Some(timer) = self.timers.peek().copied().filter(|timer| timer.due <= self.now) {
            self.timers.pop();
            let Some(flight) = self.flights.get(timer.flight, timer.generation) else {
                continue;
            };
            let (tree, node, request, listener) = (
                Rc::clone(&flight.tree),
                flight.node,
                flight.request,
                flight.listener,
            );
            let child = match tree.node(node) {
                Node::Wrap { child, .. } => child,
                Node::Copies(_) => {
                    self.find_home(timer.flight, timer.generation);
                    continue;
                }
                _ => continue,
            };
            // A copy: the reply may come within the walk, and the flight needs its message for it.
            let mut message = std::mem::take(&mut self.resend);
            message.extend_from_slice(&flight.message);
            let to = self.flights.child(timer.flight, 0);
            let origin = Origin {
                listener,
                dialect: tree.dialect,
            };
            self.walk(&tree, *child, origin, &request, &message, to);
            message.clear();
            self.resend = message;
        }
    }

    /// A reply for child `child` of a flight.
    pub(crate) fn arrived(&mut self, index: u32, generation: u32, child: u32, reply: &Reply, bytes: &[u8]) {
        let Some(flight) = self.flights.get(index, generation) else {
            return;
        };
        flight.pending = flight.pending.saturating_sub(1);
        let tree = Rc::clone(&flight.tree);
        match tree.node(flight.node) {
            Node::Gather { wait, children, .. } => {
                self.gathered(index, generation, *wait, children.len(), reply, bytes)
            }
            Node::Attempt { .. } => self.attempted(&tree, index, generation, child as usize, reply, bytes),
            Node::Copies(copies) => self.copied(copies, index, generation, child as usize, reply, bytes),
            Node::Wrap { .. } => self.unwrapped(&tree, index, generation, reply, bytes),
            Node::Choose { .. } | Node::Leaf(_) => self.flights.close(index),
        }
    }

    fn gathered(
        &mut self,
        index: u32,
        generation: u32,
        wait: Wait,
        children: usize,
        reply: &Reply,
        bytes: &[u8],
    ) {
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
        let count = flight.keep(reply, bytes);
        let ready = match wait {
            Wait::Fastest => is_good(reply.outcome),
            Wait::Majority => count as usize > children / 2,
            _ => false,
        };
        let chosen = match wait {
            _ if !ready && !last => return,
            Wait::Fastest | Wait::Majority if ready => flight.pick(|a, _| a.reply.outcome == reply.outcome),
            Wait::Fastest => flight.pick(|a, _| a.reply.outcome == reply.outcome),
            Wait::Majority => flight.most_frequent(),
            _ => flight.worst(),
        };
        flight.done = true;
        let parent = flight.parent;
        let kept = std::mem::take(&mut flight.kept);
        if let Some(chosen) = chosen {
            self.deliver(
                parent,
                &chosen.reply,
                kept.get(chosen.start..chosen.end).unwrap_or_default(),
            );
        }
        match self.flights.get(index, generation) {
            Some(flight) if !last => flight.kept = kept,
            Some(flight) => {
                flight.kept = kept;
                self.flights.close(index);
            }
            None => {}
        }
    }

    fn attempted(
        &mut self,
        tree: &Rc<Tree>,
        index: u32,
        generation: u32,
        tried: usize,
        reply: &Reply,
        bytes: &[u8],
    ) {
        let Some(flight) = self.flights.get(index, generation) else {
            return;
        };
        let Node::Attempt { handle, children } = tree.node(flight.node) else {
            return;
        };
        let (request, node, listener) = (flight.request, flight.node, flight.listener);
        // What has begun to stream cannot be sent again.
        let whole = flight.message.len() as u64 >= request.len();
        let mut scratch = [0; 250];
        let key = tree.dialect.key(&request, &flight.message, &mut scratch);
        let query = Query {
            command: request.command,
            class: request.class,
            key,
            dialect: tree.dialect,
        };
        let choices = Children {
            tree,
            ids: children,
            views: &self.views,
            class: request.class,
        };
        let mut next = handle
            .next(&query, tried, children.len(), reply.outcome)
            .filter(|_| whole);
        while let Some(child) = next
            && !choices.is_up(child)
            && let Some(after) = handle.next(&query, child, children.len(), Outcome::Ejected)
        {
            next = Some(after);
        }
        if handle.best_on_failure() {
            flight.keep(reply, bytes);
        }
        if let Some(child) = next {
            flight.pending = 1;
            // A copy: the reply may come within the walk, and the flight needs its message for it.
            let mut message = std::mem::take(&mut self.resend);
            message.extend_from_slice(&flight.message);
            let origin = Origin {
                listener,
                dialect: tree.dialect,
            };
            self.figures.failovers += 1;
            self.try_child(tree, node, index, child, origin, &request, &message);
            message.clear();
            self.resend = message;
            return;
        }
        let best = if handle.best_on_failure() {
            flight.best()
        } else {
            None
        };
        let (parent, kept) = (flight.parent, std::mem::take(&mut flight.kept));
        self.flights.close(index);
        match best {
            Some(best) => self.deliver(
                parent,
                &best.reply,
                kept.get(best.start..best.end).unwrap_or_default(),
            ),
            None => self.deliver(parent, reply, bytes),
        }
    }

    fn unwrapped(&mut self, tree: &Rc<Tree>, index: u32, generation: u32, reply: &Reply, bytes: &[u8]) {
        let Some(flight) = self.flights.get(index, generation) else {
            return;
        };
        let Node::Wrap { handle, .. } = tree.node(flight.node) else {
            return;
        };
        let (parent, request) = (flight.parent, flight.request);
        let message = std::mem::take(&mut flight.message);
        let dialect = tree.dialect;
        let mut scratch = [0; 250];
        let key = dialect.key(&request, &message, &mut scratch);
        handle.reply(key, dialect.command_name(request.command), reply.outcome);
        self.flights.close(index);
        if !handle.changes_key() {
            return self.deliver(parent, reply, bytes);
        }
        // The key as the client wrote it, encoded or not.
        let mut renamed = Vec::with_capacity(bytes.len() + 16);
        dialect.rewrite_reply_key(request.command, request.key.of(&message), bytes, &mut renamed);
        let head = (i64::from(reply.head) + renamed.len() as i64 - bytes.len() as i64).max(0) as u32;
        self.deliver(parent, &Reply { head, ..*reply }, &renamed);
    }

    /// Who gets a large reply as it comes? Ends the flights between. `head` is its first line, which a wrap may change.
    pub(crate) fn claim(&mut self, mut to: ReplyTo, head: &mut Vec<u8>) -> Option<(u32, u32, u32)> {
        loop {
            let (index, generation) = match to {
                ReplyTo::Client {
                    index,
                    generation,
                    seq,
                } => return Some((index, generation, seq)),
                ReplyTo::Nobody => return None,
                ReplyTo::Flight {
                    index, generation, ..
                } => (index, generation),
            };
            let flight = self.flights.get(index, generation)?;
            let (tree, parent, request) = (Rc::clone(&flight.tree), flight.parent, flight.request);
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
                Node::Copies(copies) => match self.claim_decided(&tree, copies, index, generation) {
                    Some(parent) => {
                        to = parent;
                        continue;
                    }
                    None => return None,
                },
                Node::Wrap { handle, .. } if handle.changes_key() => {
                    let message = std::mem::take(&mut flight.message);
                    let line = std::mem::take(head);
                    tree.dialect
                        .rewrite_reply_key(request.command, request.key.of(&message), &line, head);
                    self.flights.close(index);
                }
                _ => self.flights.close(index),
            }
            to = parent;
        }
    }

    /// A command that concerns every member of the client's tree: the worst reply is the answer.
    pub(crate) fn broadcast(&mut self, client: u32, tree: &Rc<Tree>, request: &Request, message: &[u8]) {
        let Some(found) = self.clients.get_mut(client as usize) else {
            return;
        };
        let (listener, dialect, generation) = (found.listener, found.dialect, found.generation);
        let seq = found
            .slots
            .push(request.command, request.is_quiet, false, self.now);
        let to = ReplyTo::Client {
            index: client,
            generation,
            seq,
        };
        let Some(node) = tree.broadcast(usize::from(listener)) else {
            return;
        };
        self.walk(tree, node, Origin { listener, dialect }, request, message, to);
    }
}
