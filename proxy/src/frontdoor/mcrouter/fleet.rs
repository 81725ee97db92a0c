//! `--fleet`, which mcrouter does not have: pools to all of whose servers an AllSyncRoute writes become pools
//! of a fleet, in which each proxy is next to one of the servers.

use std::path::Path;

use super::keep_writing::written_as_a_whole;
use crate::config::{
    ConfigError, Diagnostic, PeerFile,
    schema::{Config, Replicated},
};

/// Makes this proxy a peer. Returns warnings.
///
/// # Errors
/// The file names a pool that is not one of the fleet's. `path`: that file.
pub(super) fn join(config: &mut Config, peer: &PeerFile, path: &Path) -> Result<Vec<String>, ConfigError> {
    let pools = written_as_a_whole(config);
    config.fleet = Some(peer.fleet.clone());
    for (name, _) in &peer.own {
        if !pools.contains(name) {
            let problem = format!("`own` of `{name}`: no AllSyncRoute writes to a pool of this name");
            let names: Vec<&str> = pools.iter().map(String::as_str).collect();
            let remedy = match names.is_empty() {
                true => "let an AllSyncRoute write to the whole pool".to_owned(),
                false => format!("these are written as a whole: {}", names.join(", ")),
            };
            return Err(ConfigError::one(
                path,
                Diagnostic::whole(problem).with_remedy(remedy),
            ));
        }
    }
    for name in &pools {
        let Some(pool) = config.pools.get_mut(name) else {
            continue;
        };
        pool.replicated = Some(Replicated {
            min_acks: Some(1),
            ..Replicated::DEFAULT
        });
        if let Some((_, own)) = peer.own.iter().find(|(pool, _)| pool == name) {
            pool.source = own.clone();
        }
    }
    let idle = "--fleet has no pool: no AllSyncRoute writes to a whole pool";
    Ok(pools.is_empty().then(|| idle.to_owned()).into_iter().collect())
}
