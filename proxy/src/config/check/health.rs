//! Checks of health: it can be well.

use crate::config::{
    Diagnostic,
    document::shortened,
    reading::{Index, LeastMembers},
    schema::Config,
};

/// Each number of members that must be up and is larger than the pool's list of servers. Lists that come from
/// elsewhere may grow.
pub(super) fn unreachable(config: &Config, index: &Index) -> Vec<Diagnostic> {
    let unreachable = index.wanted.iter().filter_map(|wanted| {
        let LeastMembers {
            site,
            pool,
            least,
            remedy,
        } = wanted;
        let servers = config.pools.get(pool)?.source.fixed()?.len();
        (servers < *least as usize).then(|| {
            let noun = if servers == 1 { "server" } else { "servers" };
            let name = shortened(pool);
            site.refuse(format!(
                "pool `{name}` has {servers} {noun}, so that {least} are never up"
            ))
            .with_remedy(remedy.as_str())
        })
    });
    unreachable.collect()
}
