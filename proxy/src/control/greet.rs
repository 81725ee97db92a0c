//! What the process says when it serves.

use super::Proxy;

/// Logs where clients and operators connect. `why` is the reason for the back end that was chosen.
pub(super) fn say_hello(proxy: &Proxy, admin: Option<&str>, why: &str) {
    let addresses: Vec<String> = proxy.listeners().into_iter().flatten().collect();
    let members = proxy.members().len();
    let connections = proxy.workers.len() * (1 + crate::upstream::BULK_LANES);
    tracing::info!(
        configuration = %proxy.source.name(),
        version = %proxy.version(),
        io = %proxy.io,
        why,
        workers = proxy.workers.len(),
        connections_to_each_server = (members > 0).then_some(connections),
        members,
        "proxima {} serves {}",
        env!("CARGO_PKG_VERSION"),
        addresses.join(", "),
    );
    if let Some(admin) = admin {
        tracing::info!("admin on http://{admin} (/live /ready /metrics /config /members /explain?key=K)");
    }
}

/// Tells someone who starts the program for the first time what to try.
pub(super) fn introduce(proxy: &Proxy, admin: Option<&str>) {
    let Some(address) = proxy.listeners().into_iter().flatten().next() else {
        return;
    };
    let (host, port) = address.rsplit_once(':').unwrap_or((&address, ""));
    println!(
        "Proxima listens on {address} and speaks memcached. Nothing is configured, so it serves a store of its own."
    );
    println!("Try it with any memcached client, or in plain bash:\n");
    println!("  exec 3<>/dev/tcp/{host}/{port}");
    println!("  printf 'set hello 0 60 5\\r\\nworld\\r\\nget hello\\r\\nquit\\r\\n' >&3; cat <&3\n");
    if let Some(admin) = admin {
        println!("Look inside: http://{admin}/metrics, http://{admin}/explain?key=hello");
    }
    println!("Next: `proxima --help`, examples/node-local-memcached, docs/. Stop with Ctrl-C.");
}
