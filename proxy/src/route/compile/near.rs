//! The route `near`.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write,
    sync::Arc,
};

use super::{
    CompileError,
    maker::{Build, Maker},
};
use crate::{
    config::schema::{Config, NearRoute, NearRule, NearSource, NearValues, Route},
    near::{ConfiguredRule, HttpOrigin, RuleSettings, Rules},
    route::tree::{Leaf, NearNode, NearRuleFor, Node, NodeId},
};

/// The answer to what an origin does not serve.
const NOT_SERVED: &str = "this route leads to an HTTP origin: get, mg, GET and MGET read it, delete and DEL drop \
                          what is kept of a key, and nothing else is served";

impl<'a> Build<'a, ()> for NearRoute {
    fn build(&'a self, (): (), maker: &mut Maker<'_, 'a>) -> Result<NodeId, CompileError> {
        let (child, origin) = match &self.source {
            NearSource::Child(child) => (maker.node(child)?, None),
            NearSource::Origin(origin) => {
                let refusal = maker.push(Node::Leaf(Leaf::Error(NOT_SERVED.into())));
                (refusal, Some(Arc::new(HttpOrigin::from(origin))))
            }
        };
        let Some((near, rules)) = maker.compiler.near.clone() else {
            return Ok(child);
        };
        if maker.protocol.cacheable().is_none() {
            return Err(CompileError::NotKept(maker.protocol.name()));
        }
        let commands = |rule: &NearRule| -> Box<[u16]> {
            let numbers = rule
                .commands
                .iter()
                .filter_map(|word| maker.protocol.command(word));
            numbers.collect()
        };
        let made = self.rules.iter().filter_map(|rule| {
            Some(NearRuleFor {
                rule: Arc::clone(rules.get(&rule.name)?),
                keys: rule.keys.clone(),
                commands: commands(rule),
            })
        });
        let rules = made.collect();
        Ok(maker.push(Node::Near(NearNode {
            near,
            rules,
            child,
            origin,
        })))
    }
}

/// The settings of a rule. `None`: some of them are missing.
pub fn near_settings(values: &NearValues) -> Option<RuleSettings> {
    Some(RuleSettings {
        ttl: values.ttl?.into(),
        jitter: (values.jitter? * 100.0).round() as u8,
        stale: values.stale?.into(),
        stale_on_error: values.stale_on_error?.into(),
        negative: values.negative?.into(),
        largest: values.largest? as u64,
    })
}

/// The settings of all rules by name, as the files have them.
pub fn all_near_settings(config: &Config) -> BTreeMap<&str, RuleSettings> {
    let rules = config.near_rules().into_iter();
    let settings = |rule: &'_ NearRule| near_settings(&config.near_values(rule));
    rules
        .filter_map(|rule| Some((&*rule.name, settings(rule)?)))
        .collect()
}

/// The rules of a configuration, those that stay the same taken over from `before`. `running`: the
/// configuration that runs.
pub fn near_rules(config: &Config, before: &Rules, running: &Config) -> Rules {
    let (settings, earlier) = (all_near_settings(config), all_near_settings(running));
    let mut told = Vec::new();
    for near in config.near_routes() {
        let below = match &near.source {
            NearSource::Child(child) => below(config, child),
            NearSource::Origin(origin) => format!("{origin:?}"),
        };
        told.extend(near.rules.iter().filter_map(|rule| {
            Some(ConfiguredRule {
                name: rule.name.clone(),
                text: format!("{rule:?} {below}"),
                settings: *settings.get(&*rule.name)?,
                before: earlier.get(&*rule.name).copied(),
            })
        }));
    }
    before.next(told.into_iter())
}

/// The text of what stands below a route, named routes and the pools' users and databases included. Lists of
/// servers are not in it.
fn below(config: &Config, route: &Route) -> String {
    let (mut pending, mut seen, mut text) = (vec![route], HashSet::new(), format!("{route:?}"));
    while let Some(route) = pending.pop() {
        pending.extend(route.children());
        let Some(name) = route.pool().filter(|&name| seen.insert(name)) else {
            continue;
        };
        // Writing to a string does not fail.
        if let Some(named) = config.routes.get(name) {
            let _ = write!(text, " {name}: {named:?}");
            pending.push(named);
        } else if let Some(pool) = config.pools.get(name) {
            let _ = write!(text, " {name}: {:?} {}", pool.login.user, pool.login.database);
        }
    }
    text
}
