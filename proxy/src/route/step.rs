//! The shapes on the way down; `combine` is the way back. A walk goes down choose nodes until it ends.
//! It ends at a leaf, which costs no state at all, or at a node that must wait for replies, which opens a
//! flight.

use std::{rc::Rc, sync::Arc};

use proxima_wire::message::{Class, Outcome, Parsed, Request};

use super::{
    Answer, Leaf, Node, NodeId, Origin, Wait, Walk,
    flight::child_of,
    handle::{ByClient, behind_prefix},
    slow_requests::WaitedFor,
    tree::{Attempt, AttemptRecord, Children, EachChanged, Fan, Query, Wrap, Wrapped},
};
use crate::{
    embedded,
    engine::{Engine, FlightId, ReplyTo, Sleeper},
    members::Member,
    protocol::{Change, Failed, Retention},
};

/// Goes on to a child that is up. The last one of the order is asked even if it is not: it makes the answer.
pub(super) fn pass_by_ejected(
    handle: &dyn Attempt,
    query: &Query<'_>,
    tried: &mut AttemptRecord,
    children: &Children<'_>,
) {
    while !children.is_up(tried.child)
        && handle.follow(query, tried, children).is_some()
        && let Some(next) = handle.next(query, tried, children, &Answer::EJECTED)
    {
        tried.add(next);
    }
}

