//! Operators' orders for a pool that has one writer, as workers and the pool's state see them.

use std::sync::atomic::{
    AtomicBool, AtomicU32,
    Ordering::{Acquire, Release},
};

/// The orders for a pool that has one writer.
#[derive(Debug, Default)]
pub struct PoolOrders {
    is_held: AtomicBool,
    /// The position of the member that is to be the writer, and one more; 0 without an order.
    writer: AtomicU32,
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

    /// The position of the member that is to be the writer; `None`: the state of the pool decides.
    pub fn writer(&self) -> Option<usize> {
        self.writer
            .load(Acquire)
            .checked_sub(1)
            .map(|writer| writer as usize)
    }

    /// Orders the writer.
    pub fn set_writer(&self, position: Option<usize>) {
        let number = position.and_then(|position| u32::try_from(position + 1).ok());
        self.writer.store(number.unwrap_or(0), Release);
    }
}

#[cfg(test)]
mod tests {
    use super::PoolOrders;

    #[test]
    fn order_may_name_the_first_member_or_none() {
        let orders = PoolOrders::default();
        assert_eq!((orders.is_held(), orders.writer()), (false, None));
        orders.set_writer(Some(0));
        orders.hold(true);
        assert_eq!((orders.is_held(), orders.writer()), (true, Some(0)));
        orders.set_writer(None);
        assert_eq!(orders.writer(), None);
    }
}
