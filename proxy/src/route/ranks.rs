//! The orders of a tree's nodes, made of the distances of the servers below them.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    order::{Order, Orders, RankedChild},
    tree::{Leaf, Node, NodeId, Tree},
};
use crate::members::{Distance, DistanceSource, Localities, Locality, Rank};

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
                let mut order: Vec<RankedChild> = match node {
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
                Node::Near(near) => of(&near.child),
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

fn ranked(child: usize, (rank, source): (Rank, DistanceSource)) -> RankedChild {
    RankedChild {
        child: child as u32,
        rank,
        source,
    }
}
