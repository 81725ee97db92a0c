//! The tree that a request walks.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashSet},
    fmt,
    sync::Arc,
};

use proxima_wire::{
    hash::Distribution,
    message::{Class, Outcome, Request},
};

use super::{Answer, handle::Random, order::Order};
use crate::{
    copies::Snapshot,
    dialect::{Copied, Dialect, Spoken},
    members::{Locality, Member, MemberId},
    micros::Micros,
};

/// Position of a node in its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeId(pub u32);

/// What a decision may look at. Time and chance come as arguments, so that a walk can be repeated.
pub struct Query<'a> {
    pub command: u16,
    pub class: Class,
    /// The key as the server will see it (decoded, without what a wrapping route removes).
    pub key: &'a [u8],
    pub dialect: &'static dyn Dialect,
    /// Where the client is.
    pub locality: Locality,
}

/// Looks at the request and the members' states, names one child, keeps nothing.
pub trait Choose: Send {
    fn name(&self) -> &'static str;
    /// The child to go on with; anything beyond the children is answered with a local error.
    fn choose(&self, query: &Query<'_>, children: &Children<'_>, random: &mut Random) -> usize;
    /// The children of four keys, while all children are up: for decisions that look at the key alone and are faster made
    /// for four. None: ask for each.
    fn choose_four(&self, _keys: [&[u8]; 4]) -> Option<[usize; 4]> {
        None
    }
    /// Takes another order of its children, where it has one that depends on distances; `None`: the order in which they stand.
    fn set_order(&self, _order: Option<&Arc<Order>>) {}
    /// Does it ask its children in the order of their distances?
    fn is_by_distance(&self) -> bool {
        false
    }
    /// Why that child, for people.
    fn why(&self, query: &Query<'_>, children: &Children<'_>, chosen: usize) -> String;
}

/// Sends to one; its reply decides whether to go on.
pub trait Attempt: Send {
    fn name(&self) -> &'static str;
    /// The child to ask after child `tried` has answered so. `None`: that is the answer.
    fn next(&self, query: &Query<'_>, tried: usize, children: usize, answer: &Answer<'_>) -> Option<usize>;
    /// When nobody gave a final answer: the best reply rather than the last one?
    fn best_on_failure(&self) -> bool {
        false
    }
    /// May another child than the first be asked for this, whatever the first one answers?
    fn goes_on(&self, query: &Query<'_>) -> bool;
    /// What it goes on after, for people.
    fn why(&self) -> String;
}

/// What a wrap does to a request on its way down.
#[derive(Debug, PartialEq, Eq)]
pub enum Wrapped {
    /// As it is, and the reply need not be seen.
    Pass,
    /// As it is, and the reply is to be shown to `reply`.
    Watch,
    /// With this key; the reply gets the client's own key back.
    Key(Vec<u8>),
    /// With this expiry.
    Ttl(i64),
    /// Not before so much time has passed.
    Delay(Micros),
    /// Not before it is said otherwise when asked again; an error, when so much time has passed.
    Park(Micros),
    /// Answer this error.
    Fail(Outcome, String),
}

/// Changes or holds a request or its reply around one child.
pub trait Wrap: Send {
    fn name(&self) -> &'static str;
    /// `unix` is now, in seconds since 1970.
    fn request(
        &self,
        request: &Request,
        message: &[u8],
        query: &Query<'_>,
        unix: u64,
        random: &mut Random,
    ) -> Wrapped;
    /// Does the client's own key have to be put back into replies?
    fn changes_key(&self) -> bool {
        false
    }
    /// Sees the answer to what it asked to watch.
    fn reply(&self, _key: &[u8], _command: &'static str, _answer: &Answer<'_>) {}
    fn why(&self) -> String;
}

/// When a gather has its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// All have answered: the worst reply.
    All,
    /// More than half agree: their reply. Else the most frequent, ties to the worst.
    Majority,
    /// The first reply that is no failover error, else the last.
    Fastest,
    /// The first child's.
    Initial,
    /// Nobody's: a miss at once.
    None,
}

/// One node.
pub enum Node {
    Choose {
        handle: Box<dyn Choose>,
        children: Vec<NodeId>,
    },
    Gather {
        name: &'static str,
        wait: Wait,
        children: Vec<NodeId>,
    },
    Attempt {
        handle: Box<dyn Attempt>,
        children: Vec<NodeId>,
    },
    Wrap {
        handle: Box<dyn Wrap>,
        child: NodeId,
    },
    /// All copies of a replicated pool.
    Copies(Copies),
    Leaf(Leaf),
}

/// The copies of a pool, for what changes them.
pub struct Copies {
    /// What they are told.
    pub copied: &'static dyn Copied,
    /// The members, in the order of the pool.
    pub children: Vec<NodeId>,
    /// Their positions, the nearest first.
    pub nearest: Vec<usize>,
    /// The same by the client's locality, while a node agent is followed.
    pub order: RefCell<Option<Arc<Order>>>,
    /// So many must have taken a write.
    pub min_acks: usize,
    /// Where a key's value is decided, when a command computes it; none: everywhere by itself.
    pub home: Option<Arc<Distribution>>,
}

impl Copies {
    /// The nearest copy for a client there that may be read.
    #[inline]
    pub fn nearest(&self, client: Locality, is_readable: impl Fn(usize) -> bool) -> Option<usize> {
        if client != Locality::NONE
            && let Some(order) = self.order.borrow().as_deref()
        {
            return order.of(client).find(|&child| is_readable(child));
        }
        self.nearest.iter().copied().find(|&child| is_readable(child))
    }
}

