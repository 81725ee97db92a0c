//! `--keep-writing`, which mcrouter does not have: a pool to all of whose servers an AllSyncRoute writes
//! becomes a pool of copies. Writes then continue when a node is lost, and the node is not read again before
//! it is repaired.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::config::{
    Diagnostic,
    check::bypass_writes,
    routes::{self, Of, Spec},
    schema::{Children, Config, Pool, Replicated, Route},
};

/// Makes pools that are written as a whole replicated. Returns warnings.
///
/// # Errors
/// A pool has fewer servers than must have taken a write.
pub(super) fn keep_writing(config: &mut Config, how: Replicated) -> Result<Vec<String>, Diagnostic> {
    let pools = written_as_a_whole(config);
    let mut warnings = Vec::new();
    if pools.is_empty() {
        warnings.push("--keep-writing has nothing to do: no AllSyncRoute writes to a whole pool".to_owned());
    }
    for name in pools {
        let Some(pool) = config.pools.get_mut(&name) else {
            continue;
        };
        let Some(servers) = pool.source.fixed() else {
            continue;
        };
        match (servers.len(), how.min_acks) {
            (servers, Some(acks)) if acks as usize > servers => {
                let problem = format!(
                    "--keep-writing={acks} of pool `{name}` with {servers} servers: every write would be refused"
                );
                return Err(Diagnostic::whole(problem).with_remedy("ask for as many as there are, or fewer"));
            }
            (2, None) => warnings.push(format!(
                "pool `{name}` has {}. With --keep-writing=1 both go on",
                Replicated::TWO
            )),
            _ => {}
        }
        pool.replicated = Some(how);
    }
    warnings.extend(replace_bypasses(config));
    Ok(warnings)
}

/// Handles routes that change copies without waiting for all of them. They do not notice a copy that has left
/// its pool, so such a copy counts as new when it returns.
fn replace_bypasses(config: &mut Config) -> Vec<String> {
    let mut found = BTreeMap::new();
    for bypass in bypass_writes(config) {
        found
            .entry((bypass.pool.to_owned(), mcrouters_name(bypass.handle)))
            .or_insert(bypass.command.name());
    }
    for (name, _) in found.keys() {
        if let Some(Pool {
            replicated: Some(replicated),
            ..
        }) = config.pools.get_mut(name)
        {
            replicated.grace = Duration::ZERO;
        }
    }
    let warning = |((pool, handle), command): ((String, _), _)| {
        format!(
            "pool `{pool}` is changed by {handle} as well (`{command}`), which --keep-writing cannot make wait for every copy: \
             old values may be read. Let AllSyncRoute make all changes"
        )
    };
    found.into_iter().map(warning).collect()
}

fn mcrouters_name(handle: &'static str) -> &'static str {
    match handle {
        routes::ByHash::NAME => "HashRoute",
        routes::Random::NAME => "RandomRoute",
        routes::HostId::NAME => "HostIdRoute",
        routes::ByClient::NAME => "OriginalClientHashRoute",
        routes::Latest::NAME => "LatestRoute",
        routes::AllMajority::NAME => "AllMajorityRoute",
        routes::AllFastest::NAME => "AllFastestRoute",
        routes::AllInitial::NAME => "AllInitialRoute",
        routes::AllAsync::NAME => "AllAsyncRoute",
        routes::Failover::NAME => "FailoverRoute",
        routes::MissFailover::NAME => "MissFailoverRoute",
        routes::FailoverWithTtl::NAME => "FailoverWithExptimeRoute",
        other => other,
    }
}

/// The pools that an AllSyncRoute writes to as a whole.
pub(super) fn written_as_a_whole(config: &Config) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let roots = config.listeners.iter().map(|listener| &listener.route);
    let mut pending: Vec<&Route> = roots.chain(config.routes.values()).collect();
    while let Some(route) = pending.pop() {
        if let Route::Of(Of::AllSync(_), Children::Pool(name)) = route {
            found.insert(name.clone());
        }
        pending.extend(route.children());
    }
    found
}
