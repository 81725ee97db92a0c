//! The orders that are in force.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use super::{
    client::{ClientOrder, Drained},
    error::OrderError,
    standing::{OrderKind, StandingOrder},
};
use crate::members::{Member, MemberId, Pool};

/// The most orders of clients for a pool.
const MOST: usize = 64;

/// The orders that are in force.
#[derive(Debug, Default)]
pub(in crate::control) struct Orders {
    book: Mutex<Book>,
}

/// All of them, by who has given them.
#[derive(Debug, Default)]
pub(in crate::control) struct Book {
    /// Those of persons.
    pub(super) by_hand: Vec<StandingOrder>,
    /// Those of clients that order the same at several proxies.
    pub(super) clients: Vec<ClientOrder>,
}

impl Orders {
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Book) -> T) -> T {
        change(&mut self.book.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Book {
    /// Has a member drain if any order says so, and not otherwise.
    pub(super) fn note_drain(&self, member: &Member) {
        let is_it = |order: &StandingOrder| matches!(&order.kind, OrderKind::Drain { member: other, .. } if other.id == member.id);
        let drains = self.by_hand.iter().any(is_it) || self.client_drains(member.id);
        member.draining.order(drains);
    }

    /// The member that a person has ordered to be the writer of a pool.
    pub(super) fn writer_by_hand(&self, pool: &Pool) -> Option<&Arc<Member>> {
        self.by_hand.iter().find_map(|order| match &order.kind {
            OrderKind::Writer { member, .. } if order.pool.id == pool.id => Some(member),
            _ => None,
        })
    }

    /// Puts an order into force that is in the book, or ends one that is not.
    pub(super) fn apply(&self, order: &StandingOrder, is_ordered: bool) {
        let pool = &order.pool;
        match &order.kind {
            OrderKind::Drain { member, .. } => return self.note_drain(member),
            OrderKind::Hold => pool.orders.hold(is_ordered),
            // It is in force before it is one of these.
            OrderKind::Writer { number, .. } if !is_ordered => pool.orders.end_writer(*number),
            OrderKind::Writer { .. } => {}
        }
        if let Some(state) = &pool.state {
            state.ordered();
        }
        pool.changes.note();
    }

    fn is_of(pool: &Pool, name: &str) -> impl Fn(&ClientOrder) -> bool {
        move |order| order.pool.id == pool.id && order.name == name
    }

    pub(super) fn client(&self, pool: &Pool, name: &str) -> Option<&ClientOrder> {
        self.clients
            .iter()
            .find(|order| order.pool.id == pool.id && order.name == name)
    }

    pub(super) fn client_mut(&mut self, pool: &Pool, name: &str) -> Option<&mut ClientOrder> {
        self.clients
            .iter_mut()
            .find(|order| order.pool.id == pool.id && order.name == name)
    }

    pub(super) fn of_clients(&self, pool: &Pool) -> Vec<ClientOrder> {
        let its = self.clients.iter().filter(|order| order.pool.id == pool.id);
        its.cloned().collect()
    }

    /// May a client have this order? `writer`: the member that it names.
    pub(super) fn admits(&self, pool: &Pool, name: &str, writer: Option<&Member>) -> Result<(), OrderError> {
        let others = || {
            let its = self.clients.iter().filter(|order| order.pool.id == pool.id);
            its.filter(|order| order.name != name)
        };
        if others().count() >= MOST {
            return Err(OrderError::TooMany(pool.name.to_string(), MOST));
        }
        let Some(writer) = writer else { return Ok(()) };
        if let Some(other) = others().find(|order| order.writer.is_some()) {
            return Err(OrderError::OtherWriter(pool.name.to_string(), other.name.clone()));
        }
        match self.writer_by_hand(pool) {
            Some(ordered) if ordered.id != writer.id => {
                Err(OrderError::ByHand(pool.name.to_string(), ordered.name.clone()))
            }
            _ => Ok(()),
        }
    }

    /// The time since which writes of the pool wait for a client.
    pub(super) fn held_since(&self, pool: &Pool) -> Option<Instant> {
        let its = self.clients.iter().filter(|order| order.pool.id == pool.id);
        let holding = its.filter(|order| order.is_holding());
        holding.filter_map(|order| Some(order.hold?.since)).min()
    }

    /// What the clients of a pool wish together: whether its writes wait, the member that takes them, and when the
    /// first of these wishes is over.
    pub(super) fn joint(&self, pool: &Pool) -> (bool, Option<Arc<Member>>, Option<Instant>) {
        let its = || self.clients.iter().filter(|order| order.pool.id == pool.id);
        let is_held = its().any(ClientOrder::is_holding);
        let writer = its().find_map(|order| order.writer.clone());
        let concerned = its().filter(|order| order.is_holding() || order.writer.is_some());
        (is_held, writer, concerned.map(|order| order.until).min())
    }

    pub(super) fn replace(&mut self, order: ClientOrder) -> Option<ClientOrder> {
        let former = self.remove(&order.pool, &order.name);
        if let Some(former) = &former {
            former.ends.abort();
        }
        self.clients.push(order);
        former
    }

    pub(super) fn remove(&mut self, pool: &Pool, name: &str) -> Option<ClientOrder> {
        let at = self.clients.iter().position(Self::is_of(pool, name))?;
        Some(self.clients.remove(at))
    }

    /// Has the members drain that some order names.
    pub(super) fn note_drains<'a>(&self, drained: impl IntoIterator<Item = &'a Drained>) {
        for Drained { member, .. } in drained {
            self.note_drain(member);
        }
    }

    /// Does a client have this member drain?
    pub(super) fn client_drains(&self, member: MemberId) -> bool {
        let drained = self.clients.iter().flat_map(|order| &order.drains);
        drained.into_iter().any(|drained| drained.member.id == member)
    }
}
