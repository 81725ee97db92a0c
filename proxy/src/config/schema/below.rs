//! What stands below a route: the routes in it, those that it names, and the pools to which they lead.

use std::collections::HashSet;

use super::{Config, Pool, Route};

impl Config {
    /// This route and all routes below it. A route that has a name is followed once.
    pub fn routes_below<'a>(&'a self, route: &'a Route) -> Vec<&'a Route> {
        let (mut pending, mut seen, mut found) = (vec![route], HashSet::new(), Vec::new());
        while let Some(route) = pending.pop() {
            found.push(route);
            pending.extend(route.children());
            let name = route.pool().filter(|&name| seen.insert(name));
            pending.extend(name.and_then(|name| self.routes.get(name)));
        }
        found
    }

    /// The pools to which this route leads, by name.
    pub fn pools_below<'a>(&'a self, route: &'a Route) -> Vec<(&'a str, &'a Pool)> {
        let mut seen = HashSet::new();
        let names = self.routes_below(route).into_iter().filter_map(Route::pool);
        let names = names.filter(|&name| !self.routes.contains_key(name) && seen.insert(name));
        names
            .filter_map(|name| Some((name, self.pools.get(name)?)))
            .collect()
    }
}
