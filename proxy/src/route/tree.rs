//! The tree that a request walks.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    net::IpAddr,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use proxima_wire::{
    hash::Distribution,
    message::{Class, Outcome, Request},
};

use super::{
    Answer, Answers, FleetPool, FlightId,
    handle::{ByClient, Random},
    order::Order,
};
use crate::{
    client::ClientId,
    config::schema::ErrorReply,
    copies::Snapshot,
    dialect::{Access, Copied, DeclaredCommands, Dialect, Reach, Spoken},
    members::{Locality, Member, MemberId},
    metrics::FailoverCounts,
    micros::Micros,
    spool::Spool,
};

/// The position of a node in its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeId(pub u32);

/// The inputs of a decision. Time and chance come as arguments, so that a walk can be repeated.
#[derive(Clone, Copy)]
pub struct Query<'a> {
    /// The number of the command in its dialect.
    pub command: u16,
    /// The class of the request: read, write and so on.
    pub class: Class,
    /// The key as the server will see it: decoded, and without the prefix that a wrapping route removes.
    pub key: &'a [u8],
    /// The protocol of the request.
    pub dialect: &'static dyn Dialect,
    /// The place of the client.
    pub locality: Locality,
    /// The present time, since 1970.
    pub unix: Micros,
}

/// Looks at the request and the members' states, names one child, and keeps nothing.
pub trait Choose: Send {
    /// The name of the route, as in the configuration.
    fn name(&self) -> &'static str;
    /// The child to go on with. A number beyond the children is answered with a local error.
    fn choose(&self, query: &Query<'_>, children: &Children<'_>, random: &mut Random) -> usize;
    /// The children of four keys, while all children are up. This is for decisions that look at the key alone
    /// and are faster for four keys at once. `None`: the caller has to ask for each key.
    fn choose_four(&self, _keys: [&[u8]; 4]) -> Option<[usize; 4]> {
        None
    }
    /// May [`choose_four`](Self::choose_four) name children, if all are up?
    fn chooses_four(&self) -> bool {
        self.choose_four([b""; 4]).is_some()
    }
    /// Does this route choose by a hash of the key among the members of a pool?
    fn is_hash(&self) -> bool {
        false
    }
    /// Takes another order of its children, where its order depends on distances. `None`: the order of the
    /// tree.
    fn set_order(&self, _order: Option<&Arc<Order>>) {}
    /// Does this route ask its children in the order of their distances?
    fn is_by_distance(&self) -> bool {
        false
    }
    /// The reason for the choice of that child, for people.
    fn why(&self, query: &Query<'_>, children: &Children<'_>, chosen: usize) -> String;
}

