//! Routes that hash the key.

use std::sync::Arc;

use proxima_wire::hash::{Distribution, DistributionError, Node as HashNode, twemproxy_order};

use super::{CompileError, maker::Maker};
use crate::{
    config::{
        distribution,
        schema::{Algorithm, Hash, OnEject},
    },
    route::{
        handle::{HashRoute, InTurn, RandomChild, ShareAnew},
        tree::{Leaf, Node, NodeId},
    },
};

impl Maker<'_, '_> {
    pub(in crate::route) fn hash(
        &mut self,
        spec: Hash,
        mut nodes: Vec<NodeId>,
        over: impl Fn() -> String,
    ) -> Result<NodeId, CompileError> {
        match nodes[..] {
            [] => {
                let text = format!(
                    "HashRoute with empty children, name: {}",
                    over().trim_start_matches("pool ")
                );
                return Ok(self.push(Node::Leaf(Leaf::Error(text.into()))));
            }
            [only] => return Ok(only),
            _ => {}
        }
        if matches!(
            spec.algorithm,
            Algorithm::Modula(_) | Algorithm::KetamaTwemproxy(_)
        ) {
            nodes.sort_by(|&a, &b| twemproxy_order(&self.name(a), &self.name(b)));
        }
        let distribution = self.shared_distribution(&spec, &nodes, &over)?;
        Ok(match distribution {
            Some(distribution) if !self.protocol.has_keys() => {
                let weights = self.names_and_weights(&spec, &nodes);
                let is_even = weights.windows(2).all(|pair| pair[0].1 == pair[1].1);
                self.choose(InTurn::new(HashRoute { distribution, spec }, is_even), nodes)
            }
            Some(distribution) if spec.eject == OnEject::ShareAnew => {
                let shared = self.names_and_weights(&spec, &nodes).into();
                self.choose(ShareAnew::new(HashRoute { distribution, spec }, shared), nodes)
            }
            Some(distribution) => self.choose(HashRoute { distribution, spec }, nodes),
            None => self.choose(RandomChild, nodes),
        })
    }

    /// The next distribution. It is made with the first tree, and all later trees share it.
    pub(super) fn shared_distribution(
        &mut self,
        spec: &Hash,
        nodes: &[NodeId],
        over: &dyn Fn() -> String,
    ) -> Result<Option<Arc<Distribution>>, CompileError> {
        let number = self.hashes;
        self.hashes += 1;
        if let Some(distribution) = self.compiler.distributions.get(number) {
            return Ok(distribution.clone());
        }
        let made = self
            .distribution(spec, nodes)
            .map_err(|source| CompileError::Hash { over: over(), source })?;
        let made = made.map(Arc::new);
        self.compiler.distributions.push(made.clone());
        Ok(made)
    }

    fn distribution(&self, spec: &Hash, nodes: &[NodeId]) -> Result<Option<Distribution>, DistributionError> {
        let children = self.names_and_weights(spec, nodes);
        let listed: Vec<HashNode<'_>> = children
            .iter()
            .map(|(name, weight)| HashNode {
                name,
                weight: *weight,
            })
            .collect();
        distribution(spec.algorithm, &listed)
    }

    /// The name and the weight of each child in this hash.
    fn names_and_weights(&self, spec: &Hash, nodes: &[NodeId]) -> Vec<(String, f64)> {
        let names: Vec<String> = match &spec.tags {
            Some(tags) => tags.clone(),
            None => nodes.iter().map(|&node| self.name(node)).collect(),
        };
        let weight = |index: usize| match (&spec.weights, spec.algorithm) {
            // As in mcrouter, a weight that is not given is one half.
            (Some(weights), _) => weights.get(index).copied().unwrap_or(0.5),
            (None, _) => nodes
                .get(index)
                .and_then(|&node| self.member_below(node))
                .map_or(1.0, |member| member.weight),
        };
        let with_weight = |(index, name)| (name, weight(index));
        names.into_iter().enumerate().map(with_weight).collect()
    }

    /// The name by which consistent hashing knows a child.
    pub(super) fn name(&self, node: NodeId) -> String {
        match self.member_below(node) {
            Some(member) => member.name.clone(),
            None => format!("child-{}", node.0),
        }
    }
}
