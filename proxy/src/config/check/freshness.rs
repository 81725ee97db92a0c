//! Checks of how fresh reads are: a promise that the servers' cluster makes possible.

use crate::config::{
    Diagnostic,
    document::shortened,
    reading::Index,
    schema::{Config, Consistency},
};

/// Listeners that promise to show certain writes, before servers of which it is not known what they have.
pub(super) fn unkept(config: &Config, index: &Index) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for (number, listener) in config.listeners.iter().enumerate() {
        let word = match listener.door.consistency {
            Some(word @ (Consistency::Session | Consistency::Causal)) => word.name(),
            Some(Consistency::Strict | Consistency::Eventual) | None => continue,
        };
        let pools = config.pools_below(&listener.route);
        let lacks = pools.iter().find(|(_, pool)| pool.one_writer.is_none());
        let (Some((name, _)), Some(site)) = (lacks, index.listeners.get(number)) else {
            continue;
        };
        let name = shortened(name);
        let problem = format!("`consistency: {word}`, and nobody knows what the servers of `{name}` have");
        diagnostics.push(site.refuse(problem).with_remedy(
            "write `galera: true` in the pool if it is a Galera cluster, or leave `consistency` out",
        ));
    }
    diagnostics
}
