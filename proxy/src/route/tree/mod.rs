//! The tree that a request walks.

mod each_changed;
mod greeting;
mod near;
mod script;
mod shapes;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use proxima_wire::{hash::Distribution, message::Class};

use super::{FleetPool, StatefulPool, order::Order};
use crate::{
    config::schema::{ErrorReply, RouteWords},
    copies::Snapshot,
    members::{Locality, Member, MemberId},
    near::{Near, Rules},
    protocol::{
        Access, ConsistencyByLogin, CopySupport, Declared, DeclaredCommands, PasswordKey, ProtocolSlot, Reach,
    },
    random::Random,
    spool::Spool,
    tls::Acceptor,
};

pub(super) use self::{
    each_changed::EachChanged,
    greeting::Greeting,
    script::{Ask, Begin, Give, Run, Script, ScriptRequest, Sent, Turn},
    shapes::{
        Asking, Attempt, AttemptRecord, ByAddress, Choose, Fan, Of, Watched, WatchedText, Wrap, Wrapped,
    },
};
pub use self::{
    near::{NearNode, NearRuleFor, Takes},
    shapes::{Query, Wait},
};

/// The position of a node in its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeId(pub u32);

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
        handle: Box<dyn ByAddress>,
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
    /// Answers from kept replies.
    Near(NearNode),
    /// All copies of a replicated pool.
    Copies(Copies),
    /// The end of a walk.
    Leaf(Leaf),
}

/// The copies of a replicated pool.
pub struct Copies {
    /// The protocol's rules for commands to copies.
    pub copied: &'static dyn CopySupport,
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
    /// The same, for what is over the limit of `rate_limit`.
    OverLimit,
    /// The same, and counts it.
    Discard,
    /// Answers this error.
    Error(ErrorReply),
}

/// Where the requests of a listener enter.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) node: NodeId,
    /// Does it choose a member by the key, and nothing else?
    pub(super) is_plain: bool,
}

/// The entry of one listener's requests, and the members that they can reach.
pub(super) struct Root {
    /// Where requests enter now: at the routes, or by what stands before them.
    pub(super) entry: Cell<Entry>,
    /// At the routes, or by the node that times requests, if there is one.
    pub(super) usual: Entry,
    /// By the tap, while somebody watches.
    pub(super) tap: Entry,
    /// The protocol of its clients and of every member below it.
    pub(super) spoken: ProtocolSlot,
    /// What its clients must say before they are served.
    pub(super) access: Access,
    /// TLS with its clients. `None`: they speak plainly.
    pub(super) tls: Option<Arc<Acceptor>>,
    /// The key with which its clients may encrypt passwords where there is no TLS. `None`: they may not.
    pub(super) password_key: Option<Arc<PasswordKey>>,
    /// The pools to which it leads, in one word; and whether the schema of a client chooses among them.
    pub(super) realm: (Box<str>, bool),
    /// How fresh reads are by the routes at its top. `None`: they do not say it.
    pub(super) words: Option<Arc<RouteWords>>,
    /// It is a Unix socket: nobody else reads what its clients say.
    pub(super) is_local: bool,
    /// What its clients are greeted with.
    pub(super) greeting: Greeting,
    /// Every member below it, for commands that go to all.
    pub(super) reach: Vec<Arc<Member>>,
    /// Those of them that serve requests, and do not only get copies of them.
    pub(super) servers: Vec<Arc<Member>>,
    /// A gather over every member below it, for commands that go to all.
    pub(super) broadcast: NodeId,
    /// The nodes of `broadcast` by their numbers, for commands that go to one after the other.
    pub(super) visits: Vec<(u16, NodeId)>,
    /// Does it lead to the embedded store? And does it lead straight there, whatever stands before the routes?
    pub(super) has_store: bool,
    pub(super) is_store: bool,
    /// Does a route below it look at values?
    pub(super) needs_values: bool,
    /// May a route below it hold a request while a later one passes?
    pub(super) may_hold: bool,
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
    /// The pools for which their protocol keeps a state.
    pub(super) stateful: Vec<StatefulPool>,
    /// Where failed deletes are kept, and the nodes whose deletes are, with the name of each there.
    pub(super) spool: Option<Arc<Spool>>,
    pub(super) spooled: HashMap<NodeId, Arc<str>>,
    /// Where replies are kept, and by which rules.
    pub(super) near: Option<(Arc<Near>, Rules)>,
    /// Requests are timed, as slow ones are kept.
    pub(super) times: bool,
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
            stateful: Vec::new(),
            spool: None,
            spooled: HashMap::new(),
            near: None,
            times: false,
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

