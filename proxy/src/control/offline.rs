//! What a configuration would do, without a running proxy.

use std::{net::IpAddr, sync::Arc};

use super::{
    dns::{self, Names, Questions},
    front::Lists,
    host,
    reload::ReloadError,
};
use crate::{
    config::{Loaded, schema::Config},
    dialect::Memcache,
    members::{Here, Registry, copies::Views},
    route::{self, Build, Random},
};

/// Asks for every name once; returns what was answered in time, and the servers of each pool.
fn ask(config: &Config) -> Result<(Arc<Names>, Lists), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let names = Arc::new(Names::new(runtime.handle().clone()));
    let servers = runtime
        .block_on(names.begin(config))
        .map_err(|error| error.to_string())?;
    Ok((names, servers))
}

/// The names of servers that do not resolve here: pool, name, and why.
///
/// # Errors
/// A list of servers cannot be read.
pub fn unresolved(config: &Config) -> Result<Vec<(String, String, String)>, String> {
    let (names, servers) = ask(config)?;
    let known = names.addresses(&Questions::of(config, &servers));
    let mut found = Vec::new();
    for (pool, hosts) in dns::hosts(config, &servers) {
        for host in hosts.into_iter().filter(|host| !known.contains_key(host)) {
            let why = names.why_not(&host).to_string();
            found.push((pool.clone(), host, why));
        }
    }
    Ok(found)
}

/// Where a request for `key` would go, for each listener, with every server taken to be up that has an address.
///
/// # Errors
/// The configuration cannot be used, or this is no request.
pub fn explain(
    loaded: &Loaded,
    node: &[IpAddr],
    zone: Option<String>,
    command: &str,
    key: &str,
) -> Result<String, String> {
    let config = &loaded.config;
    let (names, servers) = ask(config)?;
    let mut registry = Registry::new(Here::new(node, zone));
    registry.set_hosts(names.addresses(&Questions::of(config, &servers)));
    let build = Build::new(
        config,
        &servers,
        &mut registry,
        &Memcache::PLAIN,
        &loaded.version_hash,
        host::id(),
    );
    let listeners: Vec<String> = config
        .listeners
        .iter()
        .map(|listener| listener.address.clone())
        .collect();
    let built = build
        .and_then(|mut build| build.tree(&mut registry, &listeners))
        .map_err(|error| ReloadError::from(error).to_string())?;
    let request = Memcache::example(command, key.as_bytes());
    let mut text = String::new();
    for (number, address) in listeners.iter().enumerate() {
        text.push_str(&format!("listener {address}: "));
        text.push_str(&route::explain(
            &built.tree,
            &Views::default(),
            number,
            &request,
            &mut Random(0),
        )?);
    }
    for warning in built.warnings {
        text.push_str(&format!("warning: {warning}\n"));
    }
    Ok(text)
}
