//! Checks of nesting: no route leads back to itself, and none is too deep.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::config::{
    Diagnostic,
    reading::Index,
    schema::{Config, Route},
};

/// Named routes that lead back to themselves.
pub(super) fn circles(config: &Config, index: &Index) -> Vec<Diagnostic> {
    let named: BTreeMap<&str, BTreeSet<&str>> = config
        .routes
        .iter()
        .map(|(name, route)| (name.as_str(), names(route)))
        .collect();
    let mut finished = BTreeSet::new();
    let mut diagnostics = Vec::new();
    for start in named.keys().copied() {
        // The path from `start`, each route with the names that are still to be followed.
        let mut way = vec![(start, names_of(&named, start))];
        while let Some((at, next)) = way.last_mut() {
            let (at, next) = (*at, next.pop());
            let Some(next) = next else {
                finished.insert(at);
                way.pop();
                continue;
            };
            if let Some(back) = way.iter().position(|(name, _)| *name == next) {
                let circle: Vec<&str> = way[back..].iter().map(|(name, _)| *name).chain([next]).collect();
                let problem = format!("the route leads back to itself: {}", circle.join(" → "));
                let diagnostic = match index.routes.get(next) {
                    Some(site) => site.refuse(problem),
                    None => Diagnostic::whole(problem),
                };
                diagnostics.push(diagnostic.with_remedy("let one of them go elsewhere"));
                finished.insert(next);
            } else if named.contains_key(next) && !finished.contains(next) {
                way.push((next, names_of(&named, next)));
            }
        }
    }
    diagnostics
}

fn names_of<'a>(named: &BTreeMap<&'a str, BTreeSet<&'a str>>, name: &str) -> Vec<&'a str> {
    named.get(name).into_iter().flatten().copied().collect()
}

/// The names anywhere in a route.
fn names(route: &Route) -> BTreeSet<&str> {
    let mut out = BTreeSet::new();
    let mut rest = vec![route];
    while let Some(route) = rest.pop() {
        if let Route::Named(name) = route {
            out.insert(name.as_str());
        }
        rest.extend(route.children());
    }
    out
}

/// Routes that are nested deeper, names followed, than a tree may be.
pub(super) fn too_deep(config: &Config, index: &Index) -> Vec<Diagnostic> {
    let mut depths = HashMap::new();
    let named = config
        .routes
        .iter()
        .map(|(name, route)| (index.routes.get(name), route));
    let entered = config
        .listeners
        .iter()
        .enumerate()
        .map(|(i, listener)| (index.listeners.get(i), &listener.route));
    let deep = named
        .chain(entered)
        .filter(|(_, route)| depth(config, route, &mut depths) > Route::DEPTH)
        .map(|(site, _)| {
            let problem = format!("routes are nested more than {} deep", Route::DEPTH);
            site.map_or_else(
                || Diagnostic::whole(problem.clone()),
                |site| site.refuse(problem.clone()),
            )
        });
    deep.take(1).collect()
}

/// The depth of a route, names followed. There must be no circle. The depths of named routes are kept, as
/// many may lead to one.
fn depth<'a>(config: &'a Config, route: &'a Route, known: &mut HashMap<&'a str, usize>) -> usize {
    if let Route::Named(name) = route {
        if let Some(depth) = known.get(name.as_str()) {
            return *depth;
        }
        let depth = config
            .routes
            .get(name)
            .map_or(1, |route| 1 + depth(config, route, known));
        known.insert(name, depth);
        return depth;
    }
    1 + route
        .children()
        .into_iter()
        .map(|child| depth(config, child, known))
        .max()
        .unwrap_or(0)
}
