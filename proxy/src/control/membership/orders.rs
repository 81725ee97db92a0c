//! What operators have ordered for pools: one place for every such state, each with its end.
//!
//! ```text
//!  admin port ─▶ Orders ─▶ flags of the member or the pool ─▶ workers' choices, the pool's state
//!                   │  └─▶ Order::Close ─▶ workers close what is idle, and say when nothing is left
//!                   └─ its end: a time, a word, or the member or pool has left
//! ```

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{self, Receiver},
    },
    thread,
    time::{Duration, Instant},
};

use super::roles::roles;
use crate::{
    control::Proxy,
    members::{Member, Pool},
    protocol::{Role, RoleStatus},
    upstream::{Close, Closed},
    worker::Order,
};

/// Time for an order to be followed, behind the time that the order itself gives.
const LONGEST: Duration = Duration::from_secs(5);
/// Time between two looks at whether an order was followed.
const LOOK: Duration = Duration::from_millis(5);

/// The orders that are in force.
#[derive(Debug, Default)]
pub(in crate::control) struct Orders {
    all: Mutex<Vec<StandingOrder>>,
}

/// One order in force.
#[derive(Clone, Debug)]
pub struct StandingOrder {
    /// The pool that it is for.
    pub pool: Arc<Pool>,
    /// What is ordered.
    pub kind: OrderKind,
    /// When it was ordered.
    pub since: Instant,
    /// When it ends by itself; `None`: when it is taken back.
    pub until: Option<Instant>,
}

/// What may be ordered for a pool.
#[derive(Clone, Debug)]
pub enum OrderKind {
    /// This member is given no new requests.
    Drain {
        /// The member.
        member: Arc<Member>,
        /// Whether a connection that there was when it was ordered is still open, because a request is under
        /// way on it or its server keeps something for a client.
        has_connections: Arc<AtomicBool>,
    },
    /// The pool's requests wait.
    Hold,
    /// This member is the writer.
    Writer {
        /// The member.
        member: Arc<Member>,
        /// The number of the order.
        number: u64,
    },
}

impl OrderKind {
    /// The member that it is about; `None`: the whole pool.
    pub fn member(&self) -> Option<&Arc<Member>> {
        match self {
            Self::Drain { member, .. } | Self::Writer { member, .. } => Some(member),
            Self::Hold => None,
        }
    }

    /// Its name for operators.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Drain { .. } => "drain",
            Self::Hold => "hold",
            Self::Writer { .. } => "writer",
        }
    }

    /// Puts it into force, or ends it.
    fn apply(&self, pool: &Pool, is_ordered: bool) {
        match self {
            Self::Drain { member, .. } => return member.draining.order(is_ordered),
            Self::Hold => pool.orders.hold(is_ordered),
            // It is in force before it is one of these.
            Self::Writer { number, .. } if !is_ordered => pool.orders.end_writer(*number),
            Self::Writer { .. } => {}
        }
        pool.changes.note();
    }
}

impl StandingOrder {
    /// Is it the order for the writer of this pool that has this number?
    fn is_of_writer(&self, pool: &Pool, number: u64) -> bool {
        let is_its =
            |kind: &OrderKind| matches!(kind, OrderKind::Writer { number: other, .. } if *other == number);
        self.pool.id == pool.id && is_its(&self.kind)
    }

    /// Has the state of the pool given it up?
    fn is_given_up(&self) -> bool {
        match self.kind {
            OrderKind::Writer { number, .. } => self.pool.orders.given_up(number).is_some(),
            OrderKind::Drain { .. } | OrderKind::Hold => false,
        }
    }

    /// Does the other one take the place of this one?
    fn gives_way_to(&self, other: &Self) -> bool {
        self.pool.id == other.pool.id
            && match (&self.kind, &other.kind) {
                (OrderKind::Drain { member, .. }, OrderKind::Drain { member: other, .. }) => {
                    member.id == other.id
                }
                (OrderKind::Hold, OrderKind::Hold) | (OrderKind::Writer { .. }, OrderKind::Writer { .. }) => {
                    true
                }
                _ => false,
            }
    }
}

/// Why an order is not carried out.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// There is no such pool.
    #[error("there is no pool `{0}`; known are {1}")]
    NoPool(String, String),
    /// The pool has no such member.
    #[error("pool {0} has no member `{1}`; known are {2}")]
    NoMember(String, String, String),
    /// The member holds a copy.
    #[error("{0} holds a copy, which takes part in every write: take it out of the list of servers instead")]
    Copy(String),
    /// All members of the pool take writes.
    #[error("pool {0} has not one writer: all its members take writes")]
    NoWriter(String),
    /// The writer is about to move.
    #[error("the writer of pool {0} moves to {1} just now: wait until it is there, or take that order back")]
    Moving(String, String),
    /// The member cannot be the writer now.
    #[error("{0} cannot take writes: {1}")]
    Unfit(String, String),
    /// The writer stays, as something is still under way there.
    #[error("the writer of pool {0} stays: {1}")]
    GivenUp(String, String),
}

