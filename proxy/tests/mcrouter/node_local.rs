//! The well-known set-up: a memcached on every node, with reads from the nearest and writes to all.

use std::{collections::BTreeMap, fs, time::Duration};

use proxima::{
    config::{routes, schema::*},
    frontdoor::ConfigSource as _,
};

use crate::{failover, pool, run};

/// Reads go to this node's server first, writes to every server.
const NODE_LOCAL: &str = r#"{
  "pools": {
    "A": {
      "servers": [
        // this node's first
        "10.0.0.3:11211", "10.0.0.1:11211", "10.0.0.2:11211", "10.0.0.4:11211",
        "10.0.0.5:11211", "10.0.0.6:11211", "10.0.0.7:11211", "10.0.0.8:11211",
      ]
    }
  },
  "route": {
    "type": "OperationSelectorRoute",
    "operation_policies": {
      "add": "AllSyncRoute|Pool|A",
      "delete": "AllSyncRoute|Pool|A",
      "get": "FailoverRoute|Pool|A",
      "set": "AllSyncRoute|Pool|A"
    }
  }
}
"#;

#[test]
fn the_node_local_set_up_runs_unchanged_and_is_followed() {
    let folder = std::env::temp_dir().join(format!("proxima-mcrouter-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("mcrouter.json");
    fs::write(&file, NODE_LOCAL).unwrap();
    let mcrouter = run(&[
        "--listen-addresses=127.0.0.1",
        "--port=31213",
        &format!("--config-file={}", file.display()),
        &format!("--stats-root={}", folder.display()),
    ])
    .unwrap();

    let config = &mcrouter.loaded.config;
    assert_eq!(config.listeners.len(), 1);
    assert_eq!(config.listeners[0].address, "127.0.0.1:31213");
    assert_eq!(config.workers, Some(1));
    assert_eq!(mcrouter.warnings, Vec::<String>::new());
    assert_eq!(mcrouter.loaded.warnings, Vec::<String>::new());
    assert_eq!(
        mcrouter.door.files,
        Some((folder.clone(), Duration::from_secs(10)))
    );
    assert_eq!(mcrouter.loaded.files_watched, std::slice::from_ref(&file));
    assert_eq!(mcrouter.reload_after, Some(Duration::from_millis(100)));

    let servers = config.pools["A"].source.fixed().unwrap();
    assert_eq!(servers.len(), 8);
    assert_eq!(servers[0].address, "10.0.0.3:11211");
    assert_eq!(config.pools["A"].hash, Hash::of(Algorithm::Ch3));
    assert_eq!(config.pools["A"].timeout, Duration::from_secs(1));
    assert_eq!(config.pools["A"].eject.probe_initial, Duration::from_secs(10));

    let write = || Route::of(routes::AllSync, pool("A"));
    let operations = [
        ("add", write()),
        ("delete", write()),
        ("get", failover(pool("A"))),
        ("set", write()),
    ];
    let selector = Route::keyed(
        routes::ByOperation,
        operations.map(|(name, route)| (name.to_owned(), route)).into(),
        None,
    );
    let Route::Named(root) = &config.listeners[0].route else {
        panic!()
    };
    assert_eq!(
        config.routes[root],
        Route::keyed(
            routes::ByRoutingPrefix {
                default: "/././".into(),
                takes_unknown: false
            },
            BTreeMap::from([("/././".to_owned(), selector)]),
            None
        )
    );

    fs::write(&file, NODE_LOCAL.replace("10.0.0.3", "10.0.0.9")).unwrap();
    let again = mcrouter.load().unwrap();
    assert_ne!(again.version_hash, mcrouter.loaded.version_hash);
    fs::write(&file, "{").unwrap();
    let message = mcrouter.load().unwrap_err().to_string();
    assert!(
        message.starts_with(&format!("{}:1:1: not JSON: ", file.display())),
        "{message}"
    );
    fs::remove_dir_all(folder).unwrap();
}