/// The reason for which a request must not go to several servers; `None`: it may.
pub(super) fn single(walk: &Walk<'_>) -> Option<&'static str> {
    if walk.request.is_dedicated {
        return Some("what belongs to one connection cannot go to several servers");
    }
    if !walk.origin.protocol.is_same_everywhere(walk.request.command) {
        return Some("this command does not do the same at every server");
    }
    None
}

/// The error text for a request that must not go to the several servers below this route.
#[cold]
pub(super) fn refuse_several(route: &str, why: &str, walk: &Walk<'_>) -> String {
    format!(
        "{} is not served below {route}: {why}: lead it to one server, as by_operation does",
        name_of(walk)
    )
}

/// The name of a request's command, as clients write it.
fn name_of(walk: &Walk<'_>) -> String {
    let name = walk.origin.protocol.command_name(walk.request.command);
    name.replace('|', " ").to_uppercase()
}

/// The error text for a request that belongs to a connection of its client's own, at the end of a route
/// without a server.
#[cold]
fn without_server(leaf: &Leaf, walk: &Walk<'_>) -> String {
    let name = name_of(walk);
    match leaf {
        Leaf::OverLimit => format!(
            "{name} is over the limit of rate_limit, and nothing may be left out of a transaction: raise the \
             limit, or name a fallback"
        ),
        _ => format!(
            "{name} is led to null, and what belongs to a connection of its client's own needs a server: \
             lead it to a pool, or send the transaction in one piece"
        ),
    }
}

/// The error text when the request that a route made cannot be parsed.
const UNREADABLE: &str = "a route made this request unreadable";
/// The error text where a protocol has no server in this process. No such route is compiled.
const NO_SERVER: &str = "the embedded store does not speak this protocol";

impl Engine {
    /// Walks the tree from `node`. A node that waits for replies gets none before all that it asks for is on
    /// its way.
    #[inline]
    pub(crate) fn walk(&mut self, mut node: NodeId, walk: &Walk<'_>) {
        let mut scratch;
        let key = if walk.request.base64_key {
            scratch = [0; 250];
            walk.key(&mut scratch)
        } else {
            walk.request.key.of(walk.message)
        };
        loop {
            match walk.tree.node(node) {
                Node::Choose { handle, children } => {
                    let query = walk.query(key, self.unix());
                    let query = query.of(walk, &self.clients);
                    let choices = walk.children(children, self.copies.snapshot());
                    match children.get(handle.choose(&query, &choices, &mut self.random)) {
                        Some(&child) => node = child,
                        None => {
                            let text = format!("{} has no child for this request", handle.name());
                            return self.fail(walk.to, &Failed::here(Outcome::LocalError, &text));
                        }
                    }
                }
                Node::ByClient { handle, children } => {
                    match children.get(handle.choose(self.address_of(walk.to), children.len())) {
                        Some(&child) => node = child,
                        None => {
                            return self.fail(walk.to, &Failed::here(Outcome::LocalError, ByClient::UNKNOWN));
                        }
                    }
                }
                Node::Leaf(leaf) if walk.request.class == Class::Delete => {
                    return self.delete_at(node, leaf, walk);
                }
                Node::Leaf(leaf) => return self.leaf(leaf, walk),
                Node::Copies(copies) => return self.ask_copies(node, copies, walk),
                _ => match self.step_aside(node, key, walk) {
                    Some(next) => node = next,
                    None => return,
                },
            }
        }
    }

    /// Runs a node that asks several children, looks at answers, or changes or holds the request. Returns
    /// the node to go on with; `None`: the walk is over. It is not inlined: most walks end at a member
    /// without it.
    #[inline(never)]
    fn step_aside(&mut self, node: NodeId, key: &[u8], walk: &Walk<'_>) -> Option<NodeId> {
        match walk.tree.node(node) {
            Node::Gather { wait, children, .. } => {
                self.descend(|engine| engine.gather(node, *wait, children, walk));
            }
            Node::Fan { handle, children } => {
                let query = walk.query(key, self.unix());
                self.descend(|engine| engine.fan(&**handle, children, &query, walk));
            }
            Node::Attempt { handle, children } => {
                let tried = self.first_up(&**handle, children, walk, key);
                self.descend(|engine| engine.attempt(node, tried, walk));
            }
            Node::Script { handle, children } => {
                self.descend(|engine| engine.begin_script(node, &**handle, children, key, walk));
            }
            Node::Wrap { handle, child } => {
                let query = walk.query(key, self.unix());
                let query = query.of(walk, &self.clients);
                match handle.request(walk.request, walk.message, &query, &mut self.random) {
                    Wrapped::Pass => return Some(*child),
                    other => self.descend(|engine| engine.wrap(node, *child, other, walk)),
                }
            }
            Node::Near(near) => return self.step_near(node, near, key, walk),
            Node::Choose { .. } | Node::ByClient { .. } | Node::Leaf(_) | Node::Copies(_) => {}
        }
        None
    }

    /// The member to which a key leads first; `None`: it leads to no member, or to one of several by chance.
    /// Where a request goes to several, it is the one whose reply counts first.
    pub(crate) fn first_member(&mut self, root: NodeId, walk: &Walk<'_>, key: &[u8]) -> Option<Arc<Member>> {
        let mut node = root;
        loop {
            node = match walk.tree.node(node) {
                Node::Leaf(Leaf::Member(member)) => return Some(Arc::clone(member)),
                Node::Choose { handle, children } => {
                    let query = walk.query(key, self.unix());
                    if handle.varies(&query) {
                        let members = children.iter().map(|&child| self.first_member(child, walk, key));
                        let members: Vec<_> = members.flatten().collect();
                        let (first, others) = members.split_first()?;
                        return others
                            .iter()
                            .all(|other| other.id == first.id)
                            .then(|| Arc::clone(first));
                    }
                    let query = query.of(walk, &self.clients);
                    let choices = walk.children(children, self.copies.snapshot());
                    *children.get(handle.choose(&query, &choices, &mut self.random))?
                }
                Node::Attempt { handle, children } => {
                    *children.get(self.first_up(&**handle, children, walk, key).child)?
                }
                Node::Gather { children, .. } => {
                    let choices = walk.children(children, self.copies.snapshot());
                    let first = (0..children.len()).find(|&child| choices.is_up(child));
                    *children.get(first.unwrap_or(0))?
                }
                Node::Fan { handle, children } => {
                    let query = walk.query(key, self.unix());
                    *children.get(handle.choose(&query, &mut self.random, &mut Vec::new()))?
                }
                Node::Wrap { child, .. } => *child,
                Node::Near(near) => near.child,
                Node::ByClient { handle, children } => {
                    *children.get(handle.choose(self.address_of(walk.to), children.len()))?
                }
                Node::Leaf(_) | Node::Copies(_) | Node::Script { .. } => return None,
            }
        }
    }

    /// The first child that an attempt asks: no flight is needed to pass by ejected children.
    fn first_up(
        &mut self,
        handle: &dyn Attempt,
        children: &[NodeId],
        walk: &Walk<'_>,
        key: &[u8],
    ) -> AttemptRecord {
        let choices = walk.children(children, self.copies.snapshot());
        let query = walk.query(key, self.unix());
        let mut tried = AttemptRecord::first(0);
        pass_by_ejected(handle, &query, &mut tried, &choices);
        if tried.count > 1 {
            self.metrics.failover.add(&handle.take_counts());
        }
        tried
    }

    #[inline]
    pub(crate) fn leaf(&mut self, leaf: &Leaf, walk: &Walk<'_>) {
        match leaf {
            Leaf::Member(member) => {
                self.send(member, walk.origin.login, walk.request, walk.message, walk.to);
            }
            Leaf::Embedded => self.ask_embedded(walk),
            Leaf::Null | Leaf::OverLimit if self.needs_server(walk) => {
                let text = without_server(leaf, walk);
                self.fail(walk.to, &Failed::here(Outcome::LocalError, &text));
            }
            Leaf::Null | Leaf::OverLimit => {
                let mut out = std::mem::take(&mut self.router.reply);
                let reply = walk
                    .origin
                    .protocol
                    .miss(walk.origin.form, walk.request, walk.message, &mut out);
                self.deliver(walk.to, &reply, &out);
                out.clear();
                self.router.reply = out;
            }
            Leaf::Discard => {
                self.metrics.discarded += 1;
                self.leaf(&Leaf::Null, walk);
            }
            Leaf::Error(error) => self.fail(walk.to, &Failed::here(error.outcome, &error.text)),
        }
    }

    /// Does this request belong to what a server keeps for its client? A command that blocks is on a lane of
    /// its client's own, and yet has an answer without one: its time is over.
    fn needs_server(&self, walk: &Walk<'_>) -> bool {
        let is_alone = || {
            let retention = self
                .slot_of(walk.to)
                .and_then(|(client, _)| self.clients.retention(client));
            walk.request.extra_timeout > 0 && retention.is_none_or(|retention| retention == Retention::Clean)
        };
        walk.request.is_dedicated && !is_alone()
    }

    fn ask_embedded(&mut self, walk: &Walk<'_>) {
        if walk.is_streamed() {
            return self.fail(walk.to, &embedded::TOO_LARGE);
        }
        let Some(server) = walk.origin.protocol.embedded() else {
            return self.fail(walk.to, &Failed::here(Outcome::LocalError, NO_SERVER));
        };
        let mut out = std::mem::take(&mut self.router.reply);
        let context = self.store_context();
        let (form, request) = (walk.origin.form, (walk.request, walk.message));
        let mut reply = embedded::answer(server, &self.store, &context, form, request, &mut out);
        if !self.takes_reply(walk.to, out.len()) {
            out.clear();
            reply = embedded::out_of_memory(server, &mut out);
        }
        self.deliver(walk.to, &reply, &out);
        out.clear();
        self.router.reply = out;
    }

    /// Sends to one child, and copies to others. A request that cannot be copied goes to the one child alone.
    fn fan(&mut self, handle: &dyn Fan, children: &[NodeId], query: &Query<'_>, walk: &Walk<'_>) {
        let mut others = std::mem::take(&mut self.router.others);
        let first = handle.choose(query, &mut self.random, &mut others);
        match children.get(first) {
            Some(&child) => self.walk(child, walk),
            None => {
                let text = format!("{} has no child for this request", handle.name());
                self.fail(walk.to, &Failed::here(Outcome::LocalError, &text));
            }
        }
        // A request without a key is about a server, and not about what copies of requests bring to another
        // one.
        if single(walk).is_some() || walk.request.key.is_empty() {
            others.clear();
        }
        for other in others.drain(..) {
            if let Some(&child) = children.get(other as usize)
                && self.stays_whole(child, walk)
            {
                self.walk(child, &walk.to(ReplyTo::Nobody));
            }
        }
        self.router.others = others;
    }

    fn gather(&mut self, node: NodeId, wait: Wait, children: &[NodeId], walk: &Walk<'_>) {
        if let (Some(why), Node::Gather { name, .. }) = (single(walk), walk.tree.node(node)) {
            let text = refuse_several(name, why, walk);
            return self.fail(walk.to, &Failed::here(Outcome::LocalError, &text));
        }
        match wait {
            Wait::Initial => {
                for (number, &child) in children.iter().enumerate() {
                    let to = if number == 0 { walk.to } else { ReplyTo::Nobody };
                    self.walk(child, &walk.to(to));
                }
            }
            Wait::None => {
                for &child in children {
                    self.walk(child, &walk.to(ReplyTo::Nobody));
                }
                self.leaf(&Leaf::Null, walk);
            }
            Wait::All | Wait::Majority | Wait::Fastest | Wait::Hit => {
                let (id, flight) = self.router.flights.open(node, walk, children.len() as u32);
                if flight.removes() {
                    flight.message.extend_from_slice(walk.message);
                }
                for (number, &child) in children.iter().enumerate() {
                    self.walk(child, &walk.to(child_of(id, number)));
                }
            }
        }
    }

    fn attempt(&mut self, node: NodeId, tried: AttemptRecord, walk: &Walk<'_>) {
        let (id, flight) = self.router.flights.open(node, walk, 1);
        flight.message.extend_from_slice(walk.message);
        flight.tried = tried;
        self.try_child(node, id, tried.child, walk);
    }

    pub(super) fn try_child(&mut self, node: NodeId, flight: FlightId, child: usize, walk: &Walk<'_>) {
        if let Node::Attempt { children, .. } = walk.tree.node(node)
            && let Some(&next) = children.get(child)
        {
            self.walk(next, &walk.to(child_of(flight, child)));
        }
    }

    /// Walks on with a changed request.
    fn walk_changed(&mut self, node: NodeId, change: Change<'_>, walk: &Walk<'_>, name: &str) {
        let protocol = walk.origin.protocol;
        let (before, own) = walk.message.split_at(walk.request.before as usize);
        let mut changed = Vec::with_capacity(walk.message.len() + 32);
        changed.extend_from_slice(before);
        if !protocol.rewrite(&walk.request.alone(), own, &change, &mut changed) {
            return self.refuse_to_change(name, walk);
        }
        self.walk_with_head(node, changed, walk);
    }

    /// Refuses a request that a route cannot change.
    fn refuse_to_change(&mut self, name: &str, walk: &Walk<'_>) {
        let text = format!(
            "{} is not served below {name}: replies to it name keys, or it cannot be changed: lead it past that \
             route, as by_operation does",
            name_of(walk)
        );
        self.fail(walk.to, &Failed::here(Outcome::LocalError, &text));
    }

    /// Walks on with another head in place of the request's own. What goes before the request stands before
    /// it.
    pub(crate) fn walk_with_head(&mut self, node: NodeId, mut head: Vec<u8>, walk: &Walk<'_>) {
        head.extend_from_slice(walk.message.get(walk.request.head as usize..).unwrap_or_default());
        let before = walk.request.before as usize;
        let own = head.get(before..).unwrap_or_default();
        let Parsed::Head(changed) = walk.origin.protocol.head(own) else {
            return self.fail(walk.to, &Failed::here(Outcome::LocalError, UNREADABLE));
        };
        let request = &Request {
            is_dedicated: walk.request.is_dedicated,
            is_of_transaction: walk.request.is_of_transaction,
            class: walk.request.class,
            ..changed.behind(before)
        };
        let message = &head;
        self.walk(
            node,
            &Walk {
                request,
                message,
                ..*walk
            },
        );
    }

    /// Walks on with a request in which a wrap has changed each key, or each request of a composite one.
    #[cold]
    fn walk_each(&mut self, child: NodeId, handle: &dyn Wrap, walk: &Walk<'_>) {
        let protocol = walk.origin.protocol;
        let (before, own) = walk.message.split_at(walk.request.before as usize);
        let request = walk.request.alone();
        let mut each = EachChanged {
            handle,
            changed: before.to_vec(),
            fault: None,
            is_possible: true,
        };
        let (unix, random) = (self.unix(), &mut self.random);
        if protocol.is_composite(&request) {
            let mut at = 0;
            protocol.each_request(&request, own, &mut |inner, place| {
                each.changed
                    .extend_from_slice(own.get(at..place.start).unwrap_or_default());
                at = place.end;
                let message = own.get(place).unwrap_or_default();
                let query = walk.query(inner.key.of(message), unix);
                each.change(inner, message, &query, random);
            });
            each.changed.extend_from_slice(own.get(at..).unwrap_or_default());
        } else {
            let query = walk.query(request.key.of(own), unix);
            each.change(&request, own, &query, random);
        }
        let EachChanged {
            changed,
            fault,
            is_possible,
            ..
        } = each;
        if let Some((outcome, text)) = fault {
            return self.fail(walk.to, &Failed::here(outcome, &text));
        }
        let own = changed.get(before.len()..).unwrap_or_default();
        match protocol.head(own) {
            Parsed::Head(head) if is_possible && head.len() == own.len() as u64 => {
                let request = &Request {
                    is_dedicated: request.is_dedicated,
                    is_of_transaction: request.is_of_transaction,
                    class: request.class,
                    ..head.behind(before.len())
                };
                let message = &changed;
                self.walk(
                    child,
                    &Walk {
                        request,
                        message,
                        ..*walk
                    },
                );
            }
            _ => self.refuse_to_change(handle.name(), walk),
        }
    }

    fn wrap(&mut self, node: NodeId, child: NodeId, wrapped: Wrapped, walk: &Walk<'_>) {
        let (handle, protocol) = match walk.tree.node(node) {
            Node::Wrap { handle, .. } => (&**handle, walk.origin.protocol),
            _ => return,
        };
        match wrapped {
            Wrapped::Each => self.walk_each(child, handle, walk),
            Wrapped::Key(_) if protocol.is_composite(walk.request) => self.walk_each(child, handle, walk),
            Wrapped::Pass => self.walk(child, walk),
            Wrapped::Fail(outcome, text) => self.fail(walk.to, &Failed::here(outcome, &text)),
            Wrapped::Ttl(ttl) => {
                let ttl = Some(ttl);
                self.walk_changed(child, Change { key: None, ttl }, walk, handle.name());
            }
            Wrapped::Key(key) if walk.origin.hides_prefix => {
                let mut scratch = [0; 250];
                let (prefix, _) = behind_prefix(walk.key(&mut scratch));
                let whole = [prefix, &key].concat();
                self.walk_with_key(node, child, &whole, walk);
            }
            Wrapped::Key(key) => self.walk_with_key(node, child, &key, walk),
            Wrapped::Hide => {
                let origin = Origin {
                    hides_prefix: true,
                    ..walk.origin
                };
                self.walk(child, &Walk { origin, ..*walk });
            }
            Wrapped::Bare(key) => {
                let origin = Origin {
                    hides_prefix: false,
                    ..walk.origin
                };
                self.walk_with_key(node, child, &key, &Walk { origin, ..*walk });
            }
            Wrapped::Watch => {
                let (id, flight) = self.router.flights.open(node, walk, 1);
                flight.message.extend_from_slice(walk.message);
                // This time has come: the answer is not held, and how long it took is known.
                flight.until = self.now;
                self.walk(child, &walk.to(child_of(id, 0)));
            }
            Wrapped::Pace(span) => {
                let until = self.now + span;
                let (id, flight) = self.router.flights.open(node, walk, 1);
                flight.message.extend_from_slice(walk.message);
                flight.until = until;
                self.walk(child, &walk.to(child_of(id, 0)));
            }
            Wrapped::Queue => self.queue(node, walk),
            Wrapped::Park(kept) => self.park(node, &kept, walk),
            // A streamed request cannot be held back: its body is already coming.
            Wrapped::Delay(_) if walk.is_streamed() => self.walk(child, walk),
            Wrapped::Delay(span) => {
                let flight = self.hold(node, walk);
                self.timers.wake(self.now + span, Sleeper::Flight(flight));
            }
        }
    }

    /// Walks on with another key. The reply gets the present one back.
    fn walk_with_key(&mut self, node: NodeId, child: NodeId, key: &[u8], walk: &Walk<'_>) {
        let flight = self.watch(node, walk);
        let change = Change {
            key: Some(key),
            ttl: None,
        };
        if let Node::Wrap { handle, .. } = walk.tree.node(node) {
            self.walk_changed(child, change, &walk.to(child_of(flight, 0)), handle.name());
        }
    }

    /// Opens a flight that sees the reply on its way back.
    pub(super) fn watch(&mut self, node: NodeId, walk: &Walk<'_>) -> FlightId {
        let (id, flight) = self.router.flights.open(node, walk, 1);
        flight.message.extend_from_slice(walk.message);
        id
    }

    /// Opens a flight whose request is held back, from now on.
    pub(super) fn hold(&mut self, node: NodeId, walk: &Walk<'_>) -> FlightId {
        let now = self.now;
        let (id, flight) = self.router.flights.open(node, walk, 1);
        flight.message.extend_from_slice(walk.message);
        flight.until = now;
        id
    }

    /// Goes on with a request that a route has held back.
    pub(crate) fn wake_flight(&mut self, id: FlightId) {
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        let (tree, node) = (Rc::clone(&flight.tree), flight.node);
        if flight.group.is_some() {
            return self.look_again(id);
        }
        if flight.pending == 0 {
            return self.pass_on_held(id);
        }
        let (parent, since) = (flight.parent, flight.until);
        if let Node::Wrap { handle, child } = tree.node(node) {
            self.note_wait(parent, WaitedFor::Route(handle.name()), since);
            self.resend(id, *child, child_of(id, 0));
        }
    }

    /// Walks from `node` with the request of a flight, which gets its message back before any answer arrives.
    pub(super) fn resend(&mut self, id: FlightId, node: NodeId, to: ReplyTo) {
        self.descend(|engine| {
            let Some(flight) = engine.router.flights.get(id) else {
                return;
            };
            let (tree, request, origin) = (Rc::clone(&flight.tree), flight.request, flight.origin);
            let message = std::mem::take(&mut flight.message);
            let walk = Walk {
                tree: &tree,
                origin,
                request: &request,
                message: &message,
                to,
            };
            engine.walk(node, &walk);
            if let Some(flight) = engine.router.flights.get(id) {
                flight.message = message;
            }
        });
    }
}
