//! The questions of a configuration: lists of servers, and host names in server addresses.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    config::{
        schema::{Config, Fleet, Leaf, Question, Route},
        source::Lists,
    },
    members::Address,
};

/// A set of questions.
#[derive(Debug, Default)]
pub(in crate::control) struct Questions {
    pub(super) lists: BTreeSet<Question>,
    pub(super) hosts: BTreeSet<String>,
}

impl Questions {
    /// The questions of a configuration. `servers` are those of its pools, as far as they are known.
    pub(in crate::control) fn of(config: &Config, servers: &Lists) -> Self {
        let lists = config.pools.values().filter_map(|pool| pool.source.question());
        let peers = config.fleet.iter().filter_map(Fleet::question);
        Self {
            lists: lists.chain(peers).collect(),
            hosts: hosts(config, servers).into_values().flatten().collect(),
        }
    }

    /// Adds other questions.
    pub(in crate::control) fn extend(&mut self, others: Self) {
        self.lists.extend(others.lists);
        self.hosts.extend(others.hosts);
    }
}

/// Host names in server addresses, by pool. A server that stands in a route is a pool of its own.
pub(in crate::control) fn hosts(config: &Config, servers: &Lists) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut add = |pool: &str, address: &str| {
        if let Some(Address::Host(host, _)) = Address::parse(address) {
            found.entry(pool.into()).or_default().insert(host.into());
        }
    };
    for (pool, servers) in servers {
        servers.iter().for_each(|server| add(pool, &server.address));
    }
    let listeners = config.listeners.iter().map(|listener| &listener.route);
    let mut rest: Vec<&Route> = listeners.chain(config.routes.values()).collect();
    while let Some(route) = rest.pop() {
        if let Route::Leaf(Leaf::Member(address)) = route {
            add(address, address);
        }
        rest.extend(route.children());
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn hosts_are_those_of_lists_and_routes() {
        let text = "listeners: [{address: \"127.0.0.1:1\", route: {failover: [a, {member: \"own:1\"}, {member: a/mc-0:1}]}}]
pools: {a: [mc-0:1, mc-0:2, \"10.0.0.1:1\", \"[::1]:1\", \"unix:/run/m\", localhost:1], b: {dns: named:1}}
routes: {c: {nearest: [b, {member: other:1}]}}";
        let config = crate::config::parse(text, Path::new("x")).unwrap().config;
        let servers = crate::config::source::lists(&config).unwrap();
        let questions = Questions::of(&config, &servers);
        assert_eq!(questions.lists.len(), 1);
        let names: Vec<_> = questions.hosts.iter().map(String::as_str).collect();
        assert_eq!(names, ["localhost", "mc-0", "other", "own"]);
        let pools: Vec<_> = hosts(&config, &servers).into_keys().collect();
        assert_eq!(pools, ["a", "other:1", "own:1"]);
    }
}
