//! A request whose keys are at several members becomes one request for each of them. Its reply is made of
//! theirs.

use proxima_wire::message::{Outcome, Parsed, Request, Span};

use super::{
    ClientId, Part,
    session::{Input, REMOVED},
    split::OUT_OF_MEMORY,
};
use crate::{
    dialect::{Failed, Join, Session},
    engine::{Engine, Peer},
    members::MemberId,
    route::{Leaf, Node, NodeId, Origin, ReplyTo, Tree, Walk},
};

/// Buffers of [`Engine::spread_keys`], which are used again.
#[derive(Debug, Default)]
pub(super) struct Spreading {
    keys: Vec<Span>,
    /// The place of each key in the tree.
    places: Vec<NodeId>,
    /// The places without repetition; with the key that a request has for itself alone.
    groups: Vec<(NodeId, Option<u32>)>,
    /// The group of each key.
    order: Vec<u16>,
    message: Vec<u8>,
}

impl Spreading {
    /// Are there no keys?
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Are all keys at one place, and at this member, if there is one?
    pub(super) fn is_at_one_place(&self, own: Option<MemberId>, tree: &Tree) -> bool {
        let is_own = |&place: &NodeId| match (own, tree.node(place)) {
            (Some(own), Node::Leaf(Leaf::Member(member))) => member.id == own,
            _ => true,
        };
        let is_one = |place: &NodeId| Some(place) == self.places.first();
        self.places.iter().all(|place| is_one(place) && is_own(place))
    }

    /// Forgets the keys.
    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.places.clear();
    }
}

impl Engine {
    /// Serves a request with several keys. It goes to one place as it is, if all its keys are there.
    /// Otherwise it is divided if it `divides`.
    pub(super) fn spread_keys(
        &mut self,
        id: ClientId,
        request: &Request,
        message: &[u8],
        divides: bool,
        input: &Input<'_>,
    ) {
        if self.clients.over_memory {
            return self.refuse(id, request, &Failed::here(Outcome::Overloaded, OUT_OF_MEMORY));
        }
        let Some(origin) = self.clients.table.get(id).map(|client| client.origin()) else {
            return;
        };
        let tree = input.tree;
        let Some(root) = tree.root(usize::from(origin.listener)) else {
            return self.refuse(id, request, &Failed::here(Outcome::LocalError, REMOVED));
        };
        let mut spreading = std::mem::take(&mut self.clients.spreading);
        let walk = Walk {
            tree,
            origin,
            request,
            message,
            to: ReplyTo::Nobody,
        };
        self.locate_keys(root, &walk, &mut spreading);
        let places = &spreading.places;
        let first = places.first().copied().unwrap_or(root);
        if places.iter().all(|&place| place == first) && tree.is_settled(first) {
            self.metrics.listener(origin.listener).fragments += u64::from(divides);
            self.route(id, request, message, input);
        } else if divides && let Some(join) = origin.dialect.spread(request) {
            self.divide(id, &walk, root, &mut spreading, join);
        } else {
            let is_answered = self.refuse_apart(id, &walk, &spreading, None);
            if !is_answered {
                let text = "the keys of this request are at several servers";
                self.refuse(id, request, &Failed::here(Outcome::LocalError, text));
            }
        }
        spreading.clear();
        self.clients.spreading = spreading;
    }

    /// Finds the keys of a request and the place of each in the tree.
    pub(super) fn locate_keys(&mut self, root: NodeId, walk: &Walk<'_>, spreading: &mut Spreading) {
        let (dialect, message) = (walk.origin.dialect, walk.message);
        let Spreading { keys, places, .. } = spreading;
        dialect.keys(walk.request, message, &mut |key| keys.push(key));
        places.extend(keys.iter().map(|key| self.place(root, walk, key.of(message))));
    }

    /// Answers that the keys of a request are not at one place, or not at the server of the client's own
    /// lane. Returns `false` if the protocol has no words for it.
    pub(super) fn refuse_apart(
        &mut self,
        id: ClientId,
        walk: &Walk<'_>,
        spreading: &Spreading,
        own: Option<&str>,
    ) -> bool {
        let Spreading { keys, places, .. } = spreading;
        let of = |at: usize| {
            let key = keys.get(at).map(|key| key.of(walk.message)).unwrap_or_default();
            let place = places.get(at).map_or("", |&place| walk.tree.address_of(place));
            (key, place)
        };
        let other = places.iter().position(|place| Some(place) != places.first());
        let Some(client) = self.clients.table.get_mut(id) else {
            return true;
        };
        let mut reply = Vec::new();
        let apart = match (own, other) {
            (Some(own), None) => [(&b"what the transaction has begun with"[..], own), of(0)],
            _ => [of(0), of(other.unwrap_or(1))],
        };
        let is_worded = client.dialect.apart(
            client.session.or(&mut Session::default()),
            walk.request,
            walk.message,
            apart,
            &mut reply,
        );
        if is_worded {
            self.answer_here(id, &reply, walk.request.is_quiet);
        }
        is_worded
    }

