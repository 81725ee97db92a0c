//! Checks of pools of copies: rules that no write can meet, bypass writes, and surprising sizes.

use std::collections::BTreeMap;

use super::bypass_writes::{BypassWrite, Entry, bypass_writes};
use crate::config::{
    Diagnostic,
    reading::{Index, Reading, Site},
    schema::{Config, Replicated},
};

/// Refuses rules that no write can meet, and routes that bring a change to some copies only.
pub(in crate::config) fn unkept(config: &Config, index: &Index) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for (name, pool) in &config.pools {
        let (Some(replicated), Some(servers)) = (&pool.replicated, pool.source.fixed()) else {
            continue;
        };
        let wanted = replicated.min_acks.unwrap_or(0) as usize;
        if wanted > servers.len() {
            let problem = format!(
                "`min_acks: {wanted}` of {} servers: every write would be refused",
                servers.len()
            );
            diagnostics.extend(index.pools.get(name).map(|site| {
                site.refuse(problem)
                    .with_remedy("ask for as many as there are, or fewer")
            }));
        }
    }
    diagnostics.extend(half_written(config, index));
    diagnostics
}

/// Changes that would leave stale copies which are read. Each is reported at the place of the handle. If the
/// route has the handle several times, it is reported where the route begins.
fn half_written(config: &Config, index: &Index) -> Vec<Diagnostic> {
    let mentions: BTreeMap<(&str, &str), &Site> = index
        .mentions
        .iter()
        .map(|mention| ((mention.name.as_str(), mention.site.path.as_str()), &mention.site))
        .collect();
    let complain = |bypass: BypassWrite<'_>| {
        let BypassWrite {
            handle, over, pool, ..
        } = bypass;
        let entry = match bypass.entry {
            Entry::Listener(number) => index.listeners.get(number),
            Entry::Named(name) => index.routes.get(name),
        }?;
        let mut within = mentions
            .range((over, entry.path.as_str())..)
            .take_while(|((name, path), _)| *name == over && path.starts_with(&entry.path))
            .filter(|((_, path), _)| path[entry.path.len()..].contains(&format!(".{handle}")))
            .map(|(_, site)| *site);
        let site = match (within.next(), within.next()) {
            (Some(site), None) => site,
            _ => entry,
        };
        let command = bypass.command.name();
        let problem = match handle {
            "member" => {
                format!("`{over}` alone: a `{command}` would leave the other copies of `{pool}` behind")
            }
            _ => format!(
                "`{handle}` over `{pool}`, which is replicated: a `{command}` would leave copies behind"
            ),
        };
        let remedy =
            "name the pool alone as the route; what only reads may stand below `by_operation: {read: …}`";
        Some(site.refuse(problem).with_remedy(remedy))
    };
    bypass_writes(config).into_iter().filter_map(complain).collect()
}

/// Warns of two copies whose majority is two: the loss of one stops the writes, which few expect. In a fleet
/// its peers are asked for a majority, not the copies.
pub(in crate::config) fn warn_of_two(config: &Config, cx: &mut Reading) {
    if config.fleet.is_some() {
        return;
    }
    for (name, pool) in &config.pools {
        if let (Some(Replicated { min_acks: None, .. }), Some(servers)) =
            (&pool.replicated, pool.source.fixed())
            && servers.len() == 2
            && let Some(at) = cx.index.pools.get(name).map(|site| site.at)
        {
            cx.warn(
                at,
                format!(
                    "pool `{name}` has {}. With `replicated: {{min_acks: 1}}` both go on",
                    Replicated::TWO
                ),
            );
        }
    }
}
