//! The order in which children are asked that differ by distance. There is one order for each place of
//! clients. The control thread makes the orders when the node agent reports something new, and the workers
//! share them.

use std::{collections::BTreeMap, sync::Arc};

use super::tree::{Leaf, Node, NodeId, Tree};
use crate::members::{Distance, DistanceSource, Localities, Locality, Rank};

/// The order of the children of one node.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// For the number of each locality, the index of its order in `orders`.
    by_locality: Vec<u16>,
    /// The first order is for clients whose place is unknown or new.
    orders: Vec<Vec<Ranked>>,
}

/// One child in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranked {
    child: u32,
    /// The distance and latency of the nearest server below it.
    pub rank: Rank,
    /// The source of that knowledge.
    pub source: DistanceSource,
}

impl Order {
    fn ranked(&self, client: Locality) -> &[Ranked] {
        let which = self.by_locality.get(client.number()).copied().unwrap_or(0);
        self.orders.get(usize::from(which)).map_or(&[], Vec::as_slice)
    }

    /// The positions of the children for a client at this place, the nearest first.
    #[inline]
    pub fn of(&self, client: Locality) -> impl Iterator<Item = usize> {
        self.ranked(client).iter().map(|ranked| ranked.child as usize)
    }

    /// The rank of a child for a client at this place; `None`: the order does not name the child.
    pub fn rank(&self, client: Locality, child: usize) -> Option<Ranked> {
        let all = self.ranked(client).iter();
        all.copied().find(|ranked| ranked.child as usize == child)
    }

    fn add(&mut self, client: Locality, order: Vec<Ranked>) {
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
pub struct Orders(BTreeMap<u32, Arc<Order>>);

/// Farther than every server.
const LAST: (Rank, DistanceSource) = (
    Rank {
        distance: Distance::Elsewhere,
        latency: u16::MAX,
    },
    DistanceSource::Nothing,
);

/// Nearer than every server, because no network is between.
const FIRST: (Rank, DistanceSource) = (
    Rank {
        distance: Distance::Process,
        latency: 0,
    },
    DistanceSource::Nothing,
);

impl Tree {
    /// The orders of the tree's nodes, by the localities that the node agent reports.
    pub fn orders(&self, localities: &Localities) -> Orders {
        let mut orders: BTreeMap<u32, Order> = BTreeMap::new();
        // The first place is that of clients of unknown address; its order is the default.
        for client in localities.used() {
            let ranks = self.ranks(client, localities);
            let of = |id: &NodeId| ranks.get(id.0 as usize).copied().unwrap_or(LAST);
            for (number, node) in self.nodes.iter().enumerate() {
                let mut order: Vec<Ranked> = match node {
                    Node::Choose { handle, children } if handle.is_by_distance() => {
                        let children = children.iter().enumerate();
                        children.map(|(child, id)| ranked(child, of(id))).collect()
                    }
                    Node::Copies(copies) => {
                        let nearest = copies.nearest.iter();
                        nearest
                            .filter_map(|&child| Some(ranked(child, of(copies.children.get(child)?))))
                            .collect()
                    }
                    _ => continue,
                };
                // The sort is stable: between two of the same rank, the order without an agent decides.
                order.sort_by_key(|ranked| ranked.rank);
                orders.entry(number as u32).or_default().add(client, order);
            }
        }
        let shared = orders
            .into_iter()
            .map(|(number, order)| (number, Arc::new(order)));
        Orders(shared.collect())
    }

    /// The rank of the nearest server below each node. This relies on children standing before their parents.
    fn ranks(&self, client: Locality, localities: &Localities) -> Vec<(Rank, DistanceSource)> {
        let mut ranks: Vec<(Rank, DistanceSource)> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let of = |id: &NodeId| ranks.get(id.0 as usize).copied().unwrap_or(LAST);
            let least = |children: &[NodeId]| children.iter().map(of).min_by_key(|(rank, _)| *rank);
            let rank = match node {
                Node::Leaf(Leaf::Member(member)) => localities.rank(client, member),
                Node::Leaf(Leaf::Embedded) => FIRST,
                Node::Leaf(_) => LAST,
                Node::Wrap { child, .. } => of(child),
                Node::Copies(copies) => least(&copies.children).unwrap_or(LAST),
                Node::Choose { children, .. }
                | Node::ByClient { children, .. }
                | Node::Fan { children, .. }
                | Node::Script { children, .. }
                | Node::Gather { children, .. }
                | Node::Attempt { children, .. } => least(children).unwrap_or(LAST),
            };
            ranks.push(rank);
        }
        ranks
    }

    /// Uses these orders from now on. A node without an order here uses its own.
    pub fn follow(&self, orders: &Orders) {
        for (number, node) in self.nodes.iter().enumerate() {
            let order = orders.0.get(&(number as u32));
            match node {
                Node::Choose { handle, .. } => handle.set_order(order),
                Node::Copies(copies) => *copies.order.borrow_mut() = order.cloned(),
                _ => {}
            }
        }
    }
}

fn ranked(child: usize, (rank, source): (Rank, DistanceSource)) -> Ranked {
    Ranked {
        child: child as u32,
        rank,
        source,
    }
}
