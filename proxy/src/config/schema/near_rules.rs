//! All rules by which a configuration keeps replies.

use super::{Config, NearRoute, NearRule, NearValues, Route};

impl Config {
    /// All routes that keep replies.
    pub fn near_routes(&self) -> Vec<&NearRoute> {
        let entered = self.listeners.iter().map(|listener| &listener.route);
        let mut pending: Vec<&Route> = self.routes.values().chain(entered).collect();
        let mut found = Vec::new();
        while let Some(route) = pending.pop() {
            if let Route::Near(near) = route {
                found.push(near);
            }
            pending.extend(route.children());
        }
        found
    }

    /// All rules by which replies are kept.
    pub fn near_rules(&self) -> Vec<&NearRule> {
        self.near_routes()
            .into_iter()
            .flat_map(|near| &near.rules)
            .collect()
    }

    /// The settings of this rule, where nothing was changed since the files were read.
    pub fn near_values(&self, rule: &NearRule) -> NearValues {
        match self.near.kept.rules.get(&rule.name) {
            Some(kept) => kept.or(&rule.values()),
            None => rule.values(),
        }
    }
}
