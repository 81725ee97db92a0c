//! The shapes of nodes: what each kind of handle decides.

use std::{net::IpAddr, sync::Arc};

use proxima_wire::message::{Class, Outcome, Request};

use super::Children;
use crate::{
    client::Clients,
    engine::{ClientId, FlightId},
    members::{Locality, MemberId},
    metrics::FailoverCounts,
    micros::Micros,
    protocol::{PoolRequest, Protocol, Session},
    random::Random,
    route::{Answer, Order, StatefulPool, timing::Timing},
};

/// The inputs of a decision. Time and chance come as arguments, so that a walk can be repeated.
#[derive(Clone, Copy)]
pub struct Query<'a> {
    /// The number of the command in its protocol.
    pub command: u16,
    /// The class of the request: read, write and so on.
    pub class: Class,
    /// The key as the server will see it: decoded, and without the prefix that a wrapping route removes.
    pub key: &'a [u8],
    /// The protocol of the request.
    pub protocol: &'static dyn Protocol,
    /// The place of the client.
    pub locality: Locality,
    /// The present time, since 1970.
    pub unix: Micros,
    /// The request itself, for decisions that look at more than its key.
    pub of: Of<'a>,
}

/// A request that walks the tree.
pub trait Asking {
    /// The request.
    fn request(&self) -> &Request;
    /// Its own words; for a streamed one, its head.
    fn message(&self) -> &[u8];
    /// The client that asks; `None`: it is no client's.
    fn client(&self) -> Option<ClientId>;
}

/// The request of a query.
#[derive(Clone, Copy)]
pub enum Of<'a> {
    /// It is not looked at.
    Nobody,
    /// One that walks the tree, and the clients of its worker.
    Walk(&'a dyn Asking, &'a Clients),
    /// One that has waited since this time.
    Waiting(&'a dyn Asking, &'a Clients, Micros),
    /// An example: its head, its own words, and the session of the client that would ask.
    Example(&'a Request, &'a [u8], &'a Session),
}

impl<'a> Query<'a> {
    /// The same query, in which the request itself and its client's session can be seen.
    #[inline]
    pub fn of(self, asking: &'a dyn Asking, clients: &'a Clients) -> Self {
        Self {
            of: Of::Walk(asking, clients),
            ..self
        }
    }

