//! The state that a protocol keeps for a pool while the process runs, and its view of the pool.

use std::{any::Any, sync::Arc, time::Duration};

use proxima_wire::message::{Class, Request};

use super::{
    Credentials, Failed, Fate, MemberNote, OtherProxies, PoolChanges, PoolCount, PoolOrders, ReachedCount,
    Role, RoleStatus, ServerAnswer, Session,
};

/// State of one pool: a map of slots, roles of members, a clock. It is made from the pool's settings, made
/// anew when they change, and shared by all workers. A member is named by its position in the configuration.
pub trait PoolState: Send + Sync {
    /// Does one member take all writes? Then an operator may order that the pool is held, and which member
    /// that is. By default all members do.
    fn has_one_writer(&self) -> bool {
        false
    }

    /// Does it ever make requests wait? By default it does not: no request pays for the question.
    fn may_hold(&self) -> bool {
        false
    }

    /// Must this request wait for now? The question is asked again when the state has
    /// [changed](PoolSettings::changes), and at the end of its [time](Self::hold_limit), until the request
    /// need not wait. By default none must.
    fn holds(&self, _: &PoolRequest<'_>, _: &dyn PoolMembers) -> bool {
        false
    }

    /// The limits of the time for which this request waits, and of the number and memory of all that wait.
    fn hold_limit(&self, _: &PoolRequest<'_>) -> HoldLimit {
        HoldLimit::DEFAULT
    }

    /// The question that a member is asked when a request begins to wait, or still waits after a change, so
    /// that it need not wait for long. By default there is none.
    fn barrier(&self, _: &PoolRequest<'_>, _: &dyn PoolMembers) -> Option<PoolQuestion> {
        None
    }

