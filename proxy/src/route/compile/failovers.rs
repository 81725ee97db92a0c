//! Routes that go on to the next child after an error.

use std::{cell::Cell, sync::Arc};

use super::{CompileError, maker::Maker};
use crate::{
    config::schema::{Algorithm, FailoverPolicy, FailoverRules, Hash},
    route::{
        handle::{
            Failover, HashOrder, Insert, LeasePairing, LeastFailures, Place, Policy, RendezvousOrder, Tokens,
        },
        tree::NodeId,
    },
};

/// The end of keys that go to another child than the first, where that is asked for.
const TAG: &[u8] = b":failover=1";

impl Maker<'_, '_> {
    /// A failover over these children.
    pub(in crate::route) fn failover(
        &mut self,
        mut children: Vec<NodeId>,
        rules: &FailoverRules,
    ) -> Result<NodeId, CompileError> {
        if children.len() < 2 {
            return Ok(self.first_of(children));
        }
        let policy = self.policy(&children, &rules.policy)?;
        if rules.tag {
            for child in children.iter_mut().skip(1) {
                let insert = Insert {
                    place: Place::BehindStop,
                    text: TAG.to_vec(),
                    of: "failover_tag",
                };
                *child = self.wrap(insert, *child);
            }
        }
        let pairing = rules.pairs_leases.as_ref().map(|name| LeasePairing {
            route: LeasePairing::route(name),
            table: Arc::clone(&self.compiler.leases),
        });
        let own = children.clone();
        if let Some(pairing) = &pairing {
            for (number, child) in children.iter_mut().enumerate().skip(1) {
                *child = self.script(pairing.exchange(number), vec![*child])?;
            }
        }
        let handle = Failover {
            errors: rules.errors.clone(),
            limit: rules.limit.clone().map(Tokens::new),
            policy,
            counts: Cell::default(),
        };
        let failover = self.attempt(handle, children);
        Ok(match pairing {
            Some(pairing) => {
                let children = std::iter::once(failover).chain(own).collect();
                self.script(pairing, children)?
            }
            None => failover,
        })
    }

    fn policy(
        &mut self,
        children: &[NodeId],
        policy: &FailoverPolicy,
    ) -> Result<Option<Box<dyn Policy>>, CompileError> {
        let over = || "a failover's children".to_owned();
        Ok(match policy {
            FailoverPolicy::InOrder => None,
            FailoverPolicy::LeastFailures { tries } => {
                Some(Box::new(LeastFailures::new(*tries, children.len())))
            }
            FailoverPolicy::HashOrder(order) => {
                let spec = match &order.weights {
                    Some(weights) => Hash {
                        weights: Some(weights.clone()),
                        ..Hash::of(Algorithm::WeightedCh3)
                    },
                    None => Hash::of(Algorithm::Ch3),
                };
                let distribution = self.shared_distribution(&spec, children, &over)?;
                distribution.map(|distribution| -> Box<dyn Policy> {
                    Box::new(HashOrder {
                        distribution,
                        parts: Arc::clone(&self.parts),
                        tries: order.tries,
                        error_tries: order.error_tries,
                        exclude: order.exclude.clone(),
                        domains: order.domains.clone(),
                        knows_first: order.knows_first,
                    })
                })
            }
            FailoverPolicy::Rendezvous { tags } => {
                let spec = Hash {
                    tags: Some(tags.clone()),
                    ..Hash::of(Algorithm::Rendezvous)
                };
                let distribution = self.shared_distribution(&spec, &children[1..], &over)?;
                distribution.map(|distribution| -> Box<dyn Policy> {
                    Box::new(RendezvousOrder {
                        distribution,
                        parts: Arc::clone(&self.parts),
                    })
                })
            }
        })
    }
}
