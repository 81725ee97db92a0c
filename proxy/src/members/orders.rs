//! What operators have ordered for a pool, as workers and the pool's protocol see it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
};

use super::health::note_change;

/// The orders that are in force for a pool. An order that is repeated changes nothing.
#[derive(Debug, Default)]
pub struct PoolOrders {
    /// Members that are given no new requests.
    draining: AtomicU32,
}

impl PoolOrders {
    /// Whether any member of the pool is given no new requests.
    #[inline]
    pub fn drains(&self) -> bool {
        self.draining.load(Relaxed) > 0
    }
}

/// Whether one member is given no new requests, because an operator has ordered it. A member of the same pool
/// at the same address has the same.
#[derive(Clone, Debug, Default)]
pub struct Draining(Arc<AtomicBool>);

impl Draining {
    /// Whether it is.
    #[inline]
    pub fn is_ordered(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Orders it or takes it back, for a member of this pool.
    pub fn set(&self, orders: &PoolOrders, is_ordered: bool) {
        if self.0.swap(is_ordered, Relaxed) == is_ordered {
            return;
        }
        match is_ordered {
            true => orders.draining.fetch_add(1, Relaxed),
            false => orders.draining.fetch_sub(1, Relaxed),
        };
        note_change();
    }
}

#[cfg(test)]
mod tests {
    use super::{Draining, PoolOrders};

    #[test]
    fn a_repeated_order_counts_once() {
        let (orders, one, other) = (PoolOrders::default(), Draining::default(), Draining::default());
        one.set(&orders, true);
        one.set(&orders, true);
        other.set(&orders, true);
        assert!(orders.drains() && one.is_ordered());
        one.set(&orders, false);
        one.set(&orders, false);
        assert!(orders.drains() && !one.is_ordered() && other.is_ordered());
        other.set(&orders, false);
        assert!(!orders.drains());
    }
}
