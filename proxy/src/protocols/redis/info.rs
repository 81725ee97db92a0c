//! `INFO`, where several servers would each tell their own.

use proxima_wire::resp::Args;

use super::{here::append_text, login};
use crate::protocol::{NearCounters, ProcessCounters, Session};

/// Names of all sections together.
const ALL: [&str; 3] = ["default", "all", "everything"];

/// Appends the sections that are asked for: what clients want to know of a server, in the words of the pool's
/// servers, and counters of the process.
pub(super) fn answer(session: &Session, message: &[u8], counters: &ProcessCounters, out: &mut Vec<u8>) {
    let asked: Vec<_> = Args::of(message)
        .skip(1)
        .map(|word| word.of(message).to_ascii_lowercase())
        .collect();
    let is_asked = |name: &str| asked.iter().any(|word| word == name.as_bytes());
    let wants_all = asked.is_empty() || ALL.iter().any(|name| is_asked(name));
    let sections = sections(session, counters);
    let wanted = sections
        .iter()
        .filter(|(name, _)| wants_all || is_asked(&name.to_ascii_lowercase()));
    let text: Vec<_> = wanted.map(|(name, rows)| format!("# {name}\r\n{rows}")).collect();
    append_text(session.form, &text.join("\r\n"), out);
}

/// Is this `INFO near`? It is answered by the proxy alone, also where there is but one server.
pub(super) fn is_about_near(message: &[u8]) -> bool {
    let mut words = Args::of(message).skip(1).map(|word| word.of(message));
    words
        .next()
        .is_some_and(|word| word.eq_ignore_ascii_case(b"near"))
        && words.next().is_none()
}

/// Appends the counters of the near cache, in the form of `INFO commandstats`, as a bulk string, which is the
/// same in both versions of the protocol.
pub(super) fn about_near(near: &NearCounters, out: &mut Vec<u8>) {
    let mut text = String::from("# Near\r\n");
    for (name, value) in &near.whole {
        text.push_str(&format!("near_{name}:{value}\r\n"));
    }
    for (rule, rows) in &near.rules {
        let rows: Vec<String> = rows
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        text.push_str(&format!("near_rule_{rule}:{}\r\n", rows.join(",")));
    }
    append_text(0, &text, out);
}

fn sections(session: &Session, counters: &ProcessCounters) -> [(&'static str, String); 5] {
    let (server, version) = login::server(session.reach.version);
    let own = match server {
        "valkey" => format!("server_name:valkey\r\nvalkey_version:{version}\r\n"),
        _ => String::new(),
    };
    let rows = |rows: &[(&str, u64)]| -> String {
        let row = |(name, figure): &(&str, u64)| format!("{name}:{figure}\r\n");
        rows.iter().map(row).collect()
    };
    [
        (
            "Server",
            format!(
                "redis_version:{version}\r\n{own}redis_mode:standalone\r\nuptime_in_seconds:{}\r\n",
                counters.uptime
            ),
        ),
        (
            "Clients",
            rows(&[
                ("connected_clients", counters.clients),
                ("maxclients", counters.most_clients),
            ]),
        ),
        ("Persistence", rows(&[("loading", 0)])),
        (
            "Stats",
            rows(&[
                ("total_connections_received", counters.connections),
                ("total_commands_processed", counters.requests),
                ("total_net_input_bytes", counters.received),
                ("total_net_output_bytes", counters.sent),
                ("rejected_connections", counters.rejected),
                ("keyspace_hits", counters.hits),
                ("keyspace_misses", counters.misses),
            ]),
        ),
        ("Replication", "role:master\r\n".to_owned()),
    ]
}
