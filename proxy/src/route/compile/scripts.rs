//! Routes that serve a request in several steps. They know memcached's commands.

use std::sync::{Arc, atomic::AtomicU32};

use super::{CompileError, maker::Maker};
use crate::{
    config::schema::{Route, SlowWarmUpSettings},
    route::{
        handle::{
            AddedExpiry, BigValue, HitRate, L1L2Cache, Misses, SizeSplit, SlowWarmUp, Staging, TimeLeft,
            WarmUp, WatchHits,
        },
        tree::{Node, NodeId, Script, Wait},
    },
};

impl<'a> Maker<'_, 'a> {
    pub(super) fn script(
        &mut self,
        handle: impl Script + 'static,
        children: Vec<NodeId>,
    ) -> Result<NodeId, CompileError> {
        if self.protocol.name() != "memcached" {
            return Err(CompileError::Memcached {
                route: handle.name(),
                protocol: self.protocol.name(),
            });
        }
        Ok(self.push(Node::Script {
            handle: Box::new(handle),
            children,
        }))
    }

    fn two(&mut self, one: &'a Route, other: &'a Route) -> Result<Vec<NodeId>, CompileError> {
        Ok(vec![self.node(one)?, self.node(other)?])
    }

    pub(super) fn warm_up(
        &mut self,
        cold: &'a Route,
        warm: &'a Route,
        ttl: Option<i64>,
    ) -> Result<NodeId, CompileError> {
        let children = self.two(cold, warm)?;
        let expiry = match ttl {
            Some(ttl) => AddedExpiry::After(ttl),
            None => AddedExpiry::AsWarm(TimeLeft::default()),
        };
        self.script(WarmUp { expiry }, children)
    }

    pub(super) fn slow_warm_up(
        &mut self,
        child: &'a Route,
        failover: &'a Route,
        settings: SlowWarmUpSettings,
    ) -> Result<NodeId, CompileError> {
        let (child, failover) = (self.node(child)?, self.node(failover)?);
        let rate = Arc::new(HitRate::default());
        let touch = self.protocol.command("touch");
        let watched = WatchHits {
            rate: Arc::clone(&rate),
            touch,
        };
        let watched = self.wrap(watched, child);
        let handle = SlowWarmUp {
            settings,
            rate,
            touch,
        };
        Ok(self.choose(handle, vec![watched, failover]))
    }

    pub(super) fn staging(&mut self, warm: &'a Route, staging: &'a Route) -> Result<NodeId, CompileError> {
        let mut children = self.two(warm, staging)?;
        children.push(self.gather_of(Wait::All, children.clone()));
        self.script(Staging::default(), children)
    }

    pub(super) fn l1_l2_cache(
        &mut self,
        l1: &'a Route,
        l2: &'a Route,
        ttl: i64,
        misses: Option<(i64, u32)>,
    ) -> Result<NodeId, CompileError> {
        let children = self.two(l1, l2)?;
        let misses = misses.map(|(ttl, period)| {
            Arc::new(Misses {
                ttl,
                period: period.max(1),
                found: AtomicU32::new(0),
            })
        });
        self.script(L1L2Cache { ttl, misses }, children)
    }

    pub(super) fn size_split(
        &mut self,
        l1: &'a Route,
        l2: &'a Route,
        handle: SizeSplit,
    ) -> Result<NodeId, CompileError> {
        let children = self.two(l1, l2)?;
        self.script(handle, children)
    }

    pub(super) fn big_value(&mut self, child: &'a Route, handle: BigValue) -> Result<NodeId, CompileError> {
        let child = self.node(child)?;
        self.script(handle, vec![child])
    }
}
