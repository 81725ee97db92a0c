//! Bypass writes: changes that reach some copies of a replicated pool and not all, or are answered before all
//! copies have them.

use std::collections::HashSet;

use proxima_wire::memcache::Command;

use crate::config::{
    operations,
    routes::Keyed,
    schema::{Children, Config, Leaf, Route},
};

/// A route by which a change bypasses copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BypassWrite<'a> {
    /// The route in which the handle stands.
    pub(crate) entry: Entry<'a>,
    pub(crate) handle: &'static str,
    /// The children of the handle: the pool, or one server of it.
    pub(crate) over: &'a str,
    pub(crate) pool: &'a str,
    /// A command that takes this route.
    pub(crate) command: Command,
}

/// A route that is not part of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Entry<'a> {
    /// The route of the listener with this number.
    Listener(usize),
    /// The route with this name.
    Named(&'a str),
}

/// All bypass writes. Each change is followed from the listeners on, so that routes for reads alone do not
/// count.
pub(crate) fn bypass_writes(config: &Config) -> Vec<BypassWrite<'_>> {
    let mut found = Vec::new();
    let mut known = HashSet::new();
    if config.fleet.is_some() {
        // Whatever stands over a pool of a fleet asks the pool as a whole.
        return found;
    }
    for command in operations::changes() {
        let mut seen = HashSet::new();
        let entered = config.listeners.iter().enumerate();
        let mut pending: Vec<(Entry<'_>, &Route)> = entered
            .map(|(number, listener)| (Entry::Listener(number), &listener.route))
            .collect();
        while let Some((entry, route)) = pending.pop() {
            match route {
                Route::Named(name) => pending.extend(
                    config
                        .routes
                        .get_key_value(name)
                        .filter(|(name, _)| seen.insert(name.as_str()))
                        .map(|(name, route)| (Entry::Named(name), route)),
                ),
                Route::Keyed(Keyed::ByOperation(_), operations, default) => {
                    let chosen = operations::entry(operations, command).or(default.as_deref());
                    pending.extend(chosen.map(|route| (entry, route)));
                }
                _ => pending.extend(route.children().into_iter().map(|route| (entry, route))),
            }
            if let Some((handle, over)) = bypasses(route)
                && let Some((pool, _)) = config
                    .pools
                    .get_key_value(over.split('/').next().unwrap_or(over))
                    .filter(|(_, pool)| pool.replicated.is_some())
                && known.insert((entry, handle, over))
            {
                found.push(BypassWrite {
                    entry,
                    handle,
                    over,
                    pool,
                    command,
                });
            }
        }
    }
    found
}

/// The handle, and the child that may be a pool of copies. `all_sync` over a pool of copies is the pool
/// itself.
fn bypasses(route: &Route) -> Option<(&'static str, &str)> {
    match route {
        Route::Leaf(Leaf::Member(member)) => {
            let pool = member.contains('/').then_some(member.as_str());
            pool.and_then(|member| Some((route.name()?, member)))
        }
        Route::Of(of, Children::Pool(pool)) if !of.reaches_all_copies() => Some((of.name(), pool)),
        Route::FailoverWithTtl(.., Children::Pool(pool)) => Some((route.name()?, pool)),
        _ => None,
    }
}