    /// The same, as a pool's state sees it.
    pub fn asked(&self) -> PoolRequest<'a> {
        const NOTHING: &Request = &Request::new(0, Class::Read, 0);
        let (request, message) = match self.of {
            Of::Nobody => (NOTHING, &b""[..]),
            Of::Walk(asking, _) | Of::Waiting(asking, ..) => (asking.request(), asking.message()),
            Of::Example(request, message, _) => (request, message),
        };
        let session = match self.of {
            Of::Walk(asking, clients) | Of::Waiting(asking, clients, _) => clients.session(asking.client()),
            Of::Example(_, _, session) => session,
            Of::Nobody => Session::NOBODY,
        };
        let since = match self.of {
            Of::Waiting(_, _, since) => since,
            _ => self.unix,
        };
        PoolRequest {
            command: self.command,
            class: self.class,
            key: self.key,
            request,
            message,
            session,
            unix: self.unix.0,
            since: since.0,
        }
    }
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
    /// May the next call name another child for the same request, because chance, a turn or a limit decides?
    fn varies(&self, _query: &Query<'_>) -> bool {
        false
    }
    /// Does the key decide, at this time since 1970?
    fn looks_at_key(&self, _unix: Micros) -> bool {
        true
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

/// Looks at the address of the client, which the worker looks up, and names one child.
pub trait ByAddress: Send {
    /// The name of the route, as in the configuration.
    fn name(&self) -> &'static str;
    /// The child for this address. Without an address it is a number beyond the children.
    fn choose(&self, address: Option<IpAddr>, children: usize) -> usize;
    /// The reason for a choice, for people.
    fn why(&self, address: Option<IpAddr>) -> String;
}

/// Sends to one child, whose reply is the answer. Others get copies of the request, for which nobody waits.
pub trait Fan: Send {
    /// The name of the route, as in the configuration.
    fn name(&self) -> &'static str;
    /// The child whose reply is the answer. A number beyond the children is answered with a local error. The
    /// children that get copies are added to `others`.
    fn choose(&self, query: &Query<'_>, random: &mut Random, others: &mut Vec<u32>) -> usize;
    /// Does the first child always answer, while the others serve nobody else?
    fn shadows(&self) -> bool {
        false
    }
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
        tried: &mut AttemptRecord,
        children: &Children<'_>,
        answer: &Answer<'_>,
    ) -> Option<usize>;
    /// The child that is next in the order, if any answer leads there.
    fn follow(&self, query: &Query<'_>, tried: &AttemptRecord, children: &Children<'_>) -> Option<usize>;
    /// The request goes on to another child, behind this answer.
    fn goes_on_behind(&self, _class: Class, _answer: &Answer<'_>) {}
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
    /// Does an answer decide about one key? A request with several keys is then asked key by key.
    fn judges_keys(&self, _query: &Query<'_>) -> bool {
        false
    }
    /// The answers after which the next child is asked, for people.
    fn why(&self) -> String;
}

/// The children that an attempt has asked for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptRecord {
    /// The child that was asked last.
    pub child: usize,
    /// The number of children that were asked, or passed by as ejected.
    pub count: u32,
    /// The failures among them that count against a limit of failures.
    pub errors: u32,
    /// The failures among them that count against no limit.
    pub excluded: u32,
    /// A bit for each of the first 64 children that was asked.
    pub seen: u64,
}

impl AttemptRecord {
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
    /// The request goes on, and routes look at its key without the routing prefix.
    Hide,
    /// As `Key`, in place of a key with a hidden prefix.
    Bare(Vec<u8>),
    /// The request goes on with this expiry, in seconds, as the protocol writes it.
    Ttl(i64),
    /// The wrap decides about each key, or about each request of a composite one, and the request goes on as a
    /// whole.
    Each,
    /// The request goes on after this time.
    Delay(Micros),
    /// The request waits until the wrap [names](Wrap::left) it.
    Queue,
    /// The request waits until the wrap, asked again as the state of this pool has changed, decides otherwise.
    Park(StatefulPool),
    /// The request fails with this outcome and this text.
    Fail(Outcome, String),
}

/// Changes or holds a request or its reply around one child.
pub trait Wrap: Send {
    /// The name of the route, as in the configuration.
    fn name(&self) -> &'static str;
    /// Decides about a request.
    fn request(&self, request: &Request, message: &[u8], query: &Query<'_>, random: &mut Random) -> Wrapped;
    /// May it hold a request while a later one passes?
    fn may_hold(&self) -> bool {
        false
    }
    /// The key with which a request for this one goes on; `None`: the same.
    fn new_key(&self, _key: &[u8]) -> Option<Vec<u8>> {
        None
    }
    /// Does the client's own key have to be put back into replies?
    fn changes_key(&self) -> bool {
        false
    }
    /// Does it name the client that waits for an answer?
    fn names_client(&self) -> bool {
        false
    }
    /// Is it told what requests say that are texts?
    fn reads_texts(&self) -> bool {
        false
    }
    /// What keeps the requests that it watches, if they are slow; `None`: nothing does.
    fn times(&self) -> Option<&Timing> {
        None
    }
    /// Sees the answer to a request that it watches, and holds it for so long.
    fn reply(&self, _watched: &Watched<'_>, _answer: &Answer<'_>) -> Micros {
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

/// A request that a wrap watches, when its answer has come.
#[derive(Clone, Debug)]
pub struct Watched<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// The name of its command.
    pub command: &'static str,
    /// What it does to the data.
    pub class: Class,
    /// The address of the client that waits for it, if the wrap [names](Wrap::names_client) that.
    pub client: Option<IpAddr>,
    /// The time since it has come by.
    pub took: Micros,
    /// What it says, if it is a text and the wrap [reads](Wrap::reads_texts) those.
    pub text: Option<WatchedText>,
}

/// A request that is a text, as a statement is.
#[derive(Clone, Debug)]
pub struct WatchedText {
    /// The text without its values; empty if it cannot be read.
    pub text: String,
    /// The member that has answered it; `None`: none has.
    pub member: Option<MemberId>,
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

#[cfg(test)]
mod example {
    use super::*;
    use crate::protocols::Memcache;

    impl Query<'_> {
        /// A query of nobody's for tests.
        pub fn example() -> Self {
            Self {
                command: 0,
                class: Class::Read,
                key: b"k",
                protocol: &Memcache::PLAIN,
                locality: Locality::NONE,
                unix: Micros::ZERO,
                of: Of::Nobody,
            }
        }
    }
}
