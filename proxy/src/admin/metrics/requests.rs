//! Clients, their requests, and connections to servers.

use std::collections::BTreeMap;

use crate::{
    admin::page::{Page, quoted},
    control::{Proxy, View},
    metrics::Metrics,
    protocol::Protocols,
};

/// Rows of clients.
pub(super) fn clients(metrics: &Metrics, page: &mut Page) {
    page.gauge("clients", "Connected clients.", metrics.open_clients);
    page.counter(
        "clients_accepted",
        "Clients that connected.",
        metrics.clients.accepted,
    );
    page.family(
        "clients_closed",
        "counter",
        "Clients closed by the proxy, by reason.",
    );
    for (reason, count) in [
        ("limit", metrics.clients.over_limit),
        ("idle", metrics.clients.idle),
        ("idle_in_transaction", metrics.clients.idle_in_transaction),
        ("rejected_login", metrics.clients.rejected_login),
        ("age", metrics.clients.old),
        ("slow", metrics.clients.slow),
        ("request_timeout", metrics.clients.unfinished),
        ("half_closed", metrics.clients.half_closed),
        ("memory", metrics.clients.greedy),
    ] {
        page.row("clients_closed_total", &format!("reason=\"{reason}\""), count);
    }
    page.gauge(
        "slow_readers",
        "Clients that have not taken all that was sent to them.",
        metrics.slow_readers.clients,
    );
    page.gauge(
        "slow_readers_bytes",
        "Bytes that they have not taken.",
        metrics.slow_readers.bytes,
    );
    page.gauge(
        "slow_readers_longest_seconds",
        "For how long the first of them has been one.",
        metrics.slow_readers.longest.as_secs(),
    );
    page.counter(
        "requests_refused",
        "Requests answered with an error without being routed.",
        metrics.clients.refused,
    );
    page.counter(
        "uploads",
        "Requests streamed because of their size.",
        metrics.clients.uploads,
    );
    page.family(
        "descriptor_shortages",
        "counter",
        "Times that there was no descriptor for a client, who waits, or for a connection to a server.",
    );
    for (what, count) in ["accept", "connect"].into_iter().zip(metrics.shortages) {
        page.row("descriptor_shortages_total", &format!("what=\"{what}\""), count);
    }
}

/// Rows of connections to servers.
pub(super) fn lanes(metrics: &Metrics, page: &mut Page) {
    page.gauge("lanes", "Connections to servers.", metrics.open_lanes);
    page.counter(
        "lanes_opened",
        "Connections to servers that were opened.",
        metrics.lanes_opened,
    );
    page.gauge(
        "requests_in_flight",
        "Requests sent to servers and not answered.",
        metrics.in_flight,
    );
    page.counter(
        "failovers",
        "Requests that went on to another child.",
        metrics.failovers,
    );
    let failover = &metrics.failover;
    for (name, help, count) in [
        (
            "failover_errors",
            "Tries of a failover that failed, and were followed by another.",
            failover.errors,
        ),
        (
            "failover_ejected",
            "Tries of a failover that met an ejected server, and were followed by another.",
            failover.ejected,
        ),
        (
            "failover_all_failed",
            "Requests for which the last allowed try of a failover failed.",
            failover.all_failed,
        ),
        (
            "failover_limited",
            "Failovers that a limit did not allow.",
            failover.limited,
        ),
    ] {
        page.counter(name, help, count);
    }
    page.counter(
        "joins",
        "Requests that went to several members, and whose replies became one.",
        metrics.joins,
    );
}

/// Rows of bytes.
pub(super) fn traffic(metrics: &Metrics, page: &mut Page) {
    let (clients, servers) = (metrics.client_traffic, metrics.server_traffic);
    page.counter(
        "client_received_bytes",
        "Bytes received from clients.",
        clients.received,
    );
    page.counter("client_sent_bytes", "Bytes sent to clients.", clients.sent);
    page.counter(
        "server_received_bytes",
        "Bytes received from servers.",
        servers.received,
    );
    page.counter("server_sent_bytes", "Bytes sent to servers.", servers.sent);
}

/// Rows of requests and replies.
pub(super) fn requests(proxy: &Proxy, metrics: &Metrics, page: &mut Page) {
    page.family("requests", "counter", "Requests of clients, by command.");
    for (label, &count) in commands(proxy.protocols()).zip(&metrics.requests) {
        if count > 0 {
            page.row("requests_total", &label, count);
        }
    }
    page.family("replies", "counter", "Replies to clients, by outcome.");
    for (outcome, name) in crate::protocol::OUTCOMES {
        page.row(
            "replies_total",
            &format!("outcome=\"{name}\""),
            metrics.replies.with(outcome),
        );
    }
}

