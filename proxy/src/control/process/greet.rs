//! What the process says when it serves.
use crate::control::{Proxy, View};

/// Logs where clients and operators connect. `why` is the reason for the back end that was chosen.
pub(in crate::control) fn say_hello(proxy: &Proxy, admin: Option<&str>, why: &str) {
    let View {
        version,
        listeners,
        members,
        ..
    } = proxy.view();
    let addresses: Vec<String> = listeners.into_iter().flatten().collect();
    let members = members.len();
    let connections = proxy.workers.len() * (1 + crate::upstream::BULK_LANES);
    tracing::info!(
        configuration = %proxy.source.name(),
        %version,
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
        tracing::info!("admin on {admin} (/live /ready /metrics /config /members /explain?key=K)");
    }
}

/// Tells someone who starts the program for the first time what to try.
pub(in crate::control) fn introduce(proxy: &Proxy, admin: Option<&str>) {
    let mut addresses = proxy.view().listeners.into_iter().flatten();
    let Some(address) = addresses.next() else {
        return;
    };
    println!(
        "Proxima listens on {address} and speaks memcached. Nothing is configured, so it serves a store of its own."
    );
    println!("Try it with any memcached client, or in plain bash:\n");
    try_it(&address, r"set hello 0 60 5\r\nworld\r\nget hello\r\nquit\r\n");
    // The built-in configuration has no other second listener.
    if let Some(address) = addresses.next() {
        println!("On {address} it speaks Redis:\n");
        try_it(&address, r"SET hello world\r\nGET hello\r\nQUIT\r\n");
    }
    if let Some(admin) = admin {
        println!("Look inside: {admin}/metrics, {admin}/explain?key=hello");
    }
    println!("Next: `proxima --help`, examples/node-local-memcached, docs/. Stop with Ctrl-C.");
}

/// Prints two lines of bash that send `text` to `address` and show the answer.
fn try_it(address: &str, text: &str) {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    println!("  exec 3<>/dev/tcp/{host}/{port}");
    println!("  printf '{text}' >&3; cat <&3\n");
}