    /// Sends one request to each of several places.
    fn divide(
        &mut self,
        id: ClientId,
        walk: &Walk<'_>,
        root: NodeId,
        spreading: &mut Spreading,
        join: &'static Join,
    ) {
        let Spreading {
            places,
            groups,
            order,
            message,
            ..
        } = spreading;
        for (key, &place) in places.iter().enumerate() {
            // A step below this place may send the keys to different members: each of them walks alone.
            let group = match walk.tree.is_settled(place) {
                true => (place, None),
                false => (root, Some(key as u32)),
            };
            let known = groups.iter().position(|&other| other == group);
            if known.is_none() {
                groups.push(group);
            }
            order.push(known.unwrap_or(groups.len() - 1) as u16);
        }
        self.metrics.listener(walk.origin.listener).fragments += groups.len() as u64;
        for (number, &(place, _)) in groups.iter().enumerate() {
            let mut of_group = order
                .iter()
                .enumerate()
                .filter(|&(_, &group)| usize::from(group) == number)
                .map(|(key, _)| key);
            walk.origin
                .dialect
                .part(walk.request, walk.message, &mut of_group, message);
            self.send_share(id, walk.tree, walk.origin, walk.request, (place, message));
            message.clear();
        }
        self.close_shares(id, join, order);
        groups.clear();
        order.clear();
    }

    /// Sends a request to every member that the client can reach, and joins the replies.
    pub(super) fn spread_everywhere(
        &mut self,
        id: ClientId,
        request: &Request,
        message: &[u8],
        input: &Input<'_>,
    ) {
        let Some(client) = self.clients.table.get(id) else {
            return;
        };
        let (origin, tree) = (client.origin(), input.tree);
        let places = tree.everywhere(usize::from(origin.listener));
        match (places, origin.dialect.spread(request)) {
            ([_, _, ..], Some(join)) => {
                for &place in places {
                    self.send_share(id, tree, origin, request, (place, message));
                }
                self.close_shares(id, join, &[]);
            }
            _ => self.route(id, request, message, input),
        }
    }

    /// Sends a request to one of the members that the client can reach, as the codec says.
    pub(super) fn visit(&mut self, id: ClientId, request: &Request, message: &[u8], input: &Input<'_>) {
        let Some(client) = self.clients.table.get(id) else {
            return;
        };
        let (origin, tree) = (client.origin(), input.tree);
        let visits = tree.visits(usize::from(origin.listener));
        let numbers: Vec<u16> = visits.iter().map(|&(number, _)| number).collect();
        let mut out = Vec::new();
        let visited = origin.dialect.visit(message, &numbers, &mut out);
        match (visited, origin.dialect.spread(request)) {
            (Some(at), Some(join)) if let Some(&(number, place)) = visits.get(at) => {
                self.send_share(id, tree, origin, request, (place, &out));
                let next = visits.get(at + 1).map_or(0, |&(next, _)| next + 1);
                self.close_shares(id, join, &[number + 1, next]);
            }
            _ => self.answer_here(id, &out, request.is_quiet),
        }
    }

    fn send_share(
        &mut self,
        id: ClientId,
        tree: &std::rc::Rc<Tree>,
        origin: Origin,
        of: &Request,
        (place, message): (NodeId, &[u8]),
    ) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        let size = tree.cost(usize::from(origin.listener), of.class, message.len());
        let seq = client
            .slots
            .push(of.command, of.is_quiet, Part::Share, size, self.now);
        let to = ReplyTo::Client { client: id, seq };
        let Parsed::Head(request) = origin.dialect.head(message) else {
            let text = "this request cannot be divided";
            return self.fail(to, &Failed::here(Outcome::LocalError, text));
        };
        let walk = Walk {
            tree,
            origin,
            request: &request,
            message,
            to,
        };
        self.walk(place, &walk);
    }

    fn close_shares(&mut self, id: ClientId, join: &'static Join, order: &[u16]) {
        self.metrics.joins += 1;
        if let Some(client) = self.clients.table.get_mut(id) {
            client.slots.close_shares(join, order, &mut client.stream.out);
            self.flush_later(Peer::Client(id));
        }
    }
}
