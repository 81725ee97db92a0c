//! A request whose keys go several ways becomes one request for each way. Its reply is made of theirs.
//!
//! ```text
//!  keys ─▶ group each ─▶ one way? ─▶ the request as it is
//!                           └─ no: can be split? ─▶ a part for each way ─▶ joined reply
//!                                     └─ no: rejected
//! ```
//!
//! A request with very many keys takes several turns, so that no other client waits for it. Its bytes stay
//! where the client's bytes are until it is over.

use std::rc::Rc;

use proxima_wire::message::{Class, Outcome, Parsed, Request};

use super::{
    errors::{OUT_OF_MEMORY, REMOVED},
    input::Input,
    stage::{Spread, Stage},
};
use crate::{
    engine::{ClientId, Endpoint, Engine, ReplyTo},
    protocol::{Failed, Join, Session},
    route::{Branches, Mark, NodeId, Origin, Walk},
    upstream::ELSEWHERE,
};

/// Keys that are grouped in one turn. Behind routes with many children each key costs more: what counts then
/// is how many ends of ways were looked at.
const ENDS_IN_A_TURN: usize = 8 * 1024;

/// The progress of a request in this turn.
enum Progress {
    Over,
    /// Other clients are to be served first.
    NextTurn,
    /// Replies are to come first.
    AfterReplies,
}

impl Engine {
    /// Serves a request with several keys. It goes as it is, if all its keys go the same way. Otherwise it is
    /// split if it `is_divisible`. Returns `false` if it has to wait.
    pub(super) fn spread_keys(
        &mut self,
        id: ClientId,
        request: &Request,
        message: &[u8],
        is_divisible: bool,
        input: &Input<'_>,
    ) -> bool {
        if self.clients.over_memory {
            self.reject(id, request, &Failed::here(Outcome::Overloaded, OUT_OF_MEMORY));
            return true;
        }
        let Some(client) = self.clients.table.get(id) else {
            return true;
        };
        let origin = client.origin(id);
        let Some(root) = input.tree.root(usize::from(origin.listener)) else {
            self.reject(id, request, &Failed::here(Outcome::LocalError, REMOVED));
            return true;
        };
        let mut key_groups = std::mem::take(&mut self.clients.key_groups);
        let keys = &mut key_groups.keys;
        origin.protocol.keys(request, message, &mut |key| keys.push(key));
        let join = origin.protocol.spread(request).filter(|_| is_divisible);
        // A write stays whole where it can: a server does all of it at once.
        let branches = match join {
            Some(_) if request.class != Class::Write => Branches::Any,
            _ => Branches::Now,
        };
        let spread = Spread {
            request: *request,
            tree: Rc::clone(input.tree),
            root,
            join,
            branches,
            key_groups,
            sent: 0,
            parts: 0,
            is_long: false,
        };
        self.advance(id, spread, message, input)
    }

    /// Goes on with a request that takes several turns. Returns `false` if it is not over.
    pub(super) fn go_on_spreading(&mut self, id: ClientId, input: &mut Input<'_>) -> bool {
        let Some(client) = self.clients.table.get_mut(id) else {
            return true;
        };
        let Stage::Spread(spread) = std::mem::replace(&mut client.stage, Stage::Requests) else {
            return true;
        };
        let len = spread.request.len() as usize;
        let (number, message) = (
            client.number(spread.request.command),
            input.rest().get(..len).unwrap_or_default(),
        );
        let is_over = self.advance(id, *spread, message, input);
        if is_over {
            self.metrics.asked(number);
            input.at += message.len();
        }
        is_over
    }

    fn advance(&mut self, id: ClientId, mut spread: Spread, message: &[u8], input: &Input<'_>) -> bool {
        match self.serve_spread(id, &mut spread, message, input) {
            Progress::Over => {
                spread.key_groups.clear();
                self.clients.key_groups = spread.key_groups;
                return true;
            }
            Progress::NextTurn => self.stall(id, true),
            Progress::AfterReplies => self.stall(id, false),
        }
        spread.is_long = true;
        if let Some(client) = self.clients.table.get_mut(id) {
            client.stage = Stage::Spread(Box::new(spread));
        }
        false
    }

