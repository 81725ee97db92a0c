//! The order in which children are asked that differ by distance. There is one order for each place of
//! clients. The control thread makes the orders when the node agent reports something new, and the workers
//! share them.

use std::{collections::BTreeMap, sync::Arc};

use crate::members::{DistanceSource, Locality, Rank};

/// The order of the children of one node.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// For the number of each locality, the index of its order in `orders`.
    by_locality: Vec<u16>,
    /// The first order is for clients whose place is unknown or new.
    orders: Vec<Vec<RankedChild>>,
}

/// One child in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankedChild {
    /// The position of the child.
    pub(super) child: u32,
    /// The distance and latency of the nearest server below it.
    pub rank: Rank,
    /// The source of that knowledge.
    pub source: DistanceSource,
}

impl Order {
    fn ranked(&self, client: Locality) -> &[RankedChild] {
        let which = self.by_locality.get(client.number()).copied().unwrap_or(0);
        self.orders.get(usize::from(which)).map_or(&[], Vec::as_slice)
    }

    /// The positions of the children for a client at this place, the nearest first.
    #[inline]
    pub fn of(&self, client: Locality) -> impl Iterator<Item = usize> {
        self.ranked(client).iter().map(|ranked| ranked.child as usize)
    }

    /// The rank of a child for a client at this place; `None`: the order does not name the child.
    pub fn rank(&self, client: Locality, child: usize) -> Option<RankedChild> {
        let all = self.ranked(client).iter();
        all.copied().find(|ranked| ranked.child as usize == child)
    }

    /// Sets the order for clients at this place.
    pub(super) fn add(&mut self, client: Locality, order: Vec<RankedChild>) {
        let which = match self.orders.iter().position(|known| *known == order) {
            Some(which) => which,
            None => {
                self.orders.push(order);
                self.orders.len() - 1
            }
        };
        if self.by_locality.len() <= client.number() {
            self.by_locality.resize(client.number() + 1, 0);
        }
        self.by_locality[client.number()] = which as u16;
    }
}

/// The orders of a tree's nodes; every tree of one configuration has the same nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders(pub(super) BTreeMap<u32, Arc<Order>>);
