//! What the process says when it serves.

use crate::{
    config::schema::Dedicated,
    control::{MemberView, Proxy, View},
    event_log::kind,
    members::Member,
    upstream::BULK_LANES,
};

/// Logs where clients and operators connect. `why` is the reason for the back end that was chosen.
pub(in crate::control) fn say_hello(proxy: &Proxy, admin: Option<&str>, why: &str) {
    let View {
        version,
        listeners,
        members,
        ..
    } = proxy.view();
    let addresses: Vec<String> = listeners.into_iter().flatten().collect();
    let most = |protocol| {
        let is_its = |found: &&MemberView| found.member.protocol.name() == protocol;
        let its = members.iter().filter(is_its);
        its.map(|found| connections(&found.member, proxy.workers.len()))
            .max()
    };
    tracing::info!(target: kind::PROCESS,
        configuration = %proxy.source.name(),
        %version,
        io = %proxy.io,
        why,
        workers = proxy.workers.len(),
        connections_to_each_server = most("memcached"),
        connections_to_each_redis_server = most("redis"),
        connections_to_each_mysql_server = most("mysql"),
        members = members.len(),
        "proxima {} serves {}",
        env!("CARGO_PKG_VERSION"),
        addresses.join(", "),
    );
    say_consistency(proxy);
    if let Some(admin) = admin {
        tracing::info!("admin on {admin} (/live /ready /metrics /config /members /explain?key=K)");
    }
}

/// Logs how fresh reads of MySQL are at each listener, and why.
fn say_consistency(proxy: &Proxy) {
    let rooms = proxy.rooms();
    let config = rooms.configuration.config();
    for listener in &config.listeners {
        if let Some((word, why)) = config.consistency_at(listener) {
            tracing::info!(address = %listener.address, why, "reads are `{}`", word.name());
        }
        for (of, word) in config.route_words(&listener.route).told() {
            tracing::info!(address = %listener.address, of, "reads are `{}` by a route", word.name());
        }
    }
}

/// The most connections that this server must expect from the process. Redis gets one more of each worker for
/// each login that clients choose, and MySQL gets some for a moment when clients log in.
fn connections(member: &Member, workers: usize) -> usize {
    let Dedicated { max, total, .. } = member.dedicated;
    let total = total.or_else(|| member.health.quota().offered());
    let dedicated = total.unwrap_or(u32::MAX).min(max.saturating_mul(workers as u32)) as usize;
    match member.protocol.name() {
        // Clients of RESP2 and of RESP3 have a shared connection each.
        "redis" => workers * (2 + BULK_LANES) + dedicated,
        // Every statement has a dedicated connection, and each worker has one by which it ends statements.
        "mysql" => {
            let state = member.pool.state.as_ref();
            dedicated + workers + state.map_or(0, |state| state.monitors().len())
        }
        _ => workers * (1 + BULK_LANES),
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
