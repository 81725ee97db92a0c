//! A request whose keys go several ways becomes one request for each way. Its reply is made of theirs.
//!
//! ```text
//!  keys ─▶ place each ─▶ one way? ─▶ the request as it is
//!                           └─ no: divides? ─▶ a share for each way ─▶ joined reply
//!                                     └─ no: refused
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

/// Keys that are placed in one turn. Behind routes with many children each key costs more: what counts then is
/// how many ends of ways were looked at.
const ENDS_IN_A_TURN: usize = 8 * 1024;

/// How far a request came in this turn.
enum Progress {
    Over,
    /// Other clients are to be served first.
    NextTurn,
    /// Replies are to come first.
    AfterReplies,
}

impl Engine {
    /// Serves a request with several keys. It goes as it is, if all its keys go the same way. Otherwise it is
    /// divided if it `divides`. Returns `false` if it has to wait.
    pub(super) fn spread_keys(
        &mut self,
        id: ClientId,
        request: &Request,
        message: &[u8],
        divides: bool,
        input: &Input<'_>,
    ) -> bool {
        if self.clients.over_memory {
            self.refuse(id, request, &Failed::here(Outcome::Overloaded, OUT_OF_MEMORY));
            return true;
        }
        let Some(client) = self.clients.table.get(id) else {
            return true;
        };
        let origin = client.origin(id);
        let Some(root) = input.tree.root(usize::from(origin.listener)) else {
            self.refuse(id, request, &Failed::here(Outcome::LocalError, REMOVED));
            return true;
        };
        let mut division = std::mem::take(&mut self.clients.division);
        let keys = &mut division.keys;
        origin.protocol.keys(request, message, &mut |key| keys.push(key));
        let join = origin.protocol.spread(request).filter(|_| divides);
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
            division,
            sent: 0,
            shares: 0,
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
                spread.division.clear();
                self.clients.division = spread.division;
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
            // Only the client counts: nothing is sent while the keys are placed.
            to: ReplyTo::Client { client: id, seq: 0 },
        };
        // The slots of shares follow each other: no message to a subscriber may come between them.
        let is_subscriber = self
            .clients
            .table
            .get(id)
            .is_some_and(|client| client.session.has_subscriptions);
        let most = match input.is_made || is_subscriber {
            true => usize::MAX,
            false => ENDS_IN_A_TURN,
        };
        if spread.division.placed() < spread.division.keys.len() && !self.place_keys(spread, &walk, most) {
            return Progress::NextTurn;
        }
        let divides = spread.join.is_some();
        match spread.join {
            _ if spread.division.groups() <= 1 && spread.sent == 0 => {
                self.metrics.listener(origin.listener).fragments += u64::from(divides);
                let input = Input {
                    tree: &tree,
                    ..*input
                };
                self.route(id, &request, message, &input);
                Progress::Over
            }
            Some(join) => self.send_shares(id, spread, &walk, join, most),
            None => {
                let keys = &spread.division.keys;
                let other = spread.division.keys_of(1).next().unwrap_or_default();
                let of = |at: usize| keys.get(at).map(|key| key.of(message)).unwrap_or_default();
                self.refuse_apart(id, &walk, spread.root, [of(0), of(other)], None);
                Progress::Over
            }
        }
    }

    /// Finds the ways of more keys. Returns `false` if there are still others. A request that cannot be divided
    /// has no more to find once two of its keys part.
    fn place_keys(&mut self, spread: &mut Spread, walk: &Walk<'_>, most: usize) -> bool {
        let mut ends = 0;
        let Spread { division, root, .. } = spread;
        while let Some(key) = division.keys.get(division.placed()) {
            if ends >= most {
                return false;
            }
            let mut mark = Mark::default();
            self.way(*root, walk, key.of(walk.message), spread.branches, &mut |end| {
                ends += 1;
                mark.add(end);
            });
            ends += 1;
            division.place(mark);
            if spread.join.is_none() && division.groups() > 1 {
                break;
            }
        }
        true
    }

    /// Sends one request for each way.
    fn send_shares(
        &mut self,
        id: ClientId,
        spread: &mut Spread,
        walk: &Walk<'_>,
        join: &'static Join,
        most: usize,
    ) -> Progress {
        let mut part = std::mem::take(&mut spread.division.part);
        let mut keys = 0;
        while spread.sent < spread.division.groups() {
            if keys >= most && spread.sent > 0 {
                spread.division.part = part;
                return Progress::NextTurn;
            }
            let open = self
                .clients
                .table
                .get(id)
                .map_or(0, |client| client.slots.open_shares());
            if most < usize::MAX && open >= self.most_parts() {
                spread.division.part = part;
                return Progress::AfterReplies;
            }
            keys += self.send_group(id, spread, walk, &mut part);
            spread.sent += 1;
        }
        spread.division.part = part;
        self.metrics.listener(walk.origin.listener).fragments += u64::from(spread.shares);
        self.close_shares(id, join, &spread.division.order);
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
        let Spread { division, root, .. } = spread;
        if is_together && spread.shares == group as u32 {
            let mut count = 0;
            let mut keys = division.keys_of(group).map(|key| {
                count += 1;
                division.keys[key]
            });
            let protocol = walk.origin.protocol;
            protocol.part(walk.request, walk.message, &mut keys, part);
            drop(keys);
            self.send_share(id, walk, (*root, part));
            spread.shares += 1;
            part.clear();
            return count;
        }
        let keys: Vec<usize> = division.keys_of(group).collect();
        for keys in keys.chunks(if is_together { keys.len() } else { 1 }) {
            let mut spans = keys.iter().map(|&key| division.keys[key]);
            let protocol = walk.origin.protocol;
            protocol.part(walk.request, walk.message, &mut spans, part);
            keys.iter().for_each(|&key| division.order[key] = spread.shares);
            self.send_share(id, walk, (*root, part));
            spread.shares += 1;
            part.clear();
        }
        keys.len()
    }

    /// Do the keys of this group still go the same way? Members may have come or gone since they were placed.
    fn is_together(&mut self, spread: &Spread, walk: &Walk<'_>, group: usize) -> bool {
        let (division, mut first) = (&spread.division, None);
        let mut keys = division.keys_of(group).map(|key| division.keys[key]);
        keys.all(|key| {
            let mark = self.way_mark(spread.root, walk, key.of(walk.message), Branches::Now);
            *first.get_or_insert(mark) == mark
        })
    }

    /// Answers that the keys of a request go several ways, or not to the server of the client's own lane.
    pub(super) fn refuse_apart(
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
        let place = |node: NodeId| walk.tree.address_of(node);
        let apart = match (own, parting) {
            (Some(own), _) => [
                (&b"what the transaction has begun with"[..], own),
                (keys[0], place(end.unwrap_or(root))),
            ],
            (None, Some([one, other])) => [(keys[0], place(one)), (keys[1], place(other))],
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
        self.refuse(id, walk.request, &Failed::here(Outcome::LocalError, text));
    }

    /// Sends a part of a request to this place.
    pub(super) fn send_share(&mut self, id: ClientId, of: &Walk<'_>, (place, message): (NodeId, &[u8])) {
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
        let seq = client.slots.push_share(command, is_quiet, size, self.now);
        let to = ReplyTo::Client { client: id, seq };
        let Parsed::Head(request) = protocol.head(message) else {
            let text = "this request cannot be divided";
            return self.fail(to, &Failed::here(Outcome::LocalError, text));
        };
        self.walk(
            place,
            &Walk {
                request: &request,
                message,
                to,
                ..*of
            },
        );
    }

    /// Notes that the last share of a request was sent. `order`: the share of each key.
    pub(super) fn close_shares(&mut self, id: ClientId, join: &'static Join, order: &[u32]) {
        self.metrics.joins += 1;
        if let Some(client) = self.clients.table.get_mut(id) {
            client.slots.close_shares(join, order, &mut client.stream.out);
            self.flush_later(Endpoint::Client(id));
        }
    }
}