    /// Are requests timed, as slow ones are kept?
    pub fn times(&self) -> bool {
        self.times
    }

    /// Where failed deletes are kept. `None`: nowhere.
    pub fn spool(&self) -> Option<&Arc<Spool>> {
        self.spool.as_ref()
    }

    /// The near cache. `None`: no reply is kept.
    pub fn near(&self) -> Option<&Arc<Near>> {
        self.near.as_ref().map(|(near, _)| near)
    }

    /// The rules of the near cache.
    pub fn near_rules(&self) -> Option<&Rules> {
        self.near.as_ref().map(|(_, rules)| rules)
    }

    /// Where a delete is kept that the member of this node has not taken, and the name of the node there.
    /// `None`: its client gets the error.
    pub(in crate::route) fn spool_of(&self, id: NodeId) -> Option<(&Arc<Spool>, &Arc<str>)> {
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
        self.roots.get(listener).map(|root| root.entry.get().node)
    }

    /// Has all requests come by a tap that shows some of them to those who watch, or none of them.
    pub fn tap(&self, on: bool) {
        for root in &self.roots {
            root.entry.set(if on { root.tap } else { root.usual });
        }
    }

    /// The protocol of listener number `listener`; `None`: there is no such listener.
    pub fn spoken(&self, listener: usize) -> Option<ProtocolSlot> {
        self.roots.get(listener).map(|root| root.spoken)
    }