/// Where a walk ends.
#[derive(Clone)]
pub enum Leaf {
    Member(Arc<Member>),
    /// The store in this process.
    Embedded,
    /// Answers a miss.
    Null,
    /// Answers this error.
    Error(String),
}

/// Where one listener's requests enter, and what they can reach.
pub(super) struct Root {
    pub(super) node: NodeId,
    /// What its clients speak, and every member below it.
    pub(super) spoken: Spoken,
    /// Every member below it, for commands that go to all.
    pub(super) reach: Vec<Arc<Member>>,
    /// A gather over all that it reaches, for commands that go to every member.
    pub(super) broadcast: NodeId,
    /// Does it lead to the embedded store?
    pub(super) has_store: bool,
    /// Does it choose a member by the key, and nothing else?
    pub(super) is_plain: bool,
    /// To how many members it sends one request at once, at most.
    pub(super) fanout: u32,
}

/// A worker's own copy: handles may keep state of their own (a counter) without sharing it.
pub struct Tree {
    pub(super) nodes: Vec<Node>,
    /// Where each listener's requests enter.
    pub(super) roots: Vec<Root>,
    /// The numbers of all its members.
    pub(super) numbers: HashSet<MemberId>,
    /// Tells one configuration from another.
    pub version: Arc<str>,
}

impl Tree {
    /// A tree that nothing enters.
    pub fn empty() -> Self {
        Self {
            nodes: Vec::new(),
            roots: Vec::new(),
            numbers: HashSet::new(),
            version: "none".into(),
        }
    }

    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// The copies of this node; `None`: it is no replicated pool.
    pub fn copies(&self, id: NodeId) -> Option<&Copies> {
        match self.node(id) {
            Node::Copies(copies) => Some(copies),
            _ => None,
        }
    }

    /// Where the requests of listener number `listener` enter.
    pub fn root(&self, listener: usize) -> Option<NodeId> {
        self.roots.get(listener).map(|root| root.node)
    }

    /// What the clients of listener number `listener` speak.
    pub fn spoken(&self, listener: usize) -> Option<Spoken> {
        self.roots.get(listener).map(|root| root.spoken)
    }

    /// The members that listener number `listener` can reach.
    pub fn reach(&self, listener: usize) -> &[Arc<Member>] {
        self.roots.get(listener).map_or(&[], |root| &root.reach)
    }

    /// Does listener number `listener` lead to the embedded store?
    pub fn reaches_store(&self, listener: usize) -> bool {
        self.roots.get(listener).is_some_and(|root| root.has_store)
    }

    /// Does any listener lead to the embedded store?
    pub fn has_store(&self) -> bool {
        self.roots.iter().any(|root| root.has_store)
    }

    /// Does listener number `listener` lead to members by one choice, which can be made for several requests at once?
    pub fn is_plain(&self, listener: usize) -> bool {
        self.roots.get(listener).is_some_and(|root| root.is_plain)
    }

    /// Bytes that may wait for servers because of one request of so many bytes to listener number `listener`. A read is
    /// counted once: where it goes to several, it is short.
    #[inline]
    pub fn cost(&self, listener: usize, class: Class, bytes: usize) -> u32 {
        let times = match class {
            Class::Read => 1,
            _ => self.roots.get(listener).map_or(1, |root| root.fanout),
        };
        (bytes as u32).saturating_mul(times)
    }

    /// Its members, in the order of their numbers.
    pub fn members(&self) -> Vec<Arc<Member>> {
        let mut found = BTreeMap::new();
        for node in &self.nodes {
            if let Node::Leaf(Leaf::Member(member)) = node {
                found.insert(member.id, Arc::clone(member));
            }
        }
        found.into_values().collect()
    }

    /// Members that this tree has and `next` has not.
    pub fn gone<'a>(&'a self, next: &'a Self) -> impl Iterator<Item = MemberId> + 'a {
        self.numbers.difference(&next.numbers).copied()
    }

    /// Does anything in this tree lead to that member?
    pub fn names(&self, member: MemberId) -> bool {
        self.numbers.contains(&member)
    }

    /// The node that sends to everything that listener number `listener` can reach.
    pub fn broadcast(&self, listener: usize) -> Option<NodeId> {
        self.roots.get(listener).map(|root| root.broadcast)
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tree({}, {} nodes)", self.version, self.nodes.len())
    }
}

/// The children of one node, as its decision sees them.
#[derive(Clone, Copy)]
pub struct Children<'a> {
    pub tree: &'a Tree,
    pub ids: &'a [NodeId],
    pub snapshot: &'a Snapshot,
    pub class: Class,
}

impl<'a> Children<'a> {
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// May this child be asked? Everything may but an ejected member, and a copy that is not fit for it.
    pub fn is_up(&self, index: usize) -> bool {
        self.member(index).is_none_or(|member| {
            member.is_up() && (!member.is_copy() || self.snapshot.admits(member.id, self.class))
        })
    }

    /// The child, where it is a member itself, maybe with changes on the way.
    pub fn member(&self, index: usize) -> Option<&'a Arc<Member>> {
        let mut id = *self.ids.get(index)?;
        loop {
            match self.tree.node(id) {
                Node::Leaf(Leaf::Member(member)) => return Some(member),
                Node::Wrap { child, .. } => id = *child,
                _ => return None,
            }
        }
    }
}
