//! `--keep-writing`, which mcrouter has not: a pool that an AllSyncRoute writes to as a whole is one of copies. A lost node then
//! stops no write, and is not read again before it was repaired.

use std::collections::BTreeSet;

use crate::config::schema::{Children, Config, Replicated, Route};

/// Makes the pools that are written as a whole replicated ones; returns their names.
pub(super) fn keep_writing(config: &mut Config) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let roots = config.listeners.iter().map(|listener| &listener.route);
    let mut pending: Vec<&Route> = roots.chain(config.routes.values()).collect();
    while let Some(route) = pending.pop() {
        if let Route::AllSync(Children::Pool(name)) = route {
            found.insert(name.clone());
        }
        pending.extend(route.children());
    }
    for name in &found {
        if let Some(pool) = config.pools.get_mut(name) {
            // As mcrouter does: each server computes for itself.
            pool.replicated = Some(Replicated {
                decide_at_home: false,
                ..Replicated::DEFAULT
            });
        }
    }
    found
}
