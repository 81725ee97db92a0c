//! Snapshots of the node agent: any bytes are read or refused, and every place has an order.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use proxima::{
    config,
    members::{ClientSource, Localities, Machine, OwnLocation, Registry},
    protocol::Protocols,
    route::Compiler,
};

const CONFIG: &str = "pools: {p: [10.0.0.1:1, 10.0.0.2:1, \"[fd00::1]:1\"]}\n\
                      listeners: [{address: 127.0.0.1:1, route: {nearest: p}}]\n";

fuzz_target!(|text: &[u8]| {
    let _ = Machine::read(text);
    let Ok(told) = Localities::read(text) else {
        return;
    };
    for address in ["10.0.0.1", "10.0.0.2", "fd00::1"] {
        let client = ClientSource::Address(address.parse().unwrap());
        let place = told.of_client(&client);
        assert!(told.used().contains(&place));
        assert!(!told.describe(place).is_empty());
    }
    let config = config::parse(CONFIG, Path::new("F")).unwrap().config;
    let Some(servers) = config.pools["p"].source.fixed() else {
        return;
    };
    let servers = [("p".to_owned(), servers.to_vec())].into();
    let mut registry = Registry::new(OwnLocation::new(&[], None));
    let mut compiler = Compiler::new(&config, &servers, &mut registry, Protocols::PLAIN, "fuzz", 1).unwrap();
    let tree = compiler
        .tree(&mut registry, &["127.0.0.1:1".into()])
        .unwrap()
        .tree;
    tree.follow(&tree.orders(&told));
});