/// Sends to one child, whose reply is the answer. Others get copies of the request, for which nobody waits.
pub trait Fan: Send {
    /// The name of the route, as in the configuration.
    fn name(&self) -> &'static str;
    /// The child whose reply is the answer. A number beyond the children is answered with a local error. The
    /// children that get copies are added to `others`.
    fn choose(&self, query: &Query<'_>, random: &mut Random, others: &mut Vec<u32>) -> usize;
    /// The reason for the choice, for people.
    fn why(&self, query: &Query<'_>) -> String;
}

/// Sends to one child, whose reply decides whether to go on.
pub trait Attempt: Send {
    /// The name of the route, as in the configuration.
    fn name(&self) -> &'static str;
    /// The child to ask after the last one has given this answer. `None`: the answer is final.
    fn next(
        &self,
        query: &Query<'_>,
        tried: &mut Tried,
        children: &Children<'_>,
        answer: &Answer<'_>,
    ) -> Option<usize>;
    /// The child that is next in the order, if any answer leads there.
    fn follow(&self, query: &Query<'_>, tried: &Tried, children: &Children<'_>) -> Option<usize>;
    /// Takes what was counted since the last call.
    fn take_counts(&self) -> FailoverCounts {
        FailoverCounts::default()
    }
    /// Does this route answer with the best reply, rather than the last one, when no reply was final?
    fn best_on_failure(&self) -> bool {
        false
    }
    /// Is there any answer of the first child after which another child is asked for this request?
    fn goes_on(&self, query: &Query<'_>) -> bool;
    /// The answers after which the next child is asked, for people.
    fn why(&self) -> String;
}

/// The children that an attempt has asked for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The child that was asked last.
    pub child: usize,
    /// The number of children that were asked, or passed by as ejected.
    pub count: u32,
    /// Of these, the failures that count against a limit of failures.
    pub errors: u32,
    /// Of these, the failures that count against no limit.
    pub excluded: u32,
    /// A bit for each of the first 64 children that was asked.
    pub seen: u64,
}

impl Tried {
    /// This child alone.
    pub const fn first(child: usize) -> Self {
        Self {
            child,
            count: 1,
            errors: 0,
            excluded: 0,
            seen: Self::bit(child),
        }
    }

    /// This child as well.
    pub const fn add(&mut self, child: usize) {
        self.child = child;
        self.count += 1;
        self.seen |= Self::bit(child);
    }

    /// Was this child, one of the first 64, asked?
    pub const fn has(&self, child: usize) -> bool {
        self.seen & Self::bit(child) != 0
    }

    const fn bit(child: usize) -> u64 {
        if child < 64 { 1 << child } else { 0 }
    }
}

/// Serves a request in several steps, each of which may ask a child for something else.
pub trait Script: Send {
    /// The name of the route, as in the configuration.
    fn name(&self) -> &'static str;
    /// Decides how a request begins. Its message is whole.
    fn begin(&self, asked: &Asked<'_>) -> Begin;
    /// Does it look at the values of requests? They are held whole then.
    fn needs_values(&self) -> bool {
        false
    }
    /// The steps, for people.
    fn why(&self) -> String;
}

/// A request, as a script sees it.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The parsed request.
    pub request: &'a Request,
    /// Its bytes.
    pub message: &'a [u8],
    /// The name of its command.
    pub command: &'static str,
    /// Its key as the server will see it.
    pub key: &'a [u8],
    /// The present time, since 1970.
    pub unix: Micros,
    /// Bytes of the largest value that a client may store.
    pub largest: usize,
    /// A random number.
    pub chance: u64,
}

/// How a script begins.
pub enum Begin {
    /// The request goes on to this child.
    Pass(usize),
    /// The request goes to these children. The reply of the first one is the answer.
    Send(Vec<Sent>),
    /// The request is served in steps.
    Run(Box<dyn Run>, Turn),
    /// The request gets this error.
    Fail(Outcome, &'static str),
}

impl Begin {
    /// The request goes to both children as it is, and the first one answers.
    pub fn copy(first: usize, other: usize) -> Self {
        let sent = [first, other].map(|child| Sent { child, head: None });
        Self::Send(sent.into())
    }
}

/// A request as a child gets it.
pub struct Sent {
    /// The child.
    pub child: usize,
    /// The head of the request; `None`: the client's own.
    pub head: Option<Vec<u8>>,
}

/// The state of one request that is served in steps.
pub trait Run {
    /// The next step, after this answer to what was asked under this number.
    fn next(&mut self, asked: &Asked<'_>, number: u32, answer: &Answer<'_>) -> Turn;
    /// Bytes of values that it keeps.
    fn holds(&self) -> usize {
        0
    }
}

/// A step.
#[derive(Default)]
pub struct Turn {
    /// What the client gets; `None`: nothing yet, or nothing more.
    pub give: Option<Give>,
    /// What is asked next.
    pub asks: Vec<Ask>,
}

impl Turn {
    /// Asks this child for the client's own request.
    pub fn own(child: usize, number: u32) -> Self {
        Self::default().and_own(child, number)
    }

    /// Asks this child for something else.
    pub fn ask(child: usize, number: u32, made: Vec<u8>) -> Self {
        Self::default().and_ask(child, number, made)
    }

    /// Gives the client this, and asks for nothing.
    pub fn give(give: Give) -> Self {
        Self {
            give: Some(give),
            asks: Vec::new(),
        }
    }

    /// Asks this child for the client's own request as well.
    #[must_use]
    pub fn and_own(mut self, child: usize, number: u32) -> Self {
        self.asks.push(Ask {
            child,
            number: Some(number),
            made: None,
        });
        self
    }

    /// Asks this child for something else as well.
    #[must_use]
    pub fn and_ask(mut self, child: usize, number: u32, made: Vec<u8>) -> Self {
        self.asks.push(Ask {
            child,
            number: Some(number),
            made: Some(made),
        });
        self
    }

    /// Sends this to a child, whose answer nobody gets.
    #[must_use]
    pub fn and_tell(mut self, child: usize, made: Vec<u8>) -> Self {
        self.asks.push(Ask {
            child,
            number: None,
            made: Some(made),
        });
        self
    }
}

/// The answer to a client.
pub enum Give {
    /// The answer that has just come.
    This,
    /// An answer that has come before.
    Kept(Answers),
    /// This reply, which is one to the client's command.
    Made(Vec<u8>),
    /// What an empty cache answers.
    Miss,
    /// This error.
    Fail(Outcome, &'static str),
}

/// Something that a step asks.
pub struct Ask {
    /// The child that is asked.
    pub child: usize,
    /// The number under which the answer comes; `None`: nobody waits for it.
    pub number: Option<u32>,
    /// The request; `None`: the client's own.
    pub made: Option<Vec<u8>>,
}

/// The decision of a wrap about a request on its way down.
#[derive(Debug, PartialEq, Eq)]
pub enum Wrapped {
    /// The request goes on unchanged, and the wrap need not see the reply.
    Pass,
    /// The request goes on unchanged, and the reply is shown to [`Wrap::reply`].
    Watch,
    /// As `Watch`, and the reply is held until this time has passed since the request came.
    Pace(Micros),
    /// The request goes on with this key, and the reply gets the client's own key back.
    Key(Vec<u8>),
    /// The request goes on with this expiry, in seconds, as the protocol writes it.
    Ttl(i64),
    /// The request goes on after this time.
    Delay(Micros),
    /// The request waits until the wrap [names](Wrap::left) it.
    Queue,
    /// The request waits until the wrap, asked again, decides otherwise. It fails when this time has passed.
    Park(Micros),
    /// The request fails with this outcome and this text.
    Fail(Outcome, String),
}

/// Changes or holds a request or its reply around one child.
pub trait Wrap: Send {
    /// The name of the route, as in the configuration.
    fn name(&self) -> &'static str;
    /// Decides about a request.
    fn request(&self, request: &Request, message: &[u8], query: &Query<'_>, random: &mut Random) -> Wrapped;
    /// Does the client's own key have to be put back into replies?
    fn changes_key(&self) -> bool {
        false
    }
    /// Does it name the client that waits for an answer?
    fn names_client(&self) -> bool {
        false
    }
    /// Sees the answer to a request that it watches, and holds it for so long. `client`: the address of the
    /// client that waits for it, if it [names](Wrap::names_client) that.
    fn reply(
        &self,
        _key: &[u8],
        _command: &'static str,
        _client: Option<IpAddr>,
        _answer: &Answer<'_>,
    ) -> Micros {
        Micros::ZERO
    }
    /// Takes a request into its queue. `client`: the client that waits for the answer.
    fn enqueue(&self, _flight: FlightId, _client: Option<ClientId>) {}
    /// A request that it watches is answered. Returns a request from its queue that goes on in its place.
    fn left(&self) -> Option<FlightId> {
        None
    }
    /// The effect of this wrap, for people.
    fn why(&self) -> String;
}

/// The rule by which a gather has its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The gather waits for all children, and answers with the worst reply.
    All,
    /// The gather answers with the reply that more than half of the children agree on. Without a majority it
    /// answers with the most frequent reply; between equals, the worst.
    Majority,
    /// The gather answers with the first reply that is no failover error, else with the last reply.
    Fastest,
    /// The gather answers with the first child's reply.
    Initial,
    /// The gather answers with the first reply that has the key, else with the last reply.
    Hit,
    /// The gather waits for no child, and answers a miss at once.
    None,
}

/// One node of a tree.
pub enum Node {
    /// Names one child and keeps nothing.
    Choose {
        /// The decision.
        handle: Box<dyn Choose>,
        /// The children that it chooses from.
        children: Vec<NodeId>,
    },
    /// Names one child by the client's address.
    ByClient {
        /// The decision.
        handle: ByClient,
        /// The children that it chooses from.
        children: Vec<NodeId>,
    },
    /// Sends to all children.
    Gather {
        /// The name of the route, as in the configuration.
        name: &'static str,
        /// The rule by which it has its answer.
        wait: Wait,
        /// The children that it sends to.
        children: Vec<NodeId>,
    },
    /// Sends to one child, and copies to others.
    Fan {
        /// The decision.
        handle: Box<dyn Fan>,
        /// The children that it chooses from.
        children: Vec<NodeId>,
    },
    /// Sends to one child after the other, as their replies decide.
    Attempt {
        /// The decision.
        handle: Box<dyn Attempt>,
        /// The children, in the order in which they are asked.
        children: Vec<NodeId>,
    },
    /// Serves requests in several steps.
    Script {
        /// The decisions.
        handle: Box<dyn Script>,
        /// The children that it may ask.
        children: Vec<NodeId>,
    },
    /// Changes or holds a request around one child.
    Wrap {
        /// The decision.
        handle: Box<dyn Wrap>,
        /// The child that gets the request.
        child: NodeId,
    },
    /// All copies of a replicated pool.
    Copies(Copies),
    /// The end of a walk.
    Leaf(Leaf),
}

/// The copies of a replicated pool.
pub struct Copies {
    /// The protocol's rules for commands to copies.
    pub copied: &'static dyn Copied,
    /// The members in the order of the pool, and behind them the departed ones.
    pub children: Vec<NodeId>,
    /// The positions of the members, the nearest first.
    pub nearest: Vec<usize>,
    /// The same by the client's locality, while a node agent is followed.
    pub order: RefCell<Option<Arc<Order>>>,
    /// The number of copies that must have taken a write.
    pub min_acks: usize,
    /// Names the home of each key, the copy that computes its value. `None`: every copy computes it by
    /// itself.
    pub home: Option<Arc<Distribution>>,
    /// The pool as its peers know it; `None`: this proxy reaches every copy itself.
    pub fleet: Option<FleetPool>,
}

impl Copies {
    /// The nearest readable copy for a client at this place; `None`: no copy is readable.
    #[inline(always)]
    pub fn nearest(&self, client: Locality, is_readable: impl Fn(usize) -> bool) -> Option<usize> {
        if client != Locality::NONE
            && let Some(order) = self.order.borrow().as_deref()
        {
            return order.of(client).find(|&child| is_readable(child));
        }
        self.nearest.iter().copied().find(|&child| is_readable(child))
    }
}

/// The end of a walk.
#[derive(Clone)]
pub enum Leaf {
    /// Sends to this member.
    Member(Arc<Member>),
    /// Asks the store in this process.
    Embedded,
    /// Answers a miss.
    Null,
    /// The same, and counts it.
    Discard,
    /// Answers this error.
    Error(ErrorReply),
}

/// The entry of one listener's requests, and the members that they can reach.
pub(super) struct Root {
    pub(super) node: NodeId,
    /// The protocol of its clients and of every member below it.
    pub(super) spoken: Spoken,
    /// What its clients must say before they are served.
    pub(super) access: Access,
    /// Every member below it, for commands that go to all.
    pub(super) reach: Vec<Arc<Member>>,
    /// A gather over every member below it, for commands that go to all.
    pub(super) broadcast: NodeId,
    /// The nodes of `broadcast` by their numbers, for commands that go to one after the other.
    pub(super) visits: Vec<(u16, NodeId)>,
    /// Does it lead to the embedded store?
    pub(super) has_store: bool,
    /// Does a route below it look at values?
    pub(super) needs_values: bool,
    /// Does it choose a member by the key, and nothing else?
    pub(super) is_plain: bool,
    /// The largest number of members that one request is sent to at once.
    pub(super) fanout: u32,
}

/// The routes of one configuration. Each worker has its own tree, so that handles may keep state (a counter)
/// without sharing it.
pub struct Tree {
    pub(super) nodes: Vec<Node>,
    /// The entries, by the number of the listener.
    pub(super) roots: Vec<Root>,
    pub(super) has_fleet_pool: bool,
    /// Where failed deletes are kept, and the nodes whose deletes are, with the name of each there.
    pub(super) spool: Option<Arc<Spool>>,
    pub(super) spooled: HashMap<NodeId, Arc<str>>,
    /// The commands that the configuration declares.
    pub(super) declared: DeclaredCommands,
    /// The numbers of all its members.
    pub(super) numbers: HashSet<MemberId>,
    /// The version of the configuration, which tells it from every other one.
    pub version: Arc<str>,
}

impl Tree {
    /// A tree without listeners.
    pub fn empty() -> Self {
        Self {
            nodes: Vec::new(),
            roots: Vec::new(),
            has_fleet_pool: false,
            spool: None,
            spooled: HashMap::new(),
            declared: DeclaredCommands::new(),
            numbers: HashSet::new(),
            version: "none".into(),
        }
    }

    /// The node of this number, which must be of this tree.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// All nodes with their positions.
    pub fn all(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes.iter().zip(0..).map(|(node, id)| (NodeId(id), node))
    }

    /// Does it have a pool of a fleet?
    pub fn has_fleet_pool(&self) -> bool {
        self.has_fleet_pool
    }

    /// Where failed deletes are kept. `None`: nowhere.
    pub fn spool(&self) -> Option<&Arc<Spool>> {
        self.spool.as_ref()
    }

    /// Where a delete is kept that the member of this node has not taken, and the name of the node there.
    /// `None`: its client gets the error.
    pub fn spool_of(&self, id: NodeId) -> Option<(&Arc<Spool>, &Arc<str>)> {
        self.spool.as_ref().zip(self.spooled.get(&id))
    }

    /// The copies of this node; `None`: the node is no replicated pool.
    pub fn copies(&self, id: NodeId) -> Option<&Copies> {
        match self.node(id) {
            Node::Copies(copies) => Some(copies),
            _ => None,
        }
    }

    /// The node where the requests of listener number `listener` enter; `None`: there is no such listener.
    pub fn root(&self, listener: usize) -> Option<NodeId> {
        self.roots.get(listener).map(|root| root.node)
    }

    /// The protocol of listener number `listener`; `None`: there is no such listener.
    pub fn spoken(&self, listener: usize) -> Option<Spoken> {
        self.roots.get(listener).map(|root| root.spoken)
    }

    /// The members that listener number `listener` can reach.
    pub fn reach(&self, listener: usize) -> &[Arc<Member>] {
        self.roots.get(listener).map_or(&[], |root| &root.reach)
    }

    /// The commands that the configuration declares.
    pub fn declared(&self) -> &DeclaredCommands {
        &self.declared
    }

    /// What the clients of listener number `listener` must say before they are served.
    pub fn access(&self, listener: usize) -> Access {
        self.roots
            .get(listener)
            .map_or(Access::Open, |root| root.access.clone())
    }

    /// What a session may know of the servers that listener number `listener` can reach.
    pub fn reach_of(&self, listener: usize) -> Reach {
        let reach = self.reach(listener);
        Reach {
            is_one: reach.len() == 1 && !self.reaches_store(listener),
            database: reach
                .first()
                .and_then(|member| Some(member.login.as_ref()?.database))
                .unwrap_or(0),
            version: reach
                .first()
                .map_or(0, |member| member.pool.version.load(Relaxed)),
        }
    }

    /// Does listener number `listener` lead to the embedded store?
    pub fn reaches_store(&self, listener: usize) -> bool {
        self.roots.get(listener).is_some_and(|root| root.has_store)
    }

    /// Does a route of listener number `listener` look at the values of requests, so that they are held whole?
    pub fn needs_values(&self, listener: usize) -> bool {
        self.roots.get(listener).is_some_and(|root| root.needs_values)
    }

    /// Does any listener lead to the embedded store?
    pub fn has_store(&self) -> bool {
        self.roots.iter().any(|root| root.has_store)
    }

    /// Does listener number `listener` lead to members by one choice that can be made for several requests at
    /// once?
    pub fn is_plain(&self, listener: usize) -> bool {
        self.roots.get(listener).is_some_and(|root| root.is_plain)
    }

    /// The bytes that may wait for servers because of one request of `bytes` bytes to listener number
    /// `listener`. A read is counted once, because a read that goes to several members is short.
    #[inline]
    pub fn cost(&self, listener: usize, class: Class, bytes: usize) -> u32 {
        let times = match class {
            Class::Read => 1,
            _ => self.roots.get(listener).map_or(1, |root| root.fanout),
        };
        (bytes as u32).saturating_mul(times)
    }

    /// The tree's members, in the order of their numbers.
    pub fn members(&self) -> Vec<Arc<Member>> {
        let mut found = BTreeMap::new();
        for node in &self.nodes {
            if let Node::Leaf(Leaf::Member(member)) = node {
                found.insert(member.id, Arc::clone(member));
            }
        }
        found.into_values().collect()
    }

    /// The members that this tree has and `next` has not.
    pub fn gone<'a>(&'a self, next: &'a Self) -> impl Iterator<Item = MemberId> + 'a {
        self.numbers.difference(&next.numbers).copied()
    }

    /// Does anything in this tree lead to that member?
    pub fn names(&self, member: MemberId) -> bool {
        self.numbers.contains(&member)
    }

    /// Does every key that comes to this node go the same way from there?
    pub fn is_settled(&self, id: NodeId) -> bool {
        match self.node(id) {
            Node::Leaf(_) | Node::Copies(_) => true,
            Node::Choose { children, .. } => matches!(children[..], [only] if self.is_settled(only)),
            Node::ByClient { children, .. }
            | Node::Gather { children, .. }
            | Node::Attempt { children, .. } => children.iter().all(|&child| self.is_settled(child)),
            // These may look at the key.
            Node::Wrap { .. } | Node::Fan { .. } | Node::Script { .. } => false,
        }
    }

    /// The address of the member that this node is; the name of the route if it is none.
    pub fn address_of(&self, id: NodeId) -> &str {
        match self.node(id) {
            Node::Leaf(Leaf::Member(member)) => &member.address,
            Node::Choose { handle, .. } => handle.name(),
            Node::Attempt { handle, .. } => handle.name(),
            Node::Wrap { handle, .. } => handle.name(),
            Node::ByClient { handle, .. } => handle.name(),
            Node::Fan { handle, .. } => handle.name(),
            Node::Script { handle, .. } => handle.name(),
            Node::Gather { name, .. } => name,
            Node::Copies(_) | Node::Leaf(_) => "another route",
        }
    }

    /// The nodes of all members that listener number `listener` can reach.
    pub fn everywhere(&self, listener: usize) -> &[NodeId] {
        let node = self.broadcast(listener).map(|node| self.node(node));
        match node {
            Some(Node::Gather { children, .. }) => children,
            _ => &[],
        }
    }

    /// The same nodes with their numbers, in ascending order. A member's number follows from its name, so
    /// that it is the same in every process.
    pub fn visits(&self, listener: usize) -> &[(u16, NodeId)] {
        self.roots.get(listener).map_or(&[], |root| &root.visits)
    }

    /// The node that sends to every member that listener number `listener` can reach.
    pub fn broadcast(&self, listener: usize) -> Option<NodeId> {
        self.roots.get(listener).map(|root| root.broadcast)
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tree({}, {} nodes)", self.version, self.nodes.len())
    }
}

/// The children of one node, as the node's decision sees them.
#[derive(Clone, Copy)]
pub struct Children<'a> {
    /// The tree of the node.
    pub tree: &'a Tree,
    /// The children.
    pub ids: &'a [NodeId],
    /// The worker's snapshot of the copies' states.
    pub snapshot: &'a Snapshot,
    /// The class of the request.
    pub class: Class,
}

impl<'a> Children<'a> {
    /// The number of children.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Is there no child?
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The position of the child that the nearest hash below this child chooses for a key; `None`: the key
    /// leads to no hash.
    pub fn hashed_below(&self, child: usize, query: &Query<'_>) -> Option<usize> {
        let mut id = *self.ids.get(child)?;
        loop {
            id = match self.tree.node(id) {
                Node::Choose { handle, children } => {
                    let choices = Children {
                        ids: children,
                        ..*self
                    };
                    let chosen = handle.choose(query, &choices, &mut Random(0));
                    if handle.is_hash() {
                        return Some(chosen);
                    }
                    *children.get(chosen)?
                }
                Node::Wrap { child, .. } => *child,
                Node::Fan { handle, children } => {
                    *children.get(handle.choose(query, &mut Random(0), &mut Vec::new()))?
                }
                // A pool of one server has no hash.
                Node::Leaf(Leaf::Member(_)) => return Some(0),
                _ => return None,
            };
        }
    }

    /// May this child be asked? Every child may, except an ejected member and a copy whose state does not
    /// admit the request. An ejected member whose failed deletes are kept is asked to delete: it fails, and the
    /// delete is kept.
    pub fn is_up(&self, index: usize) -> bool {
        self.leaf(index).is_none_or(|(id, member)| {
            let is_kept = || self.class == Class::Delete && self.tree.spool_of(id).is_some();
            let admits = || !member.is_copy() || self.snapshot.admits(member.id, self.class);
            (member.is_up() || is_kept()) && admits()
        })
    }

    /// The member that this child is, directly or below wraps; `None`: the child is no member.
    pub fn member(&self, index: usize) -> Option<&'a Arc<Member>> {
        self.leaf(index).map(|(_, member)| member)
    }

    fn leaf(&self, index: usize) -> Option<(NodeId, &'a Arc<Member>)> {
        let mut id = *self.ids.get(index)?;
        loop {
            match self.tree.node(id) {
                Node::Leaf(Leaf::Member(member)) => return Some((id, member)),
                Node::Wrap { child, .. } => id = *child,
                _ => return None,
            }
        }
    }
}
