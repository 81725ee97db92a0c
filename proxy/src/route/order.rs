//! In which order children are asked that are told apart by their distance: one order for each place of clients, made by the
//! control thread when the node agent tells something new, and shared by the workers.

use std::{collections::BTreeMap, sync::Arc};

use super::tree::{Leaf, Node, NodeId, Tree};
use crate::members::{Distance, DistanceSource, Localities, Locality, Rank};

/// The order of the children of one node.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// By the number of a locality: which of the orders.
    by_locality: Vec<u16>,
    /// The first is that of clients whose place is not known, or new.
    orders: Vec<Vec<Ranked>>,
}

/// One child in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranked {
    child: u32,
    /// How near its nearest server is, and from what that is known.
    pub rank: Rank,
    pub source: DistanceSource,
}

impl Order {
    fn ranked(&self, client: Locality) -> &[Ranked] {
        let which = self.by_locality.get(client.number()).copied().unwrap_or(0);
        self.orders.get(usize::from(which)).map_or(&[], Vec::as_slice)
    }

    /// The children for a client there, the nearest first.
    #[inline]
    pub fn of(&self, client: Locality) -> impl Iterator<Item = usize> {
        self.ranked(client).iter().map(|ranked| ranked.child as usize)
    }

    /// How near a child is to a client there.
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

/// Farther than everything.
const LAST: (Rank, DistanceSource) = (
    Rank {
        distance: Distance::Elsewhere,
        latency: u16::MAX,
    },
    DistanceSource::Nothing,
);

/// Nearer than everything: it is not on the way to any server.
const FIRST: (Rank, DistanceSource) = (
    Rank {
        distance: Distance::Process,
        latency: 0,
    },
    DistanceSource::Nothing,
);

impl Tree {
    /// The orders of its nodes by what the agent tells.
    pub fn orders(&self, localities: &Localities) -> Orders {
        let mut orders: BTreeMap<u32, Order> = BTreeMap::new();
        // The first place is that of clients of which nothing is known: its order is the default.
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
                // Stable: between two of the same rank the order without an agent decides.
                order.sort_by_key(|ranked| ranked.rank);
                orders.entry(number as u32).or_default().add(client, order);
            }
        }
        let shared = orders
            .into_iter()
            .map(|(number, order)| (number, Arc::new(order)));
        Orders(shared.collect())
    }

    /// How near the nearest server below each node is. Children stand before their parents.
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
                | Node::Gather { children, .. }
                | Node::Attempt { children, .. } => least(children).unwrap_or(LAST),
            };
            ranks.push(rank);
        }
        ranks
    }

    /// Asks by these orders from now on; by its own where there is none.
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