    /// A member is about to be asked a [monitor's](Self::monitors) question, at this time since 1970 in µs.
    /// `is_first`: on a new connection, behind which another server may be.
    fn asks(&self, _token: u64, _: &Answerer<'_>, _unix: u64, _is_first: bool) {}

    /// Takes the answer to a question of the pool's own: a [barrier](Self::barrier) or a
    /// [monitor's](Self::monitors).
    fn answered(&self, _token: u64, _: &Answerer<'_>, _: ServerAnswer<'_>) {}

    /// The member for this request. `None`: the pool's hash decides. By default it always does.
    fn member(&self, _: &PoolRequest<'_>, _: &dyn PoolMembers) -> Option<usize> {
        None
    }

    /// Does any reply redirect? By default none does: no request pays for that.
    fn may_redirect(&self) -> bool {
        false
    }

    /// The member that must be asked instead, according to this reply. The number of members: the request is
    /// given anew to the member that is named for it then, for which it may have to wait as well. By default
    /// no reply redirects.
    fn redirect(&self, _: &PoolRequest<'_>, _reply: &[u8], _: Tried, _: &dyn PoolMembers) -> Option<usize> {
        None
    }

    /// A request of this class is given to a server once more, behind this reply or a failure with this fate.
    fn sent_again(&self, _: Class, _answer: Result<&[u8], Fate>) {}

    /// A request has failed at this member. Returns whether it may be given anew to the member that is named
    /// for it then, for which it may have to wait as well. By default it may not.
    fn failed(&self, _: &PoolRequest<'_>, _: &Answerer<'_>, _: &Failed<'_>) -> bool {
        false
    }

    /// The member that is the whole pool to a client: a primary whose replicas hold the same. What concerns
    /// every server goes there alone. By default each member is a server of its own.
    fn primary(&self, _: &dyn PoolMembers) -> Option<usize> {
        None
    }

    /// The pool has the members at these addresses now, and no others. The control thread says so several
    /// times a second.
    fn has_members(&self, _is_its: &dyn Fn(&str) -> bool) {}

    /// What it shares with the state that the pool has with other settings: requests of both are under way
    /// for some time. By default nothing.
    fn shared(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }

    /// What is ordered for the pool has changed. By default it makes no difference.
    fn ordered(&self) {}

    /// The process stood still for so long that what is known of members, and of who takes writes, may be of the
    /// past: they are asked anew before anything is sent. By default nothing is known that could be old.
    fn begin_anew(&self) {}

    /// What has become of a [hold](super::WriterHold); `None`: none is followed, as by default.
    fn held(&self) -> Option<HeldWrites> {
        None
    }

    /// The address of the member that takes writes by the settings alone, where they name one that can; `None`: any
    /// may, as by default.
    fn preferred(&self) -> Option<String> {
        None
    }

    /// The longest time for which a [hold](super::WriterHold) has requests wait.
    fn longest_hold(&self) -> Duration {
        Duration::ZERO
    }

    /// The address of the member to which all writes move just now; `None` if they do not, as by default.
    fn moving(&self) -> Option<String> {
        None
    }

    /// The address of a member all connections to which are to end, in every worker, before the state goes
    /// on: one that took writes, before another one does. It is asked when the state has changed. By default
    /// there is none.
    fn closing(&self) -> Option<String> {
        None
    }

    /// No connection to this address is left that was there when it was [named](Self::closing).
    fn closed(&self, _address: &str) {}

    /// The address of a member that is given nothing more that writes, with a number for that, which is named
    /// once. Connections to it are to end, in every worker, when nothing is under way on them; what waits for
    /// one there goes elsewhere. It is asked when the state has changed. By default there is none.
    fn emptying(&self) -> Option<(String, u64)> {
        None
    }

    /// Is the end of those connections still waited for?
    fn is_emptying(&self, _number: u64) -> bool {
        false
    }

    /// No connection is left that there was when this number was [named](Self::emptying).
    fn emptied(&self, _number: u64) {}

    /// The role of a member now, for operators; `None` if members have no roles, as by default.
    fn role(&self, _: &Answerer<'_>) -> Option<RoleStatus> {
        None
    }

    /// The numbers of reads that had to see certain writes, by the role of the member that they were given
    /// to. By default none have to.
    fn reads(&self) -> Vec<(Role, u64)> {
        Vec::new()
    }

    /// The numbers of requests that were given to a server once more, by a word for the reason. By default
    /// none are counted.
    fn retries(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// What is known of other proxies before the same members. `None`: it makes no difference, as by default.
    fn others(&self) -> Option<OtherProxies> {
        None
    }

    /// The questions that each member is asked again and again, on connections of the pool's own. By default
    /// there are none.
    fn monitors(&self) -> Vec<Monitor> {
        Vec::new()
    }
}

/// What has become of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldWrites {
    /// Nothing is under way or kept at the member that took writes.
    pub is_quiet: bool,
    /// The member that is to take them has waited for the others since.
    pub has_all: bool,
}

/// The servers that a request was given to so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Their number.
    pub count: u32,
    /// The position of the last one, if a reply has [named](PoolState::redirect) it.
    pub last: Option<usize>,
}

/// The settings from which a pool's state is made.
pub struct PoolSettings<'a> {
    /// The pool's name.
    pub name: &'a str,
    /// The proxy's login at the members; `None` if servers ask for no login.
    pub own: Option<&'a Credentials>,
    /// The choice of the member that takes all writes; `None` if all members do.
    pub one_writer: Option<&'a OneWriter>,
    /// The time for a reply.
    pub timeout: Duration,
    /// The counter in which the state notes its changes.
    pub changes: PoolChanges,
    /// The count of events in the pool. It stays the same when the settings change.
    pub count: PoolCount,
    /// The orders of operators for the pool. Each order is noted as a change.
    pub orders: Arc<PoolOrders>,
    /// What the state that the pool had with other settings [shares](PoolState::shared); `None` if it shares
    /// nothing, or the pool is new.
    pub shared: Option<Arc<dyn Any + Send + Sync>>,
}

/// The choice of the member that takes all of a pool's writes, and the tasks of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneWriter {
    /// Names of members; the first usable one takes writes. All others follow in the order of their names.
    pub order: Vec<String>,
    /// The longest time that requests wait while there is none.
    pub wait: Duration,
    /// Does it serve reads as well, while others do?
    pub reads: bool,
    /// Does a member serve that brings another one up to date?
    pub donors: bool,
    /// The longest time that a read waits for a member to have what it must see.
    pub read_wait: Duration,
    /// The greatest age of what a read sees that waits for nothing.
    pub read_age: Duration,
    /// Time for which a member is well before writes move back to it; `None`: they do not.
    pub failback: Option<Duration>,
    /// How often a statement is given to the writer again that was rolled back by a conflict with another
    /// one.
    pub conflict_retries: u32,
    /// Is this proxy said to be the only one? Then reads are [`Strict`](super::Consistency::Strict) in place
    /// of `Causal` while another one is seen.
    pub is_only_proxy: bool,
}

