//! What clients order that order the same at several proxies, such as an operator that rolls the servers of a pool.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

use tokio::{task::AbortHandle, time::sleep_until};

use super::{
    client::{ClientHold, ClientOrder, ClientWish, Drained},
    error::OrderError,
};
use crate::{
    config::schema::Question,
    control::Proxy,
    event_log::kind,
    members::{Member, Pool},
    protocol::HeldWrites,
};

/// An order whose end comes this late was not ended in time: the process stood still.
const LATE: Duration = Duration::from_secs(1);

/// What has become of the orders for a pool.
pub struct JointStatus {
    /// The pool.
    pub pool: Arc<Pool>,
    /// Its orders.
    pub orders: Vec<ClientOrder>,
    /// What has become of the hold. `None`: none is in force.
    pub held: Option<HeldWrites>,
    /// The address of the member that the settings prefer as the writer.
    pub preferred: Option<String>,
    /// The members of the pool.
    pub members: Vec<Arc<Member>>,
}

impl Proxy {
    /// Takes a client's wish for a pool in place of the one that it had by this name.
    ///
    /// # Errors
    /// There is no such pool or member; the pool has not one writer; a person or another client has ordered another
    /// one; there are too many orders. Then what was ordered before stays.
    pub fn order_for_client(
        self: &Arc<Self>,
        pool: &str,
        name: &str,
        wish: &ClientWish,
    ) -> Result<(), OrderError> {
        let pool = self.pool_named(pool)?;
        if wish.hold || wish.writer.is_some() {
            self.pool_with_writer(&pool.name)?;
        }
        let named = |asked: &String| self.member_or_remedy(&pool, asked);
        let writer = wish.writer.as_ref().map(named).transpose()?;
        let now = Instant::now();
        let until = now + wish.time;
        let (drained, is_changed) = self.orders.change(|book| {
            let before = book.client(&pool, name).cloned();
            book.admits(&pool, name, writer.as_deref())?;
            let mut drains = Vec::new();
            let mut is_new = Vec::new();
            for asked in &wish.drain {
                let known = before.iter().flat_map(|order| &order.drains);
                let drained = match known.clone().find(|drained| drained.asked == *asked) {
                    Some(drained) => drained.clone(),
                    None => {
                        let member = named(asked)?;
                        if member.is_copy() {
                            return Err(OrderError::Copy(member.name.clone()));
                        }
                        let drained = Drained {
                            asked: asked.clone(),
                            member,
                            has_connections: Arc::new(AtomicBool::new(true)),
                        };
                        is_new.push(drained.clone());
                        drained
                    }
                };
                drains.push(drained);
            }
            let held = before.as_ref().and_then(|order| order.hold);
            let since = book.held_since(&pool).unwrap_or(now);
            let ended = held.filter(|hold| !wish.hold && !hold.is_over);
            let last_hold = ended.map(|hold| now - hold.since);
            let hold = held.unwrap_or(ClientHold {
                since,
                is_over: false,
            });
            let is_changed = before.as_ref().is_none_or(|order| order.wish != *wish);
            let order = ClientOrder {
                name: name.to_owned(),
                wish: wish.clone(),
                pool: Arc::clone(&pool),
                since: now,
                until,
                drains,
                writer,
                hold: wish.hold.then_some(hold),
                last_hold: last_hold.or(before.as_ref().and_then(|order| order.last_hold)),
                ends: self.end_in_time(&pool, name, wish.hold.then_some(hold), until),
            };
            let former = book.replace(order);
            book.note_drains(former.iter().flat_map(|order| &order.drains));
            book.note_drains(&is_new);
            Ok((is_new, is_changed))
        })?;
        if is_changed {
            tracing::info!(target: kind::ORDER, %pool, order = name, ?wish, "ordered");
        }
        for drained in drained {
            self.tell_when_drained(&drained.member, drained.has_connections);
        }
        self.join(&pool, false);
        Ok(())
    }

    /// Ends what a client has ordered for a pool by this name. If there is nothing, nothing changes.
    ///
    /// # Errors
    /// There is no such pool.
    pub fn end_for_client(&self, pool: &str, name: &str) -> Result<(), OrderError> {
        let pool = self.pool_named(pool)?;
        self.end_client_order(&pool, name, false);
        Ok(())
    }

