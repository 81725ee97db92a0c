//! Routes that copy requests or limit them.

use std::cell::RefCell;

use proxima_wire::message::Outcome;

use super::{CompileError, maker::Maker};
use crate::{
    config::schema::{self, ErrorReply, Queue, Rate, Rates, Route, ShadowKeys},
    route::{
        handle::{Bucket, ByKey, OutstandingLimit, RateLimit, Sample, Sampled, Shadow},
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
        let mut samples = Vec::new();
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
        }
        Ok(self.fan(Shadow { samples }, children))
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
            None => self.push(Node::Leaf(Leaf::Null)),
        };
        let bucket = |rate: Option<Rate>| rate.map(Bucket::new);
        let handle = RateLimit {
            gets: bucket(rates.gets),
            sets: bucket(rates.sets),
            deletes: bucket(rates.deletes),
            touch: self.dialect.command("touch"),
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
