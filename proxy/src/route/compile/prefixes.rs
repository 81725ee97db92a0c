//! Routing prefixes of keys, which some servers keep.

use std::sync::Arc;

use super::{
    CompileError,
    maker::{KeptPrefix, Maker},
};
use crate::{config::schema::Route, route::tree::NodeId};

impl<'a> Maker<'_, 'a> {
    /// Does any server keep the routing prefix of its keys?
    pub(in crate::route) fn keeps_prefixes(&self) -> bool {
        let mut pools = self.compiler.config.pools.values();
        pools.any(|pool| pool.keep_routing_prefix)
    }

    /// The route for keys that servers get with this prefix, if they keep it.
    pub(in crate::route) fn with_prefix(
        &mut self,
        prefix: Option<&str>,
        route: &'a Route,
    ) -> Result<NodeId, CompileError> {
        let kept = KeptPrefix {
            given: prefix.filter(|_| self.keeps_prefixes()).map(Arc::from),
            is_hidden: self.prefix.is_hidden,
            is_asked: false,
        };
        let outer = std::mem::replace(&mut self.prefix, kept);
        let made = self.node(route);
        self.prefix = outer;
        made
    }

    /// The route for keys whose prefix servers get as it was asked for, if they keep it, and the routes do
    /// not see.
    pub(in crate::route) fn with_asked_prefix(&mut self, route: &'a Route) -> Result<NodeId, CompileError> {
        let kept = KeptPrefix {
            given: None,
            is_hidden: true,
            is_asked: true,
        };
        let outer = std::mem::replace(&mut self.prefix, kept);
        let made = self.node(route);
        self.prefix = outer;
        made
    }
}
