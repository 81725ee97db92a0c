//! The four shapes at work, on the way down; `combine` is the way back. A walk goes down choose nodes until it ends at a leaf, which costs no state at all, or at a
//! node that must wait for replies, which opens a flight.

use std::rc::Rc;

use proxima_wire::message::{Outcome, Parsed, Reply, Request};

use super::{Children, Leaf, Node, NodeId, Origin, Query, ReplyTo, Tree, Wait, tree::Wrapped};
use crate::{
    client::Part,
    dialect::{Change, Failed},
    engine::Engine,
    near::embedded,
    timer::{Sleeper, Timer},
};

impl Engine {
    /// Walks `tree` from `node` with a request; its reply will come for `to`.
    #[inline]
    #[allow(clippy::too_many_arguments)] // a request, its origin and its destination: grouping them costs the hot path a copy
    pub(crate) fn walk(
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
                            return self.fail(to, &Failed::here(Outcome::LocalError, &text));
                        }
                    }
                }
                Node::Leaf(leaf) => return self.leaf(leaf, origin, request, message, to),
                Node::Copies(copies) => {
                    return self.copies(tree, node, copies, origin, request, message, to);
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
                    let wrapped = handle.request(request, message, &query, self.unix(), &mut self.random);
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
            Leaf::Member(member) => self.send(member, origin.login, request, message, to),
            Leaf::Embedded => {
                if (message.len() as u64) < request.len() {
                    let text = "object too large for cache";
                    return self.fail(to, &Failed::here(Outcome::RemoteError, text));
                }
                let mut out = std::mem::take(&mut self.scratch_reply);
                let context = self.store_context();
                let mut outcome = embedded::answer(&self.store, &context, request, message, &mut out);
                if !self.takes_reply(to, out.len()) {
                    out.clear();
                    outcome = embedded::out_of_memory(&mut out);
                }
                let trailer = if out.ends_with(b"END\r\n") { 5 } else { 0 };
                let reply = Reply {
                    trailer,
                    ..Reply::new(outcome, out.len())
                };
                self.deliver(to, &reply, &out);
                out.clear();
                self.scratch_reply = out;
            }
            Leaf::Null => {
                let mut out = std::mem::take(&mut self.scratch_reply);
                let reply = origin.dialect.miss(origin.form, request, message, &mut out);
                self.deliver(to, &reply, &out);
                out.clear();
                self.scratch_reply = out;
            }
            Leaf::Error(text) => self.fail(to, &Failed::here(Outcome::LocalError, text)),
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
        if request.is_dedicated {
            let text = "what belongs to one connection cannot go to several servers";
            return self.fail(to, &Failed::here(Outcome::LocalError, text));
        }
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
                let (flight, _) = self
                    .flights
                    .open(to, Rc::clone(tree), node, origin, request, pending);
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
        let (index, flight) = self.flights.open(to, Rc::clone(tree), node, origin, request, 1);
        flight.message.extend_from_slice(message);
        self.try_child(tree, node, index, child, origin, request, message);
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn try_child(
        &mut self,
        tree: &Rc<Tree>,
        node: NodeId,
        flight: u32,
        child: usize,
        origin: Origin,
        request: &Request,
        message: &[u8],
    ) {
        let Node::Attempt { children, .. } = tree.node(node) else {
            return;
        };
        let Some(&next) = children.get(child) else { return };
        let to = self.flights.child(flight, child);
        self.walk(tree, next, origin, request, message, to);
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
            return self.fail(to, &Failed::here(Outcome::LocalError, text));
        }
        self.walk_with_head(tree, node, changed, origin, request, message, to);
    }

    /// Goes on with another head in place of the request's own.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn walk_with_head(
        &mut self,
        tree: &Rc<Tree>,
        node: NodeId,
        mut head: Vec<u8>,
        origin: Origin,
        request: &Request,
        message: &[u8],
        to: ReplyTo,
    ) {
        head.extend_from_slice(message.get(request.head as usize..).unwrap_or_default());
        match origin.dialect.head(&head) {
            Parsed::Head(changed) => {
                let changed = Request {
                    is_dedicated: request.is_dedicated,
                    ..changed
                };
                self.walk(tree, node, origin, &changed, &head, to);
            }
            _ => {
                let text = "a route made this request unreadable";
                self.fail(to, &Failed::here(Outcome::LocalError, text));
            }
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
            Wrapped::Fail(outcome, text) => self.fail(to, &Failed::here(outcome, &text)),
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
                    wakes: Sleeper::Flight { generation, index },
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
        let (index, flight) = self.flights.open(to, Rc::clone(tree), node, origin, request, 1);
        flight.message.extend_from_slice(message);
        self.flights.child(index, 0)
    }

    /// Requests whose time has come.
    pub fn run_timers(&mut self) {
        while let Some(timer) = self.timers.peek().copied().filter(|timer| timer.due <= self.now) {
            self.timers.pop();
            let (index, generation) = match timer.wakes {
                Sleeper::Flight { index, generation } => (index, generation),
                Sleeper::Client { index, generation } => {
                    if self.client(index, generation).is_some() {
                        self.requeue(index);
                    }
                    continue;
                }
            };
            let Some(flight) = self.flights.get(index, generation) else {
                continue;
            };
            let (tree, node, request, origin) = (
                Rc::clone(&flight.tree),
                flight.node,
                flight.request,
                flight.origin,
            );
            let child = match tree.node(node) {
                Node::Wrap { child, .. } => child,
                Node::Copies(_) => {
                    self.go_on(index, generation);
                    continue;
                }
                _ => continue,
            };
            // A copy: the reply may come within the walk, and the flight needs its message for it.
            let mut message = std::mem::take(&mut self.resend);
            message.extend_from_slice(&flight.message);
            let to = self.flights.child(index, 0);
            self.walk(&tree, *child, origin, &request, &message, to);
            message.clear();
            self.resend = message;
        }
    }

    /// A command that concerns every member of the client's tree: the worst reply is the answer.
    pub(crate) fn broadcast(&mut self, client: u32, tree: &Rc<Tree>, request: &Request, message: &[u8]) {
        let Some(found) = self.clients.get_mut(client as usize) else {
            return;
        };
        let (listener, origin, generation) = (found.listener, found.origin(), found.generation);
        let size = tree.cost(usize::from(listener), request.class, message.len());
        let seq = found
            .slots
            .push(request.command, request.is_quiet, Part::Whole, size, self.now);
        let to = ReplyTo::Client {
            index: client,
            generation,
            seq,
        };
        let Some(node) = tree.broadcast(usize::from(listener)) else {
            return;
        };
        self.walk(tree, node, origin, request, message, to);
    }
}
