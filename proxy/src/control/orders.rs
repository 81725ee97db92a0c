//! What operators have ordered for pools: one place for every such state, each with its end.
//!
//! ```text
//!  admin port ─▶ Orders ─▶ the pool's own flags ─▶ workers' choices
//!                   │  └─▶ Order::Close ─▶ workers close what is idle, and say when nothing is left
//!                   └─ its end: a time, a word, or the member has left
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

use super::Proxy;
use crate::{members::Member, upstream::Close, worker::Order};

/// The orders that are in force.
#[derive(Debug, Default)]
pub(super) struct Orders {
    all: Mutex<Vec<StandingOrder>>,
}

/// One order in force.
#[derive(Clone, Debug)]
pub struct StandingOrder {
    /// The member that drains: it is given no new requests.
    pub member: Arc<Member>,
    /// When it was ordered.
    pub since: Instant,
    /// When it ends by itself; `None`: when it is taken back.
    pub until: Option<Instant>,
    /// Whether a connection that there was when it was ordered is still open.
    left: Arc<AtomicBool>,
}

impl StandingOrder {
    /// Whether a connection that there was when it was ordered is still open, because a request is under way on
    /// it or its server keeps something for a client.
    pub fn has_connections(&self) -> bool {
        self.left.load(Relaxed)
    }

    fn is_for(&self, member: &Member) -> bool {
        self.member.id == member.id
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
}

impl Orders {
    fn change<T>(&self, change: impl FnOnce(&mut Vec<StandingOrder>) -> T) -> T {
        change(&mut self.all.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Proxy {
    /// The orders in force, by pool and member.
    pub fn orders(&self) -> Vec<StandingOrder> {
        let members = self.members();
        let mut all = self.orders.change(|all| {
            // An order ends with its member.
            all.retain(|order| members.iter().any(|member| order.is_for(member)));
            all.clone()
        });
        all.sort_by(|one, other| {
            let key = |order: &StandingOrder| (order.member.pool.name.clone(), order.member.name.clone());
            key(one).cmp(&key(other))
        });
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
        let since = Instant::now();
        let until = time.map(|time| since + time);
        member.draining.set(true);
        let left = Arc::new(AtomicBool::new(true));
        self.orders.change(|all| {
            all.retain(|order| !order.is_for(&member));
            all.push(StandingOrder {
                member: Arc::clone(&member),
                since,
                until,
                left: Arc::clone(&left),
            });
        });
        tracing::info!(pool = %member.pool, member = %member.name, ?time, "drains, as ordered");
        let ended = self.close_when_idle(&member);
        let told = thread::Builder::new().name("drain".into()).spawn(move || {
            // The channel is closed when each worker has told, or has ended.
            ended.iter().for_each(drop);
            left.store(false, Relaxed);
        });
        if let Err(error) = told {
            tracing::warn!(%error, "nobody waits for the end of the member's connections");
        }
        if let Some(time) = time {
            let proxy = Arc::clone(self);
            self.runtime.spawn(async move {
                tokio::time::sleep(time).await;
                proxy.end_drain_of(&member, Some(since));
            });
        }
        Ok(())
    }

    /// Takes the order back that a member drains. If there is none, nothing changes.
    ///
    /// # Errors
    /// There is no such member.
    pub fn end_drain(&self, pool: &str, member: &str) -> Result<(), OrderError> {
        let member = self.member_of(pool, member)?;
        self.end_drain_of(&member, None);
        Ok(())
    }

    /// Ends an order: the one that was given at `since`, or any.
    fn end_drain_of(&self, member: &Member, since: Option<Instant>) {
        let ended = self.orders.change(|all| {
            let begun = all.len();
            all.retain(|order| !order.is_for(member) || since.is_some_and(|since| order.since != since));
            all.len() < begun
        });
        if ended {
            member.draining.set(false);
            tracing::info!(pool = %member.pool, member = %member.name, "drains no more");
        }
    }

    /// Has all workers close the connections to this member when they are idle. The channel tells when that has
    /// happened.
    fn close_when_idle(&self, member: &Member) -> Receiver<()> {
        let (done, ended) = mpsc::channel();
        self.workers.order(|_| Order::Close {
            member: member.id,
            when: Close::WhenIdle,
            done: done.clone(),
        });
        ended
    }

    /// The member of a pool with this name or address.
    fn member_of(&self, pool: &str, name: &str) -> Result<Arc<Member>, OrderError> {
        let members = self.members();
        let of_pool = || members.iter().filter(|member| &*member.pool.name == pool);
        let list = |names: Vec<&str>| match names.is_empty() {
            true => "none".to_owned(),
            false => names.join(", "),
        };
        if of_pool().next().is_none() {
            let mut names: Vec<&str> = members.iter().map(|member| &*member.pool.name).collect();
            names.dedup();
            return Err(OrderError::NoPool(pool.escape_debug().to_string(), list(names)));
        }
        let found = of_pool().find(|member| member.name == name || member.address == name);
        found.cloned().ok_or_else(|| {
            let names = of_pool().map(|member| &*member.name).collect();
            let name = name.escape_debug().to_string();
            OrderError::NoMember(pool.to_owned(), name, list(names))
        })
    }
}
