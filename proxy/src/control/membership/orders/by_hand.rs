//! What persons order.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{self, Receiver},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    error::{OrderError, list},
    standing::{OrderKind, StandingOrder},
};
use crate::{
    control::{Proxy, membership::roles::roles},
    event_log::kind,
    members::{Member, Pool},
    protocol::{Role, RoleStatus},
    upstream::{Close, Closed},
    worker::Order,
};

/// Time for an order to be followed, behind the time that the order itself gives.
const LONGEST: Duration = Duration::from_secs(5);
/// Time between two looks at whether an order was followed.
const LOOK: Duration = Duration::from_millis(5);

impl Proxy {
    /// The orders in force, by pool and member.
    pub fn orders(&self) -> Vec<StandingOrder> {
        let members = self.rooms().membership.members().to_vec();
        let has_its = |order: &StandingOrder| match order.kind.member() {
            Some(member) => members.iter().any(|other| other.id == member.id),
            None => members.iter().any(|member| member.pool.id == order.pool.id),
        };
        let stays = |order: &StandingOrder| has_its(order) && !order.is_given_up();
        let mut all = self.orders.change(|book| {
            let gone: Vec<StandingOrder> = book.by_hand.extract_if(.., |order| !stays(order)).collect();
            // An order ends with its member, or its pool.
            for order in gone {
                book.apply(&order, false);
            }
            book.by_hand.clone()
        });
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
        self.tell_when_drained(&member, left);
        Ok(())
    }

    /// Has the connections to a member end when they are idle, and notes when none of them is left.
    pub(super) fn tell_when_drained(&self, member: &Member, left: Arc<AtomicBool>) {
        let ended = self.close_when_idle(member);
        let told = thread::Builder::new().name("drain".into()).spawn(move || {
            // The channel is closed when each worker has told, or has ended.
            ended.iter().for_each(drop);
            left.store(false, Relaxed);
        });
        if let Err(error) = told {
            tracing::warn!(%error, "nobody waits for the end of the member's connections");
        }
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
        let member = order.kind.member().map(|member| member.name.clone());
        tracing::info!(target: kind::ORDER, pool = %pool, member, order = order.kind.name(), ?time, "ordered");
        let copy = order.clone();
        self.orders.change(|book| {
            book.by_hand.retain(|other| !other.gives_way_to(&order));
            book.by_hand.push(order);
            book.apply(&copy, true);
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
        let ended: Vec<StandingOrder> = self.orders.change(|book| {
            let ended: Vec<_> = book.by_hand.extract_if(.., |order| is_ended(order)).collect();
            for order in &ended {
                book.apply(order, false);
            }
            ended
        });
        for order in ended {
            let member = order.kind.member().map(|member| member.name.clone());
            tracing::info!(target: kind::ORDER, pool = %order.pool, member, order = order.kind.name(), "ordered no more");
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

    pub(super) fn pool_named(&self, name: &str) -> Result<Arc<Pool>, OrderError> {
        let members = self.rooms().membership.members().to_vec();
        let found = members.iter().find(|member| &*member.pool.name == name);
        found.map(|member| Arc::clone(&member.pool)).ok_or_else(|| {
            let mut names: Vec<&str> = members.iter().map(|member| &*member.pool.name).collect();
            names.dedup();
            OrderError::NoPool(name.escape_debug().to_string(), list(&names))
        })
    }

    pub(super) fn pool_with_writer(&self, name: &str) -> Result<Arc<Pool>, OrderError> {
        let pool = self.pool_named(name)?;
        match pool.state.as_ref().is_some_and(|state| state.has_one_writer()) {
            true => Ok(pool),
            false => Err(OrderError::NoWriter(name.to_owned())),
        }
    }

    /// The member of a pool with this name or address.
    pub(super) fn member_of(&self, pool: &str, name: &str) -> Result<Arc<Member>, OrderError> {
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
