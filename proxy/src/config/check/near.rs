//! Checks of near caches: what stands below one, and its rules.

use std::collections::BTreeMap;

use crate::config::{
    Diagnostic,
    operations::{is_kept, is_word_of},
    reading::{Index, Reading, Site},
    routes::{Keyed, Of, One, Pair},
    schema::{Config, Leaf, NearRoute, NearRule, Route},
};

/// Each `near` route with the place of the route or listener in which it stands.
fn routes<'a>(config: &'a Config, index: &'a Index) -> Vec<(Option<&'a Site>, &'a NearRoute)> {
    let named = config
        .routes
        .iter()
        .map(|(name, route)| (index.routes.get(name), route));
    let listeners = config.listeners.iter().enumerate();
    let entered = listeners.map(|(i, listener)| (index.listeners.get(i), &listener.route));
    let mut pending: Vec<(Option<&Site>, &Route)> = named.chain(entered).collect();
    let mut found = Vec::new();
    while let Some((site, route)) = pending.pop() {
        if let Route::Near(near) = route {
            found.push((site, near));
        }
        pending.extend(route.children().into_iter().map(|child| (site, child)));
    }
    found.reverse();
    found
}

fn refuse(site: Option<&Site>, problem: String) -> Diagnostic {
    match site {
        Some(site) => site.refuse(problem),
        None => Diagnostic::whole(problem),
    }
}

/// Routes below a near cache that change keys or look at the client, stores in this process, and pools of a
/// fleet.
pub(super) fn unfit(config: &Config, index: &Index) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for (site, near) in routes(config, index) {
        let Some(child) = near.child() else { continue };
        for (name, pool) in config.pools_below(child) {
            if config.fleet.is_some() && pool.replicated.is_some() {
                let problem = format!(
                    "`near` stands above pool `{name}` of a fleet, whose other proxies change it too"
                );
                let remedy = "leave the pool without `near`: its nearest copy is on this node already";
                diagnostics.push(refuse(site, problem).with_remedy(remedy));
            }
        }
        for route in config.routes_below(child) {
            if let Some((name, why)) = unfit_below(route) {
                let problem = format!("`{name}` stands below `near`: {why}");
                let remedy = format!("put `near` below `{name}`, as `{{{name}: {{…: {{near: …}}}}}}`");
                let remedy = match route {
                    Route::Leaf(Leaf::Embedded) => {
                        "take `near` away: nothing is nearer than this store".to_owned()
                    }
                    Route::Near(_) => "leave one of them".to_owned(),
                    _ => remedy,
                };
                diagnostics.push(refuse(site, problem).with_remedy(remedy));
            }
        }
    }
    diagnostics
}

/// The route's name, and why it may not stand below a near cache. `None`: it may.
fn unfit_below(route: &Route) -> Option<(&'static str, &'static str)> {
    const CHANGES: &str =
        "it changes keys, and a change at the servers would not be known by the key that is kept";
    let why = match route {
        Route::Of(Of::Failover(failover), _) if failover.rules.tag => {
            return Some(("failover with tag", CHANGES));
        }
        Route::One(
            One::ModifyKey(_) | One::ShardSplit(_) | One::KeySplit(_) | One::HashStop(_) | One::BigValue(_),
            _,
        )
        | Route::Pair(Pair::SizeSplit(_), ..)
        | Route::Keyed(Keyed::ByRoutingPrefix(_), ..) => CHANGES,
        Route::Of(Of::ByClient(_), _) => "one client's replies are not another's",
        Route::Leaf(Leaf::Embedded) => "it is in this process already",
        Route::Near(_) => "two of them keep the same twice",
        _ => return None,
    };
    Some((route.name()?, why))
}

/// Rules with one name, and commands that cannot be kept.
pub(super) fn rules(config: &Config, index: &Index) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for (site, near) in routes(config, index) {
        if near.rules.is_empty() {
            let problem = "`near` has no rule, and keeps nothing".to_owned();
            let remedy = "write a rule, as `{name: all, ttl: 1s}`, or take `near` away";
            diagnostics.push(refuse(site, problem).with_remedy(remedy));
        }
        for NearRule { name, commands, .. } in &near.rules {
            let count = names.entry(name).or_default();
            *count += 1;
            if *count == 2 {
                let problem = format!("two rules of `near` have the name `{name}`");
                let remedy = "give each rule of the configuration a name of its own";
                diagnostics.push(refuse(site, problem).with_remedy(remedy));
            }
            let protocols = || config.listeners.iter().map(|listener| listener.protocol);
            for word in commands {
                let problem = match protocols().any(|protocol| is_word_of(protocol, word)) {
                    _ if protocols().any(|protocol| is_kept(protocol, word)) => continue,
                    true => format!("rule `{name}` is for `{word}`, whose replies are never kept"),
                    false => format!("rule `{name}` is for `{word}`, which is no command of any listener"),
                };
                let remedy = "name commands that read one key, such as `get`";
                diagnostics.push(refuse(site, problem).with_remedy(remedy));
            }
        }
    }
    diagnostics
}

/// Warns of what a user of a near cache might not expect.
pub(in crate::config) fn warn_of_near(config: &Config, cx: &mut Reading) {
    let mut warnings = Vec::new();
    let index = &cx.index;
    for (site, near) in routes(config, index) {
        for rule in &near.rules {
            if rule.ttl > NearRule::LONG && !rule.is_alone {
                let problem = format!(
                    "rule `{}` keeps replies for {} s: what other proxies or clients change at the servers is \
                     seen no sooner",
                    rule.name,
                    rule.ttl.as_secs() + rule.stale.as_secs()
                );
                let remedy =
                    "choose a `ttl` up to 60s, or write `others: none` if all changes come through here";
                warnings.push(refuse(site, problem).with_remedy(remedy));
            }
        }
        let below = near.child().map(|child| config.routes_below(child));
        for route in below.unwrap_or_default() {
            let reads_older = matches!(
                route,
                Route::Of(Of::Failover(_) | Of::AllFastest(_), _) | Route::Pair(Pair::Migrate(_), ..)
            );
            let Some(name) = route.name().filter(|_| reads_older) else {
                continue;
            };
            let problem = format!("`{name}` below `near` may read an older copy, and what it read is kept");
            warnings.push(refuse(site, problem));
        }
    }
    cx.warnings.extend(warnings);
}