    fn serve_spread(
        &mut self,
        id: ClientId,
        spread: &mut Spread,
        message: &[u8],
        input: &Input<'_>,
    ) -> Progress {
        let Some(origin) = self.clients.table.get(id).map(|client| client.origin(id)) else {
            return Progress::Over;
        };
        let (tree, request) = (Rc::clone(&spread.tree), spread.request);
        let walk = Walk {
            tree: &tree,
            origin,
            request: &request,
            message,
            // Only the client counts: nothing is sent while the keys are grouped.
            to: ReplyTo::Client { client: id, seq: 0 },
        };
        // The slots of parts follow each other: no message to a subscriber may come between them.
        let is_subscriber = self
            .clients
            .table
            .get(id)
            .is_some_and(|client| client.session.has_subscriptions);
        let most = match input.is_made || is_subscriber {
            true => usize::MAX,
            false => ENDS_IN_A_TURN,
        };
        if spread.key_groups.count() < spread.key_groups.keys.len() && !self.group_keys(spread, &walk, most) {
            return Progress::NextTurn;
        }
        let is_divisible = spread.join.is_some();
        match spread.join {
            _ if spread.key_groups.groups() <= 1 && spread.sent == 0 => {
                self.metrics.listener(origin.listener).fragments += u64::from(is_divisible);
                let input = Input {
                    tree: &tree,
                    ..*input
                };
                self.route(id, &request, message, &input);
                Progress::Over
            }
            Some(join) => self.send_parts(id, spread, &walk, join, most),
            None => {
                let keys = &spread.key_groups.keys;
                let other = spread.key_groups.keys_of(1).next().unwrap_or_default();
                let of = |at: usize| keys.get(at).map(|key| key.of(message)).unwrap_or_default();
                self.reject_apart(id, &walk, spread.root, [of(0), of(other)], None);
                Progress::Over
            }
        }
    }

    /// Finds the ways of more keys. Returns `false` if there are still others. A request that cannot be split
    /// has no more to find once two of its keys part.
    fn group_keys(&mut self, spread: &mut Spread, walk: &Walk<'_>, most: usize) -> bool {
        let mut ends = 0;
        let Spread { key_groups, root, .. } = spread;
        while let Some(key) = key_groups.keys.get(key_groups.count()) {
            if ends >= most {
                return false;
            }
            let mut mark = Mark::default();
            self.way(*root, walk, key.of(walk.message), spread.branches, &mut |end| {
                ends += 1;
                mark.add(end);
            });
            ends += 1;
            key_groups.add(mark);
            if spread.join.is_none() && key_groups.groups() > 1 {
                break;
            }
        }
        true
    }

    /// Sends one request for each way.
    fn send_parts(
        &mut self,
        id: ClientId,
        spread: &mut Spread,
        walk: &Walk<'_>,
        join: &'static Join,
        most: usize,
    ) -> Progress {
        let mut part = std::mem::take(&mut spread.key_groups.part);
        let mut keys = 0;
        while spread.sent < spread.key_groups.groups() {
            if keys >= most && spread.sent > 0 {
                spread.key_groups.part = part;
                return Progress::NextTurn;
            }
            let open = self
                .clients
                .table
                .get(id)
                .map_or(0, |client| client.slots.open_parts());
            if most < usize::MAX && open >= self.most_parts() {
                spread.key_groups.part = part;
                return Progress::AfterReplies;
            }
            keys += self.send_group(id, spread, walk, &mut part);
            spread.sent += 1;
        }
        spread.key_groups.part = part;
        self.metrics.listener(walk.origin.listener).fragments += u64::from(spread.parts);
        self.close_parts(id, join, &spread.key_groups.order);
        Progress::Over
    }

