//! Operators' orders for a pool that has one writer, as workers and the pool's state see them.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the lock is taken by orders and by answers to the pool's own questions, and not on the way of a request"
)]

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Release},
        },
    },
    time::Duration,
};

/// The orders for a pool that has one writer.
#[derive(Debug, Default)]
pub struct PoolOrders {
    is_held: AtomicBool,
    writer: Mutex<Writer>,
}

#[derive(Debug, Default)]
struct Writer {
    last: u64,
    wish: Option<WriterWish>,
    /// The number of the order of which somebody waits until it is followed.
    awaited: Option<u64>,
    given_up: Option<(u64, String)>,
}

/// The order that a member is the writer. It stands until it is taken back: the member is it whenever it can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterWish {
    /// The number of the order, which no other one for the pool has.
    pub number: u64,
    /// The address of the member.
    pub address: String,
    /// The longest time that requests wait for what is under way at the writer that there is.
    pub within: Duration,
    /// Does what is still under way then fail? Otherwise the move is given up.
    pub is_forced: bool,
}

impl PoolOrders {
    /// The pool's requests wait.
    pub fn is_held(&self) -> bool {
        self.is_held.load(Acquire)
    }

    /// Has its requests wait, or no longer.
    pub fn hold(&self, is_held: bool) {
        self.is_held.store(is_held, Release);
    }

    /// The order which member is the writer; `None`: the state of the pool decides.
    pub fn writer(&self) -> Option<WriterWish> {
        self.change(|writer| writer.wish.clone())
    }

    /// Orders that the member at this address is the writer, and has others wait until that is
    /// [settled](Self::settle_writer). Returns the number of the order.
    ///
    /// # Errors
    /// An order for the member at that address is not settled yet.
    pub fn order_writer(&self, address: &str, within: Duration, is_forced: bool) -> Result<u64, String> {
        self.change(|writer| {
            let other = writer.wish.as_ref().filter(|wish| wish.address != address);
            if let Some(other) = other.filter(|other| writer.awaited == Some(other.number)) {
                return Err(other.address.clone());
            }
            writer.last += 1;
            writer.awaited = Some(writer.last);
            writer.wish = Some(WriterWish {
                number: writer.last,
                address: address.to_owned(),
                within,
                is_forced,
            });
            Ok(writer.last)
        })
    }

    /// It is known what has become of the order with this number.
    pub fn settle_writer(&self, number: u64) {
        self.change(|writer| writer.awaited.take_if(|awaited| *awaited == number));
    }

    /// Takes the order with this number back, unless another one has taken its place. The writer that there
    /// is stays it.
    pub fn end_writer(&self, number: u64) {
        self.change(|writer| {
            writer.wish.take_if(|wish| wish.number == number);
        });
    }

    /// The order with this number cannot be followed, for this reason: it is taken back.
    pub fn give_up(&self, number: u64, why: &str) {
        self.change(|writer| {
            writer.wish.take_if(|wish| wish.number == number);
            writer.given_up = Some((number, why.to_owned()));
        });
    }

    /// The reason why the order with this number was given up; `None` if it was not.
    pub fn given_up(&self, number: u64) -> Option<String> {
        self.change(|writer| {
            let (of, why) = writer.given_up.as_ref()?;
            (*of == number).then(|| why.clone())
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut Writer) -> T) -> T {
        change(&mut self.writer.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_stands_until_it_is_taken_back_or_given_up() {
        let orders = PoolOrders::default();
        assert_eq!((orders.is_held(), orders.writer()), (false, None));
        orders.hold(true);
        assert!(orders.is_held());
        let give = |address| orders.order_writer(address, Duration::ZERO, false);
        let order = |address| {
            let number = give(address).unwrap();
            orders.settle_writer(number);
            number
        };
        let address = || orders.writer().map(|wish| wish.address);
        let (first, second) = (order("a"), order("b"));
        assert_eq!(address().as_deref(), Some("b"));
        orders.give_up(first, "late");
        assert_eq!(address().as_deref(), Some("b"), "another one has taken its place");
        assert_eq!(
            (orders.given_up(first), orders.given_up(second)),
            (Some("late".into()), None)
        );
        orders.give_up(second, "down");
        assert_eq!((address(), orders.given_up(second)), (None, Some("down".into())));
        let third = order("a");
        orders.end_writer(second);
        assert_eq!(address().as_deref(), Some("a"), "another one stands");
        orders.end_writer(third);
        assert_eq!(address(), None);
    }

    #[test]
    fn of_two_orders_for_two_members_the_second_is_rejected_until_the_first_is_settled() {
        let orders = PoolOrders::default();
        let order = |address| orders.order_writer(address, Duration::ZERO, false);
        assert_eq!(order("a"), Ok(1));
        assert_eq!(order("b"), Err("a".into()));
        assert_eq!(order("a"), Ok(2), "the same once more");
        orders.settle_writer(1);
        assert_eq!(order("b"), Err("a".into()), "another one waits");
        orders.settle_writer(2);
        assert_eq!(order("b"), Ok(3));
        orders.end_writer(3);
        assert_eq!(order("c"), Ok(4), "that was taken back");
    }
}