    /// What has become of the orders for a pool.
    ///
    /// # Errors
    /// There is no such pool.
    pub fn joint_status(&self, pool: &str) -> Result<JointStatus, OrderError> {
        let pool = self.pool_named(pool)?;
        let state = pool.state.as_ref();
        let of_pool = |member: &&Arc<Member>| member.pool.id == pool.id;
        let members = self.rooms().membership.members().to_vec();
        Ok(JointStatus {
            orders: self.orders.change(|book| book.of_clients(&pool)),
            held: state.and_then(|state| state.held()),
            preferred: state.and_then(|state| state.preferred()),
            members: members.iter().filter(of_pool).cloned().collect(),
            pool,
        })
    }

    /// The member of a pool with this name, or what to do where its members have none that a client could know.
    fn member_or_remedy(&self, pool: &Pool, asked: &str) -> Result<Arc<Member>, OrderError> {
        let found = self.member_of(&pool.name, asked);
        let rooms = self.rooms();
        let config = rooms.configuration.config().pools.get(&*pool.name);
        match config.and_then(|config| config.source.question()) {
            Some(Question::Dns(_)) if found.is_err() => Err(OrderError::NoPods(
                pool.name.to_string(),
                asked.escape_debug().to_string(),
            )),
            _ => found,
        }
    }

    /// Ends an order, and its hold before it, when their time is over.
    fn end_in_time(
        self: &Arc<Self>,
        pool: &Arc<Pool>,
        name: &str,
        hold: Option<ClientHold>,
        until: Instant,
    ) -> AbortHandle {
        let (proxy, pool, name) = (Arc::clone(self), Arc::clone(pool), name.to_owned());
        let longest = pool.state.as_ref().map(|state| state.longest_hold());
        let held = hold.filter(|hold| !hold.is_over).zip(longest);
        let ends = async move {
            if let Some((hold, longest)) = held {
                sleep_until((hold.since + longest).min(until).into()).await;
                proxy.end_hold_of_client(&pool, &name);
            }
            sleep_until(until.into()).await;
            proxy.end_client_order(&pool, &name, Instant::now() > until + LATE);
        };
        self.runtime.spawn(ends).abort_handle()
    }

    fn end_hold_of_client(&self, pool: &Arc<Pool>, name: &str) {
        let is_ended = self.orders.change(|book| {
            let order = book.client_mut(pool, name)?;
            let hold = order.hold.as_mut().filter(|hold| !hold.is_over)?;
            hold.is_over = true;
            order.last_hold = Some(hold.since.elapsed());
            Some(())
        });
        if is_ended.is_some() {
            tracing::warn!(target: kind::ORDER, %pool, order = name, "its hold has taken too long: writes go on");
            self.join(pool, false);
        }
    }

    /// `is_late`: it should have ended before, and others may have moved on.
    fn end_client_order(&self, pool: &Arc<Pool>, name: &str, is_late: bool) {
        let ended = self.orders.change(|book| {
            let ended = book.remove(pool, name)?;
            book.note_drains(&ended.drains);
            Some(ended)
        });
        let Some(ended) = ended else { return };
        tracing::info!(target: kind::ORDER, %pool, order = name, "ordered no more");
        let concerns_writer = ended.hold.is_some() || ended.writer.is_some();
        self.join(pool, is_late && concerns_writer);
        // Last, as this may be the task that is ended by it.
        ended.ends.abort();
    }

    /// Tells the pool what its clients wish together. `is_late`: that was due before.
    fn join(&self, pool: &Arc<Pool>, is_late: bool) {
        // A pool whose settings have changed has another state since.
        let now = self.pool_named(&pool.name);
        let pool = now.as_ref().unwrap_or(pool);
        if is_late && let Some(state) = &pool.state {
            state.begin_anew();
        }
        let (is_held, writer, until) = self.orders.change(|book| book.joint(pool));
        let until = until.map_or(0, |until| {
            (self.since_epoch + until.duration_since(self.started).into()).0
        });
        pool.orders
            .join(is_held, writer.as_ref().map(|member| &*member.address), until);
        if let Some(state) = &pool.state {
            state.ordered();
        }
        pool.changes.note();
    }
}
