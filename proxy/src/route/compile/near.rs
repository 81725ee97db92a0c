//! The route `near`.

use std::{collections::HashSet, fmt::Write, sync::Arc};

use super::{CompileError, maker::Maker};
use crate::{
    config::schema::{Config, NearRoute, NearRule, NearSource, Route},
    near::{HttpOrigin, RuleSettings, Rules, Told},
    route::tree::{Leaf, NearNode, NearRuleFor, Node, NodeId},
};

/// The answer to what an origin does not serve.
const NOT_SERVED: &str = "this route leads to an HTTP origin: get, mg, GET and MGET read it, delete and DEL drop \
                          what is kept of a key, and nothing else is served";

impl<'a> Maker<'_, 'a> {
    pub(super) fn near(&mut self, route: &'a NearRoute) -> Result<NodeId, CompileError> {
        let (child, origin) = match &route.source {
            NearSource::Child(child) => (self.node(child)?, None),
            NearSource::Origin(origin) => {
                let refusal = self.push(Node::Leaf(Leaf::Error(NOT_SERVED.into())));
                (refusal, Some(Arc::new(HttpOrigin::from(origin))))
            }
        };
        let Some((near, rules)) = self.compiler.near.clone() else {
            return Ok(child);
        };
        if self.protocol.cacheable().is_none() {
            return Err(CompileError::NotKept(self.protocol.name()));
        }
        let commands = |rule: &NearRule| -> Box<[u16]> {
            let numbers = rule
                .commands
                .iter()
                .filter_map(|word| self.protocol.command(word));
            numbers.collect()
        };
        let made = route.rules.iter().filter_map(|rule| {
            Some(NearRuleFor {
                rule: Arc::clone(rules.get(&rule.name)?),
                keys: rule.keys.clone(),
                commands: commands(rule),
            })
        });
        let rules = made.collect();
        Ok(self.push(Node::Near(NearNode {
            near,
            rules,
            child,
            origin,
        })))
    }
}

/// The settings of a rule, as the configuration has them.
pub(super) fn settings(rule: &NearRule) -> RuleSettings {
    RuleSettings {
        ttl: rule.ttl.into(),
        jitter: (rule.jitter * 100.0) as u8,
        stale: rule.stale.into(),
        stale_on_error: rule.stale_on_error.into(),
        negative: rule.negative.into(),
        largest: rule.largest as u64,
    }
}

/// The rules of a configuration, those that stay the same taken over from `before`.
pub fn near_rules(config: &Config, before: &Rules) -> Rules {
    let entered = config.listeners.iter().map(|listener| &listener.route);
    let mut pending: Vec<&Route> = config.routes.values().chain(entered).collect();
    let mut told = Vec::new();
    while let Some(route) = pending.pop() {
        if let Route::Near(near) = route {
            let below = match &near.source {
                NearSource::Child(child) => below(config, child),
                NearSource::Origin(origin) => format!("{origin:?}"),
            };
            told.extend(near.rules.iter().map(|rule| Told {
                name: rule.name.clone(),
                text: format!("{rule:?} {below}"),
                settings: settings(rule),
            }));
        }
        pending.extend(route.children());
    }
    before.next(told.into_iter())
}

/// The text of what stands below a route, named routes included. Lists of servers are not in it.
fn below(config: &Config, route: &Route) -> String {
    let (mut pending, mut seen, mut text) = (vec![route], HashSet::new(), format!("{route:?}"));
    while let Some(route) = pending.pop() {
        pending.extend(route.children());
        if let Some(name) = route.pool().filter(|&name| seen.insert(name))
            && let Some(named) = config.routes.get(name)
        {
            // Writing to a string does not fail.
            let _ = write!(text, " {name}: {named:?}");
            pending.push(named);
        }
    }
    text
}