/// Rows of what clients and servers name: libraries, and the first words of errors.
pub(super) fn names(metrics: &Metrics, page: &mut Page) {
    page.family(
        "errors",
        "counter",
        "Error replies to clients by their first word, where the protocol has one.",
    );
    for (word, count) in metrics.errors.all() {
        page.row("errors_total", &format!("word=\"{}\"", quoted(word)), count);
    }
    page.family(
        "client_libraries",
        "counter",
        "Times that a client has named its library.",
    );
    for (library, count) in metrics.libraries.all() {
        page.row(
            "client_libraries_total",
            &format!("library=\"{}\"", quoted(library)),
            count,
        );
    }
}

/// Rows of requests by what they do to the data.
pub(super) fn classes(proxy: &Proxy, metrics: &Metrics, page: &mut Page) {
    let mut sums: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for ((protocol, command), &count) in proxy.protocols().commands().zip(&metrics.requests) {
        if let Some(class) = protocol.class_of(command).filter(|_| count > 0) {
            *sums.entry((protocol.name(), class)).or_default() += count;
        }
    }
    page.family(
        "request_classes",
        "counter",
        "Requests of clients by what they do to the data.",
    );
    for ((protocol, class), sum) in sums {
        let labels = format!("protocol=\"{protocol}\",class=\"{class}\"");
        page.row("request_classes_total", &labels, sum);
    }
}

/// Rows of keys that were looked for.
pub(super) fn lookups(proxy: &Proxy, metrics: &Metrics, page: &mut Page) {
    page.family(
        "lookups",
        "counter",
        "Keys that clients have looked for, by command and result.",
    );
    let protocols = proxy.protocols();
    for (number, ((protocol, command), label)) in protocols.commands().zip(commands(protocols)).enumerate() {
        if metrics.requests.get(number).is_none_or(|&asked| asked == 0) || !protocol.looks_up(command) {
            continue;
        }
        let counts = metrics.replies.lookups(number);
        for (result, count) in ["hit", "miss"].iter().zip(counts) {
            let labels = format!("{label},result=\"{result}\"");
            page.row("lookups_total", &labels, count);
        }
    }
}

/// The label of each command, in the order of their numbers. Two protocols may have a command of the same
/// name, and no two rows may have the same labels: all protocols but the first are named as well.
fn commands(protocols: Protocols) -> impl Iterator<Item = String> {
    let first = protocols.default().protocol.name();
    protocols.commands().map(move |(protocol, command)| {
        let (protocol, name) = (protocol.name(), protocol.command_name(command));
        match protocol == first {
            true => format!("command=\"{name}\""),
            false => format!("command=\"{name}\",protocol=\"{protocol}\""),
        }
    })
}

/// Rows of the time that requests take.
pub(super) fn durations(view: &View, metrics: &Metrics, page: &mut Page) {
    page.family(
        "request_duration_seconds",
        "histogram",
        "From a request's last byte to its reply, by listener.",
    );
    for (number, address) in view.listeners.iter().enumerate() {
        if let (Some(address), Some(latency)) = (address, metrics.latency.get(number)) {
            page.histogram(
                "request_duration_seconds",
                &format!("listener=\"{}\"", quoted(address)),
                latency,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proxima_wire::message::{Bad, Outcome, Parse, Parsed, Reply, Request};

    use super::commands;
    use crate::{
        protocol::{
            ClientSide, Failed, Message, Protocol, Protocols, Requests, ServerSide, Session, StateSlot,
        },
        protocols::Memcache,
    };

    /// A protocol whose commands are called as memcached's are.
    struct Namesake;

    impl Protocol for Namesake {
        fn name(&self) -> &'static str {
            "namesake"
        }

        fn commands(&self) -> &'static [&'static str] {
            Memcache::PLAIN.commands()
        }

        fn may_repeat(&self, _: u16) -> bool {
            false
        }

        fn is_same_everywhere(&self, _: u16) -> bool {
            false
        }
    }

    impl ClientSide for Namesake {
        fn error(&self, _: &Session, _: &Failed<'_>, _: &mut Vec<u8>) {}
    }

    impl ServerSide for Namesake {
        fn reply(&self, _: &StateSlot, _: &mut Parse, _: u16, _: &[u8]) -> Parsed<Message> {
            Parsed::Bad(Bad::fatal(b""))
        }

        fn probe(&self) -> (u16, &'static [u8]) {
            (0, b"")
        }
    }

    impl Requests for Namesake {
        fn request(&self, _: &mut Parse, _: &[u8], _: u64) -> Parsed<Request> {
            Parsed::Bad(Bad::fatal(b""))
        }

        fn miss(&self, _: u16, _: &Request, _: &[u8], _: &mut Vec<u8>) -> Reply {
            Reply::new(Outcome::NotFound, 0)
        }
    }

    #[test]
    fn commands_of_two_protocols_with_one_name_have_rows_of_their_own() {
        let both = Protocols::new(&[&Memcache::PLAIN, &Namesake]);
        let labels: Vec<String> = commands(both).collect();
        let different: HashSet<&String> = labels.iter().collect();
        assert_eq!(different.len(), labels.len(), "{labels:?}");
        assert!(labels.contains(&"command=\"get\"".to_owned()));
        assert!(labels.contains(&"command=\"get\",protocol=\"namesake\"".to_owned()));
    }
}