    /// The name of each listener's protocol, by number.
    pub fn protocols(&self) -> Vec<&'static str> {
        let roots = self.roots.iter();
        roots.map(|root| root.spoken.protocol.name()).collect()
    }

    /// The members that listener number `listener` can reach.
    pub fn reach(&self, listener: usize) -> &[Arc<Member>] {
        self.roots.get(listener).map_or(&[], |root| &root.reach)
    }

    /// What the configuration declares for the clients of listener number `listener`.
    pub fn declared(&self, listener: usize) -> Declared<'_> {
        let words = self.roots.get(listener).and_then(|root| root.words.as_deref());
        Declared {
            commands: &self.declared,
            consistency: words.map(|words| words as &dyn ConsistencyByLogin),
        }
    }

    /// What the clients of listener number `listener` must say before they are served.
    pub fn access(&self, listener: usize) -> Access {
        self.roots
            .get(listener)
            .map_or(Access::Open, |root| root.access.clone())
    }

    /// TLS with the clients of listener number `listener`. `None`: they speak plainly.
    pub fn tls(&self, listener: usize) -> Option<&Acceptor> {
        self.roots.get(listener)?.tls.as_deref()
    }

    /// The key with which clients of listener number `listener` may encrypt passwords where there is no TLS.
    pub fn password_key(&self, listener: usize) -> Option<&PasswordKey> {
        self.roots.get(listener)?.password_key.as_deref()
    }

    /// The pools to which listener number `listener` leads, in one word; and whether the schema of a client
    /// chooses among them.
    pub fn realm(&self, listener: usize) -> (&str, bool) {
        let root = self.roots.get(listener);
        root.map_or(("", false), |root| (&*root.realm.0, root.realm.1))
    }

    /// Whether listener number `listener` is a Unix socket.
    pub fn is_local(&self, listener: usize) -> bool {
        self.roots.get(listener).is_some_and(|root| root.is_local)
    }

    /// What the clients of listener number `listener` are greeted with, before a member is chosen for them.
    pub fn greeting(&self, listener: usize) -> Arc<[u8]> {
        let Some(root) = self.roots.get(listener) else {
            return Arc::default();
        };
        let its = |member: &&Arc<Member>| root.servers.iter().any(|server| server.id == member.id);
        let mut primaries = self.stateful.iter().filter_map(StatefulPool::primary);
        let first = primaries.find(its).map(|primary| primary.id);
        root.greeting.get(root.spoken.protocol, first, || {
            let (first, others): (Vec<_>, Vec<_>) =
                root.servers.iter().partition(|member| Some(member.id) == first);
            let all = first.into_iter().chain(others);
            all.map(|member| member.said.get()).collect()
        })
    }

    /// What a session may know of the servers that listener number `listener` can reach.
    pub fn reach_of(&self, listener: usize) -> Reach {
        let servers = self.roots.get(listener).map_or(&[][..], |root| &root.servers);
        let first = servers.first();
        Reach {
            is_one: self.is_one(servers) && !self.reaches_store(listener),
            database: first
                .and_then(|member| Some(member.login.as_ref()?.database))
                .unwrap_or(0),
            version: first.map_or(0, |member| member.pool.version.load(Relaxed)),
        }
    }

    /// Are these one server to a client? A primary with its replicas is.
    fn is_one(&self, servers: &[Arc<Member>]) -> bool {
        match self.stateful.is_empty() {
            true => servers.len() == 1,
            false => {
                servers
                    .iter()
                    .filter(|member| self.is_server(member))
                    .take(2)
                    .count()
                    == 1
            }
        }
    }

    /// The pools for which their protocol keeps a state.
    pub fn stateful(&self) -> &[StatefulPool] {
        &self.stateful
    }

    /// Is this member a server of its own to a client, or the one that its whole pool is?
    pub fn is_server(&self, member: &Member) -> bool {
        let is_its = |pool: &&StatefulPool| pool.pool.id == member.pool.id;
        let primary = self.stateful.iter().find(is_its).and_then(StatefulPool::primary);
        primary.is_none_or(|primary| primary.id == member.id)
    }

    /// Does listener number `listener` lead to the embedded store?
    pub fn reaches_store(&self, listener: usize) -> bool {
        self.roots.get(listener).is_some_and(|root| root.has_store)
    }

    /// Is the embedded store all that listener number `listener` leads to, by no route? It is so for those whose
    /// requests come by a tap as well.
    pub fn is_store(&self, listener: usize) -> bool {
        self.roots.get(listener).is_some_and(|root| root.is_store)
    }

    /// Does a route of listener number `listener` look at the values of requests, so that they are held
    /// whole?
    pub fn needs_values(&self, listener: usize) -> bool {
        self.roots.get(listener).is_some_and(|root| root.needs_values)
    }

    /// May a route of listener number `listener` hold a request while a later one passes?
    pub fn may_hold(&self, listener: usize) -> bool {
        self.roots.get(listener).is_some_and(|root| root.may_hold)
    }

    /// Does any listener lead to the embedded store?
    pub fn has_store(&self) -> bool {
        self.roots.iter().any(|root| root.has_store)
    }

    /// Does listener number `listener` lead to members by one choice that can be made for several requests at
    /// once?
    pub fn is_plain(&self, listener: usize) -> bool {
        self.roots
            .get(listener)
            .is_some_and(|root| root.entry.get().is_plain)
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
            Node::Near(_) => "near",
            Node::Copies(_) | Node::Leaf(_) => "another route",
        }
    }

    /// The word for this node, as `explain` has it, and its children.
    pub fn shape(&self, id: NodeId) -> (&str, Vec<NodeId>) {
        let children = match self.node(id) {
            Node::Choose { children, .. }
            | Node::ByClient { children, .. }
            | Node::Gather { children, .. }
            | Node::Fan { children, .. }
            | Node::Attempt { children, .. }
            | Node::Script { children, .. } => children.clone(),
            Node::Copies(copies) => copies.children.clone(),
            Node::Wrap { child, .. } => vec![*child],
            Node::Near(near) => vec![near.child],
            Node::Leaf(_) => Vec::new(),
        };
        let word = match self.node(id) {
            Node::Copies(_) => "copies",
            Node::Leaf(Leaf::Member(_)) => "member",
            Node::Leaf(Leaf::Embedded) => "embedded",
            Node::Leaf(Leaf::Null | Leaf::OverLimit) => "null",
            Node::Leaf(Leaf::Discard) => "dev_null",
            Node::Leaf(Leaf::Error(_)) => "error",
            _ => self.address_of(id),
        };
        (word, children)
    }

    /// The member that this node is; `None`: it is another node.
    pub fn member_at(&self, id: NodeId) -> Option<&Arc<Member>> {
        match self.node(id) {
            Node::Leaf(Leaf::Member(member)) => Some(member),
            _ => None,
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
    pub(in crate::route) fn hashed_below(&self, child: usize, query: &Query<'_>) -> Option<usize> {
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
                Node::Near(near) => near.child,
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
    /// admit the request. An ejected member whose failed deletes are kept is asked to delete: it fails, and
    /// the delete is kept.
    #[inline]
    pub fn is_up(&self, index: usize) -> bool {
        match self.leaf(index) {
            None => true,
            Some((_, member)) if member.is_up() && !member.is_copy() => true,
            Some((id, member)) => self.is_admitted(id, member),
        }
    }

    fn is_admitted(&self, id: NodeId, member: &Member) -> bool {
        let is_kept = || self.class == Class::Delete && self.tree.spool_of(id).is_some();
        let admits = || !member.is_copy() || self.snapshot.admits(member.id, self.class);
        (member.is_up() || is_kept()) && admits()
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
                Node::Near(near) => id = near.child,
                _ => return None,
            }
        }
    }
}