    /// Sends the request for the next group of keys. Returns the number of keys.
    fn send_group(
        &mut self,
        id: ClientId,
        spread: &mut Spread,
        walk: &Walk<'_>,
        part: &mut Vec<u8>,
    ) -> usize {
        let group = spread.sent;
        let is_together = !spread.is_long || self.is_together(spread, walk, group);
        let Spread { key_groups, root, .. } = spread;
        if is_together && spread.parts == group as u32 {
            let mut count = 0;
            let mut keys = key_groups.keys_of(group).map(|key| {
                count += 1;
                key_groups.keys[key]
            });
            let protocol = walk.origin.protocol;
            protocol.part(walk.request, walk.message, &mut keys, part);
            drop(keys);
            self.send_part(id, walk, (*root, part));
            spread.parts += 1;
            part.clear();
            return count;
        }
        let keys: Vec<usize> = key_groups.keys_of(group).collect();
        for keys in keys.chunks(if is_together { keys.len() } else { 1 }) {
            let mut spans = keys.iter().map(|&key| key_groups.keys[key]);
            let protocol = walk.origin.protocol;
            protocol.part(walk.request, walk.message, &mut spans, part);
            keys.iter().for_each(|&key| key_groups.order[key] = spread.parts);
            self.send_part(id, walk, (*root, part));
            spread.parts += 1;
            part.clear();
        }
        keys.len()
    }

    /// Do the keys of this group still go the same way? Members may have come or gone since they were
    /// grouped.
    fn is_together(&mut self, spread: &Spread, walk: &Walk<'_>, group: usize) -> bool {
        let (key_groups, mut first) = (&spread.key_groups, None);
        let mut keys = key_groups.keys_of(group).map(|key| key_groups.keys[key]);
        keys.all(|key| {
            let mark = self.way_mark(spread.root, walk, key.of(walk.message), Branches::Now);
            *first.get_or_insert(mark) == mark
        })
    }

    /// Answers that the keys of a request go several ways, or not to the server of the client's own lane.
    pub(super) fn reject_apart(
        &mut self,
        id: ClientId,
        walk: &Walk<'_>,
        root: NodeId,
        keys: [&[u8]; 2],
        own: Option<&str>,
    ) {
        let parting = self.parting(root, walk, keys);
        let mut end = None;
        self.way(root, walk, keys[0], Branches::Now, &mut |first| {
            end.get_or_insert(first);
        });
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        let address = |node: NodeId| walk.tree.address_of(node);
        let apart = match (own, parting) {
            (Some(own), _) => [
                (&b"what the transaction has begun with"[..], own),
                (keys[0], address(end.unwrap_or(root))),
            ],
            (None, Some([one, other])) => [(keys[0], address(one)), (keys[1], address(other))],
            (None, None) => [(keys[0], "one place"), (keys[1], "another")],
        };
        let mut reply = Vec::new();
        let is_worded = client.protocol.apart(
            client.session.or(&mut Session::default()),
            walk.request,
            walk.message,
            apart,
            &mut reply,
        );
        if is_worded {
            return self.answer_here(id, &reply, walk.request.is_quiet);
        }
        let text = match own {
            Some(_) => ELSEWHERE,
            None => "the keys of this request are at several servers",
        };
        self.reject(id, walk.request, &Failed::here(Outcome::LocalError, text));
    }

    /// Sends a part of a request to this node.
    pub(super) fn send_part(&mut self, id: ClientId, of: &Walk<'_>, (node, message): (NodeId, &[u8])) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        let Origin {
            listener, protocol, ..
        } = of.origin;
        let size = of
            .tree
            .cost(usize::from(listener), of.request.class, message.len());
        let (command, is_quiet) = (of.request.command, of.request.is_quiet);
        let seq = client.slots.push_part(command, is_quiet, size, self.now);
        let to = ReplyTo::Client { client: id, seq };
        let Parsed::Head(request) = protocol.head(message) else {
            let text = "this request cannot be divided";
            return self.fail(to, &Failed::here(Outcome::LocalError, text));
        };
        self.walk(
            node,
            &Walk {
                request: &request,
                message,
                to,
                ..*of
            },
        );
    }

    /// Notes that the last part of a request was sent. `order`: the part of each key.
    pub(super) fn close_parts(&mut self, id: ClientId, join: &'static Join, order: &[u32]) {
        self.metrics.joins += 1;
        if let Some(client) = self.clients.table.get_mut(id) {
            client.slots.close_parts(join, order, &mut client.stream.out);
            self.flush_later(Endpoint::Client(id));
        }
    }
}
