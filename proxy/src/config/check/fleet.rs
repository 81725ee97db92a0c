//! Checks of a fleet: its pools, and what its peers say of a pool's own server.

use crate::config::{
    Diagnostic,
    reading::Index,
    schema::{Config, Role},
};

/// Refuses what a fleet cannot keep, and what only a fleet has.
pub(super) fn unkept(config: &Config, index: &Index) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for (name, pool) in &config.pools {
        let Some(site) = index.pools.get(name) else {
            continue;
        };
        let (is_replicated, has_own) = (pool.replicated.is_some(), pool.source.own().is_some());
        let is_listed = pool.source.fixed().is_some();
        let refused = match (&config.fleet, is_replicated, has_own) {
            (None, _, true) => Some((
                format!("`{name}` has an own server, and there is no fleet"),
                "write `fleet:`, or `servers:` with all servers of the pool",
            )),
            (Some(_), true, false) if !is_listed => Some((
                format!(
                    "the servers of `{name}` are at nobody's side: in a fleet each copy has a peer that alone talks to it"
                ),
                "write `own: ADDRESS` with the server at this proxy's side, `own: none`, or the list of all as `servers:`",
            )),
            (Some(_), false, true) => Some((
                format!("`{name}` has an own server, and is not replicated"),
                "write `replicated: true`",
            )),
            _ => None,
        };
        diagnostics.extend(refused.map(|(problem, remedy)| site.refuse(problem).with_remedy(remedy)));
    }
    if let (Some(fleet), Some(site)) = (&config.fleet, &index.fleet) {
        if config.state.is_some() {
            diagnostics.push(
                site.refuse("`state` beside `fleet`: the fleet's own directory says what copies have missed")
                    .with_remedy("leave `state` out"),
            );
        }
        if fleet.role == Role::Witness && config.pools.values().any(|pool| pool.source.own().is_some()) {
            diagnostics.push(
                site.refuse("a witness has no copy")
                    .with_remedy("leave the pool out, or write `role: peer`"),
            );
        }
    }
    diagnostics
}
