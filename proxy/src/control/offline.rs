//! What a configuration would do, without a running proxy.

use std::{net::IpAddr, sync::Arc};

use super::{
    dns::{self, Names},
    front, host,
    reload::ReloadError,
};
use crate::{
    config::Loaded,
    dialect::{Dialect, Memcache},
    members::{Here, Registry, copies::Views},
    route::{self, Build, Random},
};

/// Where a request for `key` would go, for each listener, with every server taken to be up.
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
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let names = Arc::new(Names::new(runtime.handle().clone()));
    names.follow(&dns::questions(config));
    runtime.block_on(names.first());
    let servers = front::servers(config, &names).map_err(|error| error.to_string())?;
    let mut registry = Registry::new(Here::new(node, zone));
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
    let request = Memcache::PLAIN.example(command, key.as_bytes());
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
