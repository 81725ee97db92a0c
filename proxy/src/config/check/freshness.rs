//! Checks of how fresh reads are: a promise that the servers' cluster makes possible, and that is known
//! before a request is led anywhere.

use std::collections::HashSet;

use crate::config::{
    Diagnostic,
    document::shortened,
    reading::{Index, Site},
    routes::One,
    schema::{Config, Consistency, Protocol, Route},
};

/// Listeners and routes that promise to show certain writes, before servers of which it is not known what
/// they have; and routes that say it where it is too late, or for another protocol.
pub(super) fn unkept(config: &Config, index: &Index) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for (listener, site) in config.listeners.iter().zip(&index.listeners) {
        if let Some(word) = listener.door.consistency {
            diagnostics.extend(unknown(config, site, word, &listener.route));
        }
        let said = config.routes_below(&listener.route).into_iter();
        let said: Vec<_> = said
            .filter_map(|route| match route {
                Route::One(One::ConsistencyRoute(said), child) => Some((said.level, child)),
                _ => None,
            })
            .collect();
        for (word, child) in &said {
            diagnostics.extend(unknown(config, site, *word, child));
        }
        if listener.protocol != Protocol::MYSQL && !said.is_empty() {
            let problem = format!(
                "its route says how fresh reads are, and servers of {} are not asked for that",
                listener.protocol.0
            );
            let remedy = "take `consistency` away: it is for MySQL";
            diagnostics.push(site.refuse(problem).with_remedy(remedy));
        } else if let Some(above) = comes_too_late(config, &listener.route) {
            let problem = format!("`consistency` stands below `{above}`, which is asked too late for it");
            let remedy = "put it at the top of the listener's route, or below `by_user` and `by_schema`";
            diagnostics.push(site.refuse(problem).with_remedy(remedy));
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

/// The route, if there is one, above which a route that says how fresh reads are should stand: it looks at
/// statements, or may answer them itself.
fn comes_too_late(config: &Config, route: &Route) -> Option<&'static str> {
    let (mut pending, mut seen) = (vec![(route, None)], HashSet::new());
    while let Some((route, above)) = pending.pop() {
        let below = match route {
            // What has a name may stand in both places.
            Route::Named(name) if seen.insert((name, above)) => {
                pending.extend(config.routes.get(name).map(|route| (route, above)));
                continue;
            }
            Route::Named(_) => continue,
            Route::One(One::ConsistencyRoute(_), _) if above.is_some() => return above,
            Route::One(One::ConsistencyRoute(_), _) => None,
            Route::Keyed(keyed, ..) if keyed.of_login().is_some() => above,
            other => above.or(other.name()),
        };
        pending.extend(route.children().into_iter().map(|child| (child, below)));
    }
    None
}