impl Orders {
    fn change<T>(&self, change: impl FnOnce(&mut Vec<StandingOrder>) -> T) -> T {
        change(&mut self.all.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Proxy {
    /// The orders in force, by pool and member.
    pub fn orders(&self) -> Vec<StandingOrder> {
        let members = self.rooms().membership.members().to_vec();
        let has_its = |order: &StandingOrder| match order.kind.member() {
            Some(member) => members.iter().any(|other| other.id == member.id),
            None => members.iter().any(|member| member.pool.id == order.pool.id),
        };
        let stays = |order: &StandingOrder| has_its(order) && !order.is_given_up();
        let (gone, mut all) = self.orders.change(|all| {
            let gone: Vec<StandingOrder> = all.extract_if(.., |order| !stays(order)).collect();
            (gone, all.clone())
        });
        // An order ends with its member, or its pool.
        for order in gone {
            order.kind.apply(&order.pool, false);
        }
        let key = |order: &StandingOrder| {
            let member = order.kind.member().map(|member| member.name.clone());
            (order.pool.name.clone(), order.kind.name(), member)
        };
        all.sort_by_key(key);
        all
    }

    /// Orders that a member is given no new requests, for this time or until that is taken back. Its idle
    /// connections are closed, and the others when they are idle. An order that is repeated has its new end.
    ///
    /// # Errors
    /// There is no such member, or it may not drain.
    pub fn order_drain(
        self: &Arc<Self>,
        pool: &str,
        member: &str,
        time: Option<Duration>,
    ) -> Result<(), OrderError> {
        let member = self.member_of(pool, member)?;
        if member.is_copy() {
            return Err(OrderError::Copy(member.name.clone()));
        }
        let left = Arc::new(AtomicBool::new(true));
        let kind = OrderKind::Drain {
            member: Arc::clone(&member),
            has_connections: Arc::clone(&left),
        };
        self.put_in_force(&member.pool, kind, time);
        let ended = self.close_when_idle(&member);
        let told = thread::Builder::new().name("drain".into()).spawn(move || {
            // The channel is closed when each worker has told, or has ended.
            ended.iter().for_each(drop);
            left.store(false, Relaxed);
        });
        if let Err(error) = told {
            tracing::warn!(%error, "nobody waits for the end of the member's connections");
        }
        Ok(())
    }

    /// Orders that the requests of a pool wait, for this time or until that is taken back. No request waits
    /// for longer than the pool's state allows.
    ///
    /// # Errors
    /// There is no such pool, or it has not one writer.
    pub fn order_hold(self: &Arc<Self>, pool: &str, time: Option<Duration>) -> Result<(), OrderError> {
        let pool = self.pool_with_writer(pool)?;
        self.put_in_force(&pool, OrderKind::Hold, time);
        Ok(())
    }

    /// Orders which member takes writes, for this time or until that is taken back, and waits until it does.
    /// An order that is given up is taken back.
    ///
    /// # Errors
    /// There is no such member, its pool has not one writer, the member cannot be it, the writer is about to
    /// move already, or it stays as something is under way there for longer than `within`.
    pub async fn order_writer(
        self: &Arc<Self>,
        pool: &str,
        member: &str,
        time: Option<Duration>,
        (within, is_forced): (Duration, bool),
    ) -> Result<(), OrderError> {
        let member = self.member_of(pool, member)?;
        let pool = self.pool_with_writer(pool)?;
        let status = self.role_of(&member);
        let is_it = status.as_ref().is_some_and(|status| status.role == Role::Writer);
        if let Some(why) = status.and_then(|status| status.why()) {
            return Err(OrderError::Unfit(member.name.clone(), why));
        }
        let moving = pool.state.as_ref().and_then(|state| state.moving());
        if let Some(to) = moving.filter(|to| *to != member.address) {
            return Err(OrderError::Moving(pool.name.to_string(), to));
        }
        let moving = |to| OrderError::Moving(pool.name.to_string(), to);
        let ordered = pool.orders.order_writer(&member.address, within, is_forced);
        let number = ordered.map_err(moving)?;
        let kind = OrderKind::Writer {
            member: Arc::clone(&member),
            number,
        };
        self.put_in_force(&pool, kind, time);
        let done = match is_it {
            true => Ok(()),
            false => self.wait_for_writer(&pool, &member, number, within).await,
        };
        pool.orders.settle_writer(number);
        done
    }

    /// Waits until this member takes writes by the order with this number.
    async fn wait_for_writer(
        self: &Arc<Self>,
        pool: &Arc<Pool>,
        member: &Member,
        number: u64,
        within: Duration,
    ) -> Result<(), OrderError> {
        let given_up = |why: &str| Err(OrderError::GivenUp(pool.name.to_string(), why.to_owned()));
        let until = Instant::now() + within + LONGEST;
        loop {
            tokio::time::sleep(LOOK).await;
            if let Some(why) = pool.orders.given_up(number) {
                return given_up(&why);
            }
            let stands = pool.orders.writer().is_some_and(|wish| wish.number == number);
            let status = self.role_of(member);
            if status.is_some_and(|status| status.role == Role::Writer) {
                return Ok(());
            }
            if !stands {
                return given_up("the order was taken back, or another one has taken its place");
            }
            if Instant::now() > until {
                self.end_orders(|order| order.is_of_writer(pool, number));
                return given_up("the server has not become it in time");
            }
        }
    }

    /// The role of a member; `None`: its pool knows of no roles.
    fn role_of(&self, member: &Member) -> Option<RoleStatus> {
        let rooms = self.rooms();
        roles(rooms.configuration.tree()).remove(&member.id)
    }

    /// Takes the orders with this name for a pool back, of which a member's are those for that member. If
    /// there is none, nothing changes.
    ///
    /// # Errors
    /// There is no such pool or member.
    pub fn end_order(&self, name: &str, pool: &str, member: Option<&str>) -> Result<(), OrderError> {
        let member = member.map(|member| self.member_of(pool, member)).transpose()?;
        let pool = self.pool_named(pool)?;
        self.end_orders(|order| {
            let of = order
                .kind
                .member()
                .filter(|_| member.is_some())
                .map(|member| member.id);
            order.pool.id == pool.id
                && order.kind.name() == name
                && of == member.as_ref().map(|member| member.id)
        });
        Ok(())
    }

    fn put_in_force(self: &Arc<Self>, pool: &Arc<Pool>, kind: OrderKind, time: Option<Duration>) {
        let since = Instant::now();
        let order = StandingOrder {
            pool: Arc::clone(pool),
            kind,
            since,
            until: time.map(|time| since + time),
        };
        order.kind.apply(pool, true);
        let member = order.kind.member().map(|member| member.name.clone());
        tracing::info!(pool = %pool, member, order = order.kind.name(), ?time, "ordered");
        let copy = order.clone();
        self.orders.change(|all| {
            all.retain(|other| !other.gives_way_to(&order));
            all.push(order);
        });
        if let Some(time) = time {
            let proxy = Arc::clone(self);
            self.runtime.spawn(async move {
                tokio::time::sleep(time).await;
                proxy.end_orders(|order| order.since == copy.since && order.gives_way_to(&copy));
            });
        }
    }

    fn end_orders(&self, is_ended: impl Fn(&StandingOrder) -> bool) {
        let ended: Vec<StandingOrder> = self
            .orders
            .change(|all| all.extract_if(.., |order| is_ended(order)).collect());
        for order in ended {
            order.kind.apply(&order.pool, false);
            let member = order.kind.member().map(|member| member.name.clone());
            tracing::info!(pool = %order.pool, member, order = order.kind.name(), "ordered no more");
        }
    }

    /// Has all workers close the connections to this member when they are idle. The channel tells when that
    /// has happened.
    fn close_when_idle(&self, member: &Member) -> Receiver<()> {
        let (done, ended) = mpsc::channel();
        self.workers.order(|_| Order::Close {
            closed: Closed::Member(member.id),
            when: Close::WhenIdle,
            done: done.clone(),
        });
        ended
    }

    fn pool_named(&self, name: &str) -> Result<Arc<Pool>, OrderError> {
        let members = self.rooms().membership.members().to_vec();
        let found = members.iter().find(|member| &*member.pool.name == name);
        found.map(|member| Arc::clone(&member.pool)).ok_or_else(|| {
            let mut names: Vec<&str> = members.iter().map(|member| &*member.pool.name).collect();
            names.dedup();
            OrderError::NoPool(name.escape_debug().to_string(), list(&names))
        })
    }

    fn pool_with_writer(&self, name: &str) -> Result<Arc<Pool>, OrderError> {
        let pool = self.pool_named(name)?;
        match pool.state.as_ref().is_some_and(|state| state.has_one_writer()) {
            true => Ok(pool),
            false => Err(OrderError::NoWriter(name.to_owned())),
        }
    }

    /// The member of a pool with this name or address.
    fn member_of(&self, pool: &str, name: &str) -> Result<Arc<Member>, OrderError> {
        self.pool_named(pool)?;
        let members = self.rooms().membership.members().to_vec();
        let of_pool = || members.iter().filter(|member| &*member.pool.name == pool);
        let found = of_pool().find(|member| member.name == name || member.address == name);
        found.cloned().ok_or_else(|| {
            let names: Vec<&str> = of_pool().map(|member| &*member.name).collect();
            let name = name.escape_debug().to_string();
            OrderError::NoMember(pool.to_owned(), name, list(&names))
        })
    }
}

fn list(names: &[&str]) -> String {
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    }
}
