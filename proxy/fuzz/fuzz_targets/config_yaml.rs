//! Proxima's own configuration: any text is accepted and becomes trees, or is refused with its place.
#![no_main]

use std::{collections::BTreeMap, path::Path};

use libfuzzer_sys::fuzz_target;
use proxima::{
    config,
    members::{OwnLocation, Registry},
    protocol::Protocols,
    route::Compiler,
};

fuzz_target!(|text: &str| {
    let config = match config::parse(text, Path::new("F")) {
        Ok(loaded) => loaded.config,
        Err(error) => return assert!(error.to_string().starts_with("F:"), "{error}"),
    };
    let mut servers = BTreeMap::new();
    for (name, pool) in &config.pools {
        if let Some(listed) = pool.source.fixed() {
            // No look-ups of names while fuzzing.
            let plain = |address: &str| {
                address.starts_with("unix:") || address.parse::<std::net::SocketAddr>().is_ok()
            };
            if !listed.iter().all(|server| plain(&server.address)) {
                return;
            }
            servers.insert(name.clone(), listed.to_vec());
        }
    }
    if text.contains("member") {
        return;
    }
    let mut registry = Registry::new(OwnLocation::new(&["127.0.0.1".parse().unwrap()], None));
    let listeners: Vec<String> = config
        .listeners
        .iter()
        .map(|listener| listener.address.clone())
        .collect();
    if let Ok(mut compiler) = Compiler::new(&config, &servers, &mut registry, Protocols::PLAIN, "fuzz", 1) {
        // The second tree shares what the first has made.
        for _ in 0..2 {
            let _ = compiler.tree(&mut registry, &listeners);
        }
    }
});