/// The member that a call to its pool's state is about, such as the one that has answered a question of the
/// pool's own.
#[derive(Clone, Copy, Debug)]
pub struct Answerer<'a> {
    /// Its position.
    pub position: usize,
    /// Its address.
    pub address: &'a str,
    /// May it be asked?
    pub is_up: bool,
    /// May it not be, because an operator has ordered that it is given nothing new?
    pub drains: bool,
    /// The part of the pool's count that it has.
    pub reached: &'a ReachedCount,
    /// The state's note about it.
    pub noted: &'a MemberNote,
}

/// The server that a reply comes from.
#[derive(Clone, Copy, Debug)]
pub struct Replier<'a> {
    /// The count of its pool.
    pub count: &'a PoolCount,
    /// The part of that count that it has.
    pub reached: &'a ReachedCount,
    /// The pool state's note about it.
    pub noted: &'a MemberNote,
}

/// A request, as a pool's state sees it.
#[derive(Clone, Copy)]
pub struct PoolRequest<'a> {
    /// The number of its command.
    pub command: u16,
    /// Its class.
    pub class: Class,
    /// Its key.
    pub key: &'a [u8],
    /// The request.
    pub request: &'a Request,
    /// The request's own words; for a streamed one, its head.
    pub message: &'a [u8],
    /// The session of the client that asks, with its login; an empty one if no client has made the request.
    pub session: &'a Session,
    /// The time since 1970, in µs.
    pub unix: u64,
    /// The time at which the request came: for one that waits, the time at which it first came.
    pub since: u64,
}

/// The members of a pool, in the order of the configuration.
pub trait PoolMembers {
    /// The number of members.
    fn count(&self) -> usize;

    /// The member at this position.
    fn at(&self, position: usize) -> Option<MemberFacts<'_>>;
}

/// The known facts about a member.
#[derive(Clone, Copy, Debug)]
pub struct MemberFacts<'a> {
    /// Its address.
    pub address: &'a str,
    /// Its name.
    pub name: &'a str,
    /// May it be asked?
    pub is_up: bool,
    /// Its weight in the configuration.
    pub weight: f64,
    /// Its distance from this process; a greater number is farther.
    pub distance: u8,
    /// Its failure domain, if that is known.
    pub zone: Option<&'a str>,
    /// The part of the pool's count that it has.
    pub reached: &'a ReachedCount,
    /// The state's note about it.
    pub noted: &'a MemberNote,
}

/// A request of the pool's own. Its answer may take any time: the state judges a member that is late with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolQuestion {
    /// The position of the member that is asked.
    pub member: usize,
    /// The number of the command.
    pub command: u16,
    /// The request.
    pub message: Vec<u8>,
    /// The mark by which the answer is recognized.
    pub token: u64,
}

/// A question that each member of a pool is asked again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitor {
    /// Time between two questions to a member.
    pub interval: Duration,
    /// The number of the command.
    pub command: u16,
    /// The request.
    pub message: Vec<u8>,
    /// The mark by which the answer is recognized.
    pub token: u64,
}

/// The limits of the requests that wait for a pool at each worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldLimit {
    /// The longest time that a request waits.
    pub time: Duration,
    /// The time after which it is looked at again, if the state has not changed before.
    pub again: Duration,
    /// The most requests.
    pub requests: usize,
    /// The most bytes of requests.
    pub bytes: usize,
}

impl HoldLimit {
    /// 10 seconds, 10,000 requests and 16 MiB.
    pub const DEFAULT: Self = Self {
        time: Duration::from_secs(10),
        again: Duration::from_secs(10),
        requests: 10_000,
        bytes: 16 << 20,
    };
}
