//! Checks of how fresh reads are: a promise that the servers' cluster makes possible, and that is known before
//! a request is led anywhere.

use std::collections::HashSet;

use crate::config::{
    Diagnostic,
    document::shortened,
    reading::{Index, Site},
    routes::One,
    schema::{Config, Consistency, Protocol, Route},
};

/// Listeners and routes that promise to show certain writes, before servers of which it is not known what they
/// have; and routes that say it where it is too late, or for another protocol.
pub(super) fn unkept(config: &Config, index: &Index) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for (listener, site) in config.listeners.iter().zip(&index.listeners) {
        if let Some(word) = listener.door.consistency {
            diagnostics.extend(unknown(config, site, word, &listener.route));
        }
        let at_top = at_top(config, &listener.route);
        for route in config.routes_below(&listener.route) {
            let Route::One(One::ConsistencyRoute(said), child) = route else {
                continue;
            };
            diagnostics.extend(unknown(config, site, said.word, child));
            if listener.protocol != Protocol::MYSQL {
                let problem = format!(
                    "its route says how fresh reads are, and servers of {} are not asked for that",
                    listener.protocol.0
                );
                let remedy = "take `consistency` away: it is for MySQL";
                diagnostics.push(site.refuse(problem).with_remedy(remedy));
            } else if !at_top.iter().any(|top| std::ptr::eq(*top, route)) {
                let problem = "`consistency` stands below a route that looks at statements";
                let remedy = "put it at the top of the listener's route, or below `by_user` and `by_schema`";
                diagnostics.push(site.refuse(problem.to_owned()).with_remedy(remedy));
            }
        }
    }
    diagnostics
}

/// What is wrong with this word, if the route leads to servers that cannot keep it.
fn unknown(config: &Config, site: &Site, word: Consistency, route: &Route) -> Option<Diagnostic> {
    let word = match word {
        Consistency::Session | Consistency::Causal => word.name(),
        Consistency::Strict | Consistency::Eventual => return None,
    };
    let pools = config.pools_below(route);
    let (name, _) = pools.iter().find(|(_, pool)| pool.one_writer.is_none())?;
    let name = shortened(name);
    let problem = format!("`consistency: {word}`, and nobody knows what the servers of `{name}` have");
    let remedy = "write `galera: true` in the pool if it is a Galera cluster, or leave `consistency` out";
    Some(site.refuse(problem).with_remedy(remedy))
}

/// The routes that a request meets before any that looks at it.
fn at_top<'a>(config: &'a Config, route: &'a Route) -> Vec<&'a Route> {
    let (mut pending, mut seen, mut found) = (vec![route], HashSet::new(), Vec::new());
    while let Some(route) = pending.pop() {
        found.push(route);
        match route {
            Route::Named(name) if seen.insert(name) => pending.extend(config.routes.get(name)),
            Route::One(One::ConsistencyRoute(_), child) => pending.push(child),
            Route::Keyed(keyed, ..) if keyed.of_login().is_some() => pending.extend(route.children()),
            _ => {}
        }
    }
    found
}
