//! Routes that copy requests or limit them.

use std::{cell::RefCell, sync::Arc};

use xxhash_rust::xxh3::xxh3_64;

use proxima_wire::message::Outcome;

use super::{CompileError, maker::Maker};
use crate::{
    config::schema::{self, ErrorReply, Queue, Rate, Rates, Route, ShadowKeys},
    route::{
        handle::{Bucket, ByKey, OutstandingLimit, RateLimit, Sample, Sampled, Shadow, ShadowLeases},
        tree::{Leaf, Node, NodeId},
    },
};

impl<'a> Maker<'_, 'a> {
    pub(super) fn shadow(
        &mut self,
        child: &'a Route,
        shadows: &'a [schema::Shadow],
    ) -> Result<NodeId, CompileError> {
        let mut children = vec![self.node(child)?];
        let (mut samples, mut identities) = (Vec::new(), Vec::new());
        for shadow in shadows {
            // What a shadow fails to delete is not kept.
            let spools = self.spools.take();
            let target = self.node(&shadow.target);
            self.spools = spools;
            let target = target?;
            let none = Queue {
                most: 0,
                full: ErrorReply {
                    outcome: Outcome::Busy,
                    text: "too many copies of requests are under way".to_owned(),
                },
            };
            children.push(self.limited(target, shadow.in_flight, Some(none)));
            let keys = match &shadow.keys {
                ShadowKeys::Between(from, to) => Sampled::between(*from, *to),
                ShadowKeys::Listed(keys) => {
                    let keys = keys.iter().map(|key| key.as_bytes().to_vec());
                    Sampled::Listed(keys.collect())
                }
            };
            let share = shadow.share;
            samples.push(Sample { keys, share });
            // It is the same in all trees that have this shadow.
            identities.push(xxh3_64(format!("{:?}", shadow.target).as_bytes()));
        }
        let samples: Arc<[Sample]> = samples.into();
        let number = |name| self.protocol.command(name);
        let leases = number("lease-get").zip(number("lease-set"));
        if leases.is_some() {
            let handle = ShadowLeases {
                samples: Arc::clone(&samples),
                shadows: identities.into(),
                table: Arc::clone(&self.compiler.leases),
            };
            let script = self.script(handle, children.clone())?;
            children.push(script);
        }
        let leases = leases.map(|(get, set)| [get, set]);
        Ok(self.fan(Shadow { samples, leases }, children))
    }

    pub(super) fn outstanding_limit(
        &mut self,
        child: &'a Route,
        most: usize,
        queue: Option<&Queue>,
    ) -> Result<NodeId, CompileError> {
        let child = self.node(child)?;
        Ok(self.limited(child, most, queue.cloned()))
    }

    fn limited(&mut self, child: NodeId, most: usize, queue: Option<Queue>) -> NodeId {
        let state = RefCell::default();
        self.wrap(OutstandingLimit { most, queue, state }, child)
    }

    pub(super) fn rate_limit(
        &mut self,
        child: &'a Route,
        rates: &Rates,
        fallback: Option<&'a Route>,
    ) -> Result<NodeId, CompileError> {
        let child = self.node(child)?;
        let fallback = match fallback {
            Some(route) => self.node(route)?,
            None => self.push(Node::Leaf(Leaf::OverLimit)),
        };
        let bucket = |rate: Option<Rate>| rate.map(Bucket::new);
        let handle = RateLimit {
            gets: bucket(rates.gets),
            sets: bucket(rates.sets),
            deletes: bucket(rates.deletes),
            touch: self.protocol.command("touch"),
        };
        Ok(self.choose(handle, vec![child, fallback]))
    }

    pub(super) fn by_key(
        &mut self,
        keys: &[String],
        listed: &'a Route,
        default: &'a Route,
    ) -> Result<NodeId, CompileError> {
        let children = vec![self.node(listed)?, self.node(default)?];
        let keys = keys.iter().map(|key| key.as_bytes().to_vec()).collect();
        Ok(self.choose(ByKey { keys }, children))
    }
}
