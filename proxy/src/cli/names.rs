//! Names of servers, looked up as `run` would: one that does not resolve refuses the start.

use std::{collections::BTreeSet, net::SocketAddr};

use tokio::{net::lookup_host, runtime::Builder, task::JoinSet};

use crate::config::{
    schema::{Config, Source},
    servers,
};

/// Names that are looked up at the same time: each takes a thread, and where DNS is silent, seconds.
const AT_ONCE: usize = 64;

/// A warning for each name of a server that does not resolve here.
pub(super) fn unresolved(config: &Config) -> Vec<String> {
    let Ok(runtime) = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(AT_ONCE)
        .build()
    else {
        return Vec::new();
    };
    let asked = named(config);
    let mut warnings = runtime.block_on(async {
        let answers: JoinSet<_> = asked.into_iter().map(refusal).collect();
        answers.join_all().await
    });
    warnings.sort();
    warnings.into_iter().flatten().collect()
}

/// Servers by name, as pool and address. What stands in a file was found good before; addresses need nobody's answer.
fn named(config: &Config) -> BTreeSet<(String, String)> {
    let mut named = BTreeSet::new();
    for (pool, spec) in &config.pools {
        let servers = match &spec.source {
            Source::Static(servers) => servers.clone(),
            Source::File(path) => servers::load(path).unwrap_or_default(),
            Source::Dns(_) => Vec::new(),
        };
        for server in servers {
            if !server.address.starts_with("unix:") && server.address.parse::<SocketAddr>().is_err() {
                named.insert((pool.clone(), server.address));
            }
        }
    }
    named
}

async fn refusal((pool, address): (String, String)) -> Option<String> {
    let why = match lookup_host(&address).await.map(|mut found| found.next()) {
        Ok(Some(_)) => return None,
        Ok(None) => "it has no address".to_owned(),
        Err(error) => error.to_string(),
    };
    Some(format!(
        "pools.{pool}: `{address}` does not resolve here ({why}); a proxy that cannot look it up does not start"
    ))
}
