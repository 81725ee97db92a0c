//! Routes that choose by the client or by the host that this proxy runs on.

use proxima_wire::hash::KeyHash;

use super::{CompileError, maker::Maker};
use crate::{
    config::schema::{Children, FailoverRules},
    route::{
        handle::{ByClient, latest_of},
        tree::{Leaf, Node, NodeId},
    },
};

impl<'a> Maker<'_, 'a> {
    /// A number that stays the same on this host, and that other hosts do not have. Another salt gives
    /// another number.
    pub(super) fn host_number(&self, salt: &str) -> u64 {
        match salt.is_empty() {
            true => self.compiler.host_id,
            false => self.compiler.host_id ^ u64::from(KeyHash::Fnv1a32.hash(salt.as_bytes())),
        }
    }

    /// A number that no other worker has; 0 if the workers are not `apart`.
    pub(super) fn worker_number(&self, apart: bool) -> u64 {
        if apart { self.compiler.trees } else { 0 }
    }

    pub(super) fn by_client(&mut self, children: &'a Children, offset: u64) -> Result<NodeId, CompileError> {
        let children = self.children(children)?;
        Ok(match children[..] {
            [] => self.push(Node::Leaf(Leaf::Null)),
            [only] => only,
            _ => self.push(Node::ByClient {
                handle: Box::new(ByClient { offset }),
                children,
            }),
        })
    }

    pub(super) fn latest(
        &mut self,
        children: &'a Children,
        weights: Option<&[f64]>,
        count: usize,
        seed: u64,
        rules: &FailoverRules,
    ) -> Result<NodeId, CompileError> {
        let nodes = self.children(children)?;
        let mut weights = weights.map(<[f64]>::to_vec).unwrap_or_default();
        weights.resize(nodes.len(), 1.0);
        let chosen = latest_of(weights, count, seed);
        let chosen = chosen.into_iter().filter_map(|child| nodes.get(child).copied());
        let chosen = chosen.collect();
        self.failover(chosen, rules)
    }
}
