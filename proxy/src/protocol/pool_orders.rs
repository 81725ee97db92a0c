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
            AtomicBool, AtomicU64,
            Ordering::{Acquire, Release},
        },
    },
    time::Duration,
};

/// Time for the control thread to end an order whose time is over.
const GRACE: u64 = 1_000_000;
/// The longest time that writes wait for what is under way at the former writer, where a client orders the next one
/// without a hold.
const WITHIN: Duration = Duration::from_secs(5);

/// The orders for a pool that has one writer.
#[derive(Debug, Default)]
pub struct PoolOrders {
    is_held: AtomicBool,
    /// The time since 1970, in µs, at which what clients have ordered is over; 0: they have ordered nothing.
    until: AtomicU64,
    writer: Mutex<Writer>,
}

#[derive(Debug, Default)]
struct Writer {
    last: u64,
    wish: Option<WriterWish>,
    /// The number of the order of which somebody waits until it is followed.
    awaited: Option<u64>,
    given_up: Option<(u64, String)>,
    /// What clients wish that order for several proxies.
    joint_wish: Option<WriterWish>,
    hold: Option<WriterHold>,
}

/// The order that what the writer would be given waits, at several proxies, until all may go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterHold {
    /// The number of the hold, which no other one for the pool has.
    pub number: u64,
    /// The address of the member that takes writes behind it; `None`: the one that there is.
    pub to: Option<String>,
}

/// What is ordered about the writer of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriterOrders {
    /// The member that is to be it.
    pub wish: Option<WriterWish>,
    /// Comes before that while it is in force.
    pub hold: Option<WriterHold>,
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

    /// The order of a person which member is the writer; `None`: there is none.
    pub fn writer(&self) -> Option<WriterWish> {
        self.change(|writer| writer.wish.clone())
    }

    /// All that is ordered about the writer. What a person has ordered comes before what others wish.
    pub fn of_writer(&self) -> WriterOrders {
        self.change(|writer| WriterOrders {
            wish: writer.wish.clone().or_else(|| writer.joint_wish.clone()),
            hold: writer.hold.clone(),
        })
    }

    /// Takes what clients wish together, in place of what they wished before: whether writes wait, and the address of
    /// the member that takes them. Nothing of it is in force behind `until`, since 1970 in µs. A hold that goes on, or
    /// a wish that stays, keeps its number, unless it was given up.
    pub fn join(&self, is_held: bool, to: Option<&str>, until: u64) {
        self.until.store(until, Release);
        self.change(|writer| {
            let mut next = writer.last;
            let mut number = || {
                next += 1;
                next
            };
            let hold = is_held.then(|| WriterHold {
                number: writer.hold.as_ref().map_or_else(&mut number, |hold| hold.number),
                to: to.map(str::to_owned),
            });
            let same = |wish: &&WriterWish| Some(&*wish.address) == to;
            let stands = writer.joint_wish.as_ref().filter(same).cloned();
            let wish = to.filter(|_| !is_held).map(|to| {
                stands.unwrap_or_else(|| WriterWish {
                    number: number(),
                    address: to.to_owned(),
                    within: WITHIN,
                    is_forced: false,
                })
            });
            writer.last = next;
            (writer.hold, writer.joint_wish) = (hold, wish);
        });
    }

    /// Should what clients have ordered be over at this time since 1970, in µs, and is it not? The process stood still
    /// for so long that others may have moved on.
    #[inline]
    pub fn is_overdue(&self, unix: u64) -> bool {
        let until = self.until.load(Acquire);
        until != 0 && unix > until + GRACE
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
            let is_it = |wish: &mut WriterWish| wish.number == number;
            writer.wish.take_if(is_it);
            writer.joint_wish.take_if(is_it);
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
    fn what_clients_wish_together_keeps_its_number_until_it_changes_or_is_given_up() {
        let orders = PoolOrders::default();
        let hold = |is_held, to| {
            orders.join(is_held, to, 7);
            let WriterOrders { wish, hold } = orders.of_writer();
            (
                wish.map(|wish| (wish.number, wish.address)),
                hold.map(|hold| (hold.number, hold.to)),
            )
        };
        assert_eq!(hold(true, None), (None, Some((1, None))));
        assert_eq!(hold(true, Some("a")), (None, Some((1, Some("a".into())))));
        assert_eq!(hold(false, Some("a")), (Some((2, "a".into())), None));
        assert_eq!(hold(false, Some("a")).0, Some((2, "a".into())));
        orders.give_up(2, "pinned");
        assert_eq!(orders.of_writer(), WriterOrders::default());
        assert_eq!(hold(false, Some("a")).0, Some((3, "a".into())), "another try");
        let person = orders.order_writer("b", Duration::ZERO, false).unwrap();
        assert_eq!(
            hold(false, Some("a")).0,
            Some((person, "b".into())),
            "a person's comes first"
        );
        orders.end_writer(person);
        assert_eq!(hold(false, Some("a")).0, Some((3, "a".into())));
        assert_eq!(hold(false, None), (None, None));
    }

    #[test]
    fn what_is_not_ended_in_time_is_overdue() {
        let orders = PoolOrders::default();
        assert!(!orders.is_overdue(u64::MAX / 2));
        orders.join(true, None, 5_000_000);
        assert!(!orders.is_overdue(6_000_000) && orders.is_overdue(6_000_001));
        orders.join(false, None, 0);
        assert!(!orders.is_overdue(u64::MAX / 2));
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
